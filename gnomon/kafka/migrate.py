"""Make the topics that are missing, and check the others: the part of `gnomon migrate` for Kafka."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from gnomon.config.model import Gnomon
from gnomon.kafka.admin import Cluster, opened
from gnomon.kafka.errors import KafkaAway, TopicsUnfit
from gnomon.kafka.topics import Wanted, missing, problems, replicas, wanted

RETRY_SECONDS: Final = 0.5


async def migrate(gnomon: Gnomon, report: Callable[[str], None], *, wait_seconds: float) -> int:
    """
    Make the missing topics, tell each by a line, and return how many there were; a second run makes none.

    Raises:
        KafkaAway: no broker has answered within the time.
        KafkaRefused: the cluster does not let us.
        TopicsUnfit: topics that are there would lose events. Nothing was made then.
    """
    topics, cluster = await _look(gnomon, wait_seconds)
    _check(topics, cluster)
    lacking = missing(topics, cluster.topics)
    kafka = gnomon.events.kafka
    assert kafka is not None
    async with opened(kafka) as admin:
        made = await admin.make(lacking, cluster.n_brokers)
    for topic in lacking:
        if topic.name in made:
            report(f"made the topic {_described(topic, cluster.n_brokers)}")
    return len(made)


async def plan(gnomon: Gnomon, *, wait_seconds: float) -> list[str]:
    """
    Return a line for each topic that `migrate` would make; changes nothing.

    Raises:
        KafkaAway, KafkaRefused, TopicsUnfit: as `migrate`.
    """
    topics, cluster = await _look(gnomon, wait_seconds)
    _check(topics, cluster)
    return [_described(topic, cluster.n_brokers) for topic in missing(topics, cluster.topics)]


async def _look(gnomon: Gnomon, wait_seconds: float) -> tuple[list[Wanted], Cluster]:
    topics = wanted(gnomon)
    kafka = gnomon.events.kafka
    assert kafka is not None
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            async with opened(kafka) as admin:
                return topics, await admin.look([topic.name for topic in topics])
        except KafkaAway:
            if time.monotonic() >= deadline:
                raise
        await asyncio.sleep(RETRY_SECONDS)


def _check(topics: list[Wanted], cluster: Cluster) -> None:
    wrong = [p for topic in topics if topic.name in cluster.topics for p in problems(topic, cluster.topics[topic.name])]
    if wrong:
        raise TopicsUnfit(wrong)


def _described(topic: Wanted, n_brokers: int) -> str:
    n_replicas = replicas(n_brokers)
    settings = ", ".join(f"{key}={value}" for key, value in topic.settings(n_replicas).items())
    return f"{topic.name}: partitions={topic.n_partitions}, replicas={n_replicas}, {settings}"
