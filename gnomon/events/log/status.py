"""What a log looks like from outside: for metrics and for people, from any process, without its writer's help."""

import os
from dataclasses import dataclass

from gnomon.events.log.consumer import consumer_positions
from gnomon.events.log.segment import (
    NEXT_FILE,
    list_bases,
    read_log_id,
    read_newest,
    segment_name,
)


@dataclass(frozen=True, slots=True)
class LogStatus:
    """One log at one moment (the parts are read one after the other, so a running log may differ by some records)."""

    log_id: bytes
    size_bytes: int
    """All segment files, the one made ahead included."""
    n_segments: int
    start: int
    """The oldest record that is there."""
    accepted: int
    """Records appended since the log began: the number of the next one."""
    dropped: int
    """Records refused since the log began."""
    positions: dict[str, int]
    """Consumer → the next record it needs."""

    @property
    def lag_by_consumer(self) -> dict[str, int]:
        """Consumer → records that it has not had yet."""
        return {name: max(self.accepted - position, 0) for name, position in self.positions.items()}

    @property
    def consumed(self) -> int:
        """The next record that the slowest consumer needs; the oldest there is where nobody consumes."""
        return min(self.positions.values(), default=self.start)

    def unread_ratio(self, max_bytes: int) -> float:
        """
        Return the share of the log's bound that unread records take: of the bytes there are, by their number.

        Args:
            max_bytes: the bound.
        """
        n_there, n_unread = self.accepted - self.start, max(self.accepted - self.consumed, 0)
        return self.size_bytes / max_bytes * n_unread / n_there if n_there else 0.0


def status(path: str | os.PathLike[str]) -> LogStatus:
    """
    Return the state of the log in a directory.

    Raises:
        LogMissing: there is no log.
        LogDamaged: its newest header or a consumer's position is no such thing.
    """
    path = os.fspath(path)
    log_id = read_log_id(path)
    newest = read_newest(path)
    bases = list_bases(path)
    sizes = [_size(os.path.join(path, name)) for name in (*map(segment_name, bases), NEXT_FILE)]
    return LogStatus(
        log_id=log_id,
        size_bytes=sum(sizes),
        n_segments=len(bases),
        start=bases[0],
        accepted=newest.end,
        dropped=newest.dropped,
        positions=consumer_positions(path, log_id),
    )


def _size(file: str) -> int:
    try:
        return os.stat(file).st_size
    except FileNotFoundError:  # recycled meanwhile, or there is none
        return 0
