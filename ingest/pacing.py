"""
When a batch is due: soon after a pause, at intervals in a steady stream, at once when it is full. No clock of its own.
"""

from dataclasses import dataclass
from typing import Protocol


class Pace(Protocol):
    """What decides; see `ingest.settings.RunnerSettings`."""

    @property
    def flush_seconds(self) -> float: ...
    @property
    def quick_flush_seconds(self) -> float: ...
    @property
    def max_events(self) -> int: ...
    @property
    def max_bytes(self) -> int: ...


@dataclass(slots=True)
class Pending:
    """How much was read of one log and is not stored."""

    pace: Pace
    n_events: int = 0
    n_bytes: int = 0
    first_seen: float | None = None
    """When the oldest of it was read."""
    last_flush: float = float("-inf")
    """When the batch before began to be stored."""

    def add(self, n_events: int, n_bytes: int, now: float) -> None:
        """Count what was read."""
        if self.first_seen is None:
            self.first_seen = now
        self.n_events += n_events
        self.n_bytes += n_bytes

    def clear(self) -> None:
        """Count from nothing again."""
        self.n_events = self.n_bytes = 0
        self.first_seen = None

    @property
    def room(self) -> int:
        """How many events there may be more."""
        return max(self.pace.max_events - self.n_events, 0)

    @property
    def bytes_room(self) -> int:
        """How many bytes there may be more; the first record is taken whatever its size."""
        return max(self.pace.max_bytes - self.n_bytes, 0)

    @property
    def is_full(self) -> bool:
        """Whether no more is to be read before this is stored."""
        return self.n_events >= self.pace.max_events or self.n_bytes >= self.pace.max_bytes

    def is_due(self, now: float) -> bool:
        """Return whether what was read should be stored now."""
        if self.first_seen is None:
            return False
        return self.is_full or now >= max(
            self.last_flush + self.pace.flush_seconds, self.first_seen + self.pace.quick_flush_seconds
        )
