"""
The topics there must be, and what is wrong with those that are there.

| topic                   | partitions                     | for                                          |
| ----------------------- | ------------------------------ | -------------------------------------------- |
| `responses`             | `gnomon.events.kafka.partitions` | as many workers can share it               |
| `attempts`, `heads`, `comparisons` | 3                   | a tenth of the traffic or less               |
| `breakers`, `alerts`, `dead_letters` | 1                 | rare                                         |

None is compacted: every event counts, and the sink's floors rest on offsets without gaps of meaning. Retention is
`gnomon.retention.events`. A record may be as large as the largest event: two bodies, the params and the rest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gnomon.config.model import Gnomon
from gnomon.events import topics as names

REPLICAS: Final = 3
"""Copies of each record, where the cluster has as many brokers."""
SPARE_BYTES: Final = 1 << 20
"""What an event has beside bodies and params; attempts and heads of many upstreams fit."""
FOREVER: Final = -1
_PARTITIONS: Final = {names.ATTEMPTS: 3, names.HEADS: 3, names.COMPARISONS: 3}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A topic as it must be."""

    name: str
    n_partitions: int
    retention_ms: int
    max_record_bytes: int

    def settings(self, n_replicas: int) -> dict[str, str]:
        """Return Kafka's settings for a new topic; what is not among them is the cluster's."""
        return {
            "cleanup.policy": "delete",
            "retention.ms": str(self.retention_ms),
            "max.message.bytes": str(self.max_record_bytes),
            "compression.type": "producer",
            "min.insync.replicas": str(2 if n_replicas >= REPLICAS else 1),
        }


@dataclass(frozen=True, slots=True)
class Found:
    """A topic as it is."""

    n_partitions: int
    settings: Mapping[str, str]
    """Kafka's effective settings, the cluster's defaults included; empty where we may not read them."""


def wanted(gnomon: Gnomon) -> list[Wanted]:
    """Return every topic, with its prefix; Kafka must be configured."""
    kafka = gnomon.events.kafka
    assert kafka is not None
    largest = 2 * gnomon.events.max_body_bytes + gnomon.proxy.limits.max_request_bytes + SPARE_BYTES
    counts = {**_PARTITIONS, names.RESPONSES: kafka.partitions}
    return [
        Wanted(
            name=kafka.topic_prefix + name,
            n_partitions=counts.get(name, 1),
            retention_ms=int(gnomon.retention.events_seconds * 1000),
            max_record_bytes=largest,
        )
        for name in names.TOPICS
    ]


def problems(topic: Wanted, found: Found) -> list[str]:
    """Return what about an existing topic would lose events or leave workers idle, each with the way out."""
    wrong = []
    if found.n_partitions < topic.n_partitions:
        wrong.append(
            f"{topic.name}: {found.n_partitions} partitions, wanted are {topic.n_partitions}; add them while no proxy "
            "runs (kafka-topics.sh --alter --partitions), or set gnomon.events.kafka.partitions"
        )
    policy = found.settings.get("cleanup.policy", "delete")
    if policy != "delete":
        wrong.append(
            f"{topic.name}: cleanup.policy is {policy}, events would be thrown away; {_alter(topic, 'delete')}"
        )
    retention_ms = int(found.settings.get("retention.ms", topic.retention_ms))
    if retention_ms != FOREVER and retention_ms < topic.retention_ms:
        wrong.append(
            f"{topic.name}: retention.ms is {retention_ms}, gnomon.retention.events asks for {topic.retention_ms}; "
            + _alter(topic, str(topic.retention_ms), "retention.ms")
        )
    max_bytes = int(found.settings.get("max.message.bytes", topic.max_record_bytes))
    if max_bytes < topic.max_record_bytes:
        wrong.append(
            f"{topic.name}: max.message.bytes is {max_bytes}, the largest event has {topic.max_record_bytes}; "
            + _alter(topic, str(topic.max_record_bytes), "max.message.bytes")
            + ", or lower gnomon.events.maxBodyBytes"
        )
    return wrong


def replicas(n_brokers: int) -> int:
    """Return how many copies a topic gets in a cluster of that size."""
    return max(1, min(REPLICAS, n_brokers))


def missing(topics: Sequence[Wanted], found: Mapping[str, Found]) -> list[Wanted]:
    """Return the topics that are not there."""
    return [topic for topic in topics if topic.name not in found]


def _alter(topic: Wanted, value: str, setting: str = "cleanup.policy") -> str:
    return f"kafka-configs.sh --alter --topic {topic.name} --add-config {setting}={value}"
