"""
What can go wrong between the log and ClickHouse.

    GnomonError
    └── IngestError
        ├── EngineAway        nothing answered, or it answered that it cannot now: try again later
        │   └── UnknownOutcome  an insert was sent and nobody knows whether it ran: take over, then try again
        ├── EngineRefused     ClickHouse says no, with its code: trying the same again gives the same
        ├── Fenced            a newer owner has the key: stop
        ├── BlockTooLarge     one event makes more rows or bytes than one block may hold
        ├── OwnerLocked       another `gnomon ingest` reads these logs
        ├── TopicAhead        the tables know more than the topic: a person decides
        ├── TooManyDeadLetters  a partition stands still until a person has looked
        ├── GroupsCollide     two consumer groups store the same partitions
        └── WorkerStopped     the Kafka worker has ended although nobody asked it to
"""

from gnomon.errors import GnomonError


class IngestError(GnomonError):
    """Something about the way from the log to the tables."""


class EngineAway(IngestError):
    """ClickHouse cannot be reached or is not able to work now."""


class UnknownOutcome(EngineAway):
    """A statement was sent; whether it ran is not known."""


class EngineRefused(IngestError):
    """ClickHouse answered with an exception; `code` is its number, 0 where it gave none."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"ClickHouse code {code}: {text}" if code else f"ClickHouse: {text}")
        self.code = code


class Fenced(IngestError):
    """A newer owner has taken this key over."""


class BlockTooLarge(IngestError):
    """A block would exceed what one insert stores as one part."""


class OwnerLocked(IngestError):
    """The lock of the logs is held by another process."""


class TopicAhead(IngestError):
    """The tables have more of a partition than the partition itself."""


class TooManyDeadLetters(IngestError):
    """More records of a partition cannot be stored than is plausible."""


class GroupsCollide(IngestError):
    """Workers of two groups write the same tables."""


class WorkerStopped(IngestError):
    """The Kafka worker has ended by itself."""
