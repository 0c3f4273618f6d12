"""
What the worker needs of the configuration.
"""

from dataclasses import dataclass, field

from gnomon.config.model import KafkaSettings, Settings
from gnomon.events import topics
from ingest.settings import RunnerSettings, runner_settings

SOURCES = (topics.RESPONSES, topics.ATTEMPTS, topics.HEADS, topics.BREAKERS)
"""What the proxies' shippers write, without the prefix."""
GROUP = "gnomon-ingest"
SHIPPER_LAG_SECONDS = 900.0
"""How long a shipper may be behind before a mirrored call whose end it holds is called missing. Where it is behind for
longer, the end stands beside the row that says `missing`."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The worker's; what is common with the embedded runner is in `pace`."""

    kafka: KafkaSettings
    pace: RunnerSettings = field(default_factory=RunnerSettings)
    n_lanes: int = 2
    """Threads with a connection to ClickHouse each: while one waits for an insert the other makes rows."""
    session_seconds: float = 10.0
    """A worker that is silent so long loses its partitions."""
    drain_seconds: float = 20.0
    """For storing what was read when partitions are taken away; the group waits 10 s longer."""
    stop_seconds: float = 40.0
    """For the whole end of a worker; half of it at most for storing what was read."""
    commit_seconds: float = 1.0
    """Between commits to Kafka. Nothing is read from them: they show the lag to Kafka's tools."""
    look_seconds: float = 2.0
    """Between looks at the ends of the partitions."""
    topic_seconds: float = 30.0
    """Between looks whether a topic was made anew."""
    stall_seconds: float = 180.0
    """A partition with unread records that has not moved for so long, with ClickHouse there, ends the process."""
    blind_seconds: float = 600.0
    """So does a worker that was not told the ends of its partitions for so long."""
    frozen_seconds: float = 60.0
    """And one whose event loop has not turned for so long."""
    fenced_seconds: float = 45.0
    """And one that keeps a partition which another process stores: two groups read the same topics."""
    max_dead_letters: int = 1000
    """Of one partition within a minute; above it the partition stands still. 0 = any number."""
    behind_seconds: float = 2.0
    """A partition that is behind waits so long for a full batch: an insert costs the same for one row and for many."""
    max_memory_bytes: int = 512 << 20
    """Of records that were read and are not stored, in all partitions together."""
    max_fetch_bytes: int = 4 << 20
    """Of one partition in one answer."""

    @property
    def group(self) -> str:
        """The consumer group."""
        return self.kafka.topic_prefix + GROUP

    @property
    def sources(self) -> tuple[str, ...]:
        """The topics that are read."""
        return tuple(self.kafka.topic_prefix + name for name in SOURCES)

    @property
    def dead_letters(self) -> str:
        """The topic of what can never be stored."""
        return self.kafka.topic_prefix + topics.DEAD_LETTERS

    @property
    def missing_horizon_seconds(self) -> float:
        """How old a mirrored decision without a verdict must be: a shipper may still hold the verdict."""
        return self.pace.missing_horizon_seconds + SHIPPER_LAG_SECONDS


def worker_settings(settings: Settings) -> WorkerSettings:
    """Return the worker's settings; Kafka must be configured."""
    kafka = settings.gnomon.events.kafka
    if kafka is None:
        raise ValueError("gnomon.events.kafka is not set")
    return WorkerSettings(kafka, runner_settings(settings))
