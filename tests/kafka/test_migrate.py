"""`gnomon migrate` makes and checks the topics, on a real broker."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gnomon.config.model import EventSettings, Gnomon, KafkaSettings
from gnomon.events.topics import RESPONSES, TOPICS
from gnomon.kafka.admin import Cluster, opened
from gnomon.kafka.errors import KafkaAway, TopicsUnfit
from gnomon.kafka.migrate import migrate, plan
from gnomon.kafka.topics import problems, wanted
from tests.broker.topics import make_topic
from tests.services import ROOT


def gnomon(address: str, prefix: str) -> Gnomon:
    kafka = KafkaSettings(bootstrap_servers=address, topic_prefix=prefix, partitions=5)
    return Gnomon(events=EventSettings(kafka=kafka))


async def look(settings: Gnomon) -> Cluster:
    kafka = settings.events.kafka
    assert kafka is not None
    async with opened(kafka) as admin:
        return await admin.look([topic.name for topic in wanted(settings)])


@pytest.mark.kafka
def test_topics_are_made_once_and_as_wanted(broker: str, topic_prefix: str) -> None:
    """A plan changes nothing, the first run makes all, the second none; what was made has no problem."""

    async def run() -> None:
        settings = gnomon(broker, topic_prefix)
        said: list[str] = []
        planned = await plan(settings, wait_seconds=5)
        assert (await look(settings)).topics == {}
        assert await migrate(settings, said.append, wait_seconds=5) == len(TOPICS)
        assert said == [f"made the topic {line}" for line in planned]
        cluster = await look(settings)
        assert set(cluster.topics) == {topic_prefix + name for name in TOPICS}
        assert cluster.topics[topic_prefix + RESPONSES].n_partitions == 5
        for topic in wanted(settings):
            assert problems(topic, cluster.topics[topic.name]) == []
            assert cluster.topics[topic.name].settings["retention.ms"] == str(7 * 86_400_000)
        assert await migrate(settings, said.append, wait_seconds=5) == 0
        assert await plan(settings, wait_seconds=5) == []

    asyncio.run(run())


@pytest.mark.kafka
def test_a_topic_that_would_lose_events_is_refused(broker: str, topic_prefix: str) -> None:
    """It is named with what is wrong, and nothing is made."""

    async def run() -> list[str]:
        settings = gnomon(broker, topic_prefix)
        await make_topic(broker, topic_prefix + RESPONSES, 2, cleanup_policy="compact", retention_ms="60000")
        with pytest.raises(TopicsUnfit) as raised:
            await migrate(settings, print, wait_seconds=5)
        assert set((await look(settings)).topics) == {topic_prefix + RESPONSES}
        return [line.partition(": ")[2].partition(",")[0].partition(" is")[0] for line in raised.value.problems]

    assert asyncio.run(run()) == ["2 partitions", "cleanup.policy", "retention.ms", "max.message.bytes"]


def test_a_cluster_that_does_not_answer_is_waited_for_and_named() -> None:
    """After the time the message names the address."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(KafkaAway, match=f"no answer from Kafka at {address}"):
            asyncio.run(plan(gnomon(address, ""), wait_seconds=0.6))


@pytest.mark.kafka
def test_the_command_tells_what_it_would_make(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    """`gnomon migrate --dry-run` prints the topics before the statements."""
    file = tmp_path / "gnomon.yaml"
    file.write_text(
        "projects: [{id: main, networks: [{architecture: evm, evm: {chainId: 1}}], "
        "upstreams: [{id: p1, endpoint: 'http://127.0.0.1:1', evm: {chainId: 1}}]}]\n"
        f"gnomon: {{events: {{kafka: {{bootstrapServers: '{broker}', topicPrefix: '{topic_prefix}'}}}}, "
        "clickhouse: {url: 'http://127.0.0.1:1'}}\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "gnomon", "migrate", "--dry-run", "--config", str(file), "--wait", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert [line.split()[2] for line in ran.stdout.splitlines() if line.startswith("-- topic")] == [
        f"{topic_prefix}{name}:" for name in TOPICS
    ], ran.stderr
