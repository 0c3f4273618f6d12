"""
What can go wrong with an event or with the log that holds it.

    GnomonError
    ├── EventError              one event; it goes to the dead letters, trying again never helps
    │   ├── PoisonEvent         no JSON, an unknown type, a wrong shape
    │   └── UnknownVersion      written by a newer (or no) version of the contract; read it after an upgrade
    └── LogError                the log as a whole
        ├── LogMissing          no writer has been here yet: wait and try again
        ├── LogLocked           another process writes it
        ├── LogUnusable         the directory cannot be used, or has no room for the first segment
        ├── LogFull             it has its greatest size and nothing in it is consumed: the writer drops and counts
        ├── LogUnknown          written in a format that this version does not read
        ├── LogDamaged          its bytes are not what was written: stop, a person decides
        ├── LogReplaced         another log stands in the directory: begin it at 0
        ├── LogBehind           the wanted record is no longer in the log: records are lost to this reader
        └── LogAhead            the wanted record is above the end: another log's position, or records were lost
"""

from gnomon.errors import GnomonError


class EventError(GnomonError):
    """One event that cannot be written or read."""


class PoisonEvent(EventError):
    """No event of the contract: bad JSON, an unknown type or a wrong shape."""


class UnknownVersion(EventError):
    """An event of a version that this code does not read."""

    def __init__(self, version: int, known: int) -> None:
        super().__init__(f"event version {version} is not known here (newest known: {known}); upgrade the reader")
        self.version = version


class LogError(GnomonError):
    """Something about an event log; the message names its directory."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(f"event log {path}: {text}")
        self.path = path


class LogMissing(LogError):
    """There is no log in the directory yet."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "no log here yet; it appears when the proxy starts")


class LogLocked(LogError):
    """Another process holds the writer's lock."""

    def __init__(self, path: str, holder: str) -> None:
        who = f"process {holder}" if holder else "another process"
        super().__init__(
            path,
            f"{who} is writing it; stop that process, or give this one a directory of its own (gnomon.events.log.path)",
        )
        self.holder = holder


class LogUnusable(LogError):
    """The directory cannot hold a log."""


class LogFull(LogError):
    """The log has its greatest size and holds nothing that all consumers are done with."""

    def __init__(self, path: str, max_bytes: int) -> None:
        super().__init__(
            path,
            f"full: {max_bytes} bytes and nothing consumed; start the consumer, or raise gnomon.events.log.maxBytes",
        )


class LogUnknown(LogError):
    """The format on disk is not the one that this version reads and writes."""


class LogDamaged(LogError):
    """Bytes on disk are not those that were written."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(
            path,
            f"damaged: {text}; to start a new log move the directory away (what lies before the damage stays readable)",
        )


class LogReplaced(LogError):
    """The directory holds another log than the one that was opened."""

    def __init__(self, path: str, old_id: bytes, new_id: bytes) -> None:
        super().__init__(path, f"log {old_id.hex()} was replaced by {new_id.hex()}; open it again, from record 0")
        self.old_id, self.new_id = old_id, new_id


class LogBehind(LogError):
    """The wanted record was recycled or removed."""

    def __init__(self, path: str, seq: int, start: int) -> None:
        super().__init__(
            path, f"record {seq} is no longer in the log, the next one there is {start}: {start - seq} records are lost"
        )
        self.seq, self.start = seq, start


class LogAhead(LogError):
    """The wanted record is above the end of the log."""

    def __init__(self, path: str, seq: int, end: int) -> None:
        super().__init__(
            path,
            f"position {seq} is above the end {end}: it belongs to another log, or this log lost records (power loss); "
            "move the directory away, a new log begins with a new id",
        )
        self.seq, self.end = seq, end
