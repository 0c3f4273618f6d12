"""Topics for tests that do not run `gnomon migrate`."""

from aiokafka.admin import AIOKafkaAdminClient, NewTopic


async def make_topic(address: str, name: str, n_partitions: int = 1, **settings: str) -> None:
    """Make a topic; `settings` are Kafka's, `_` for `.`."""
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        configs = {key.replace("_", "."): value for key, value in settings.items()}
        await admin.create_topics([NewTopic(name, n_partitions, 1, topic_configs=configs)])
    finally:
        await admin.close()
