"""
What one receiver still has to get: in order for each rule and subject, tried until it arrives.

    failure                                      then
    no connection, time-out, 408, 429, 5xx       the receiver rests: 1 s doubling to 60 s; nothing is given up
    any other answer (401, 404, 413, …)          this message rests, 1 s doubling to 10 min; others go on

Pure: time is an argument, waits are the caller's.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")

FIRST_REST_SECONDS: Final = 1.0
MAX_REST_SECONDS: Final = 60.0
MAX_REFUSED_REST_SECONDS: Final = 600.0


@dataclass(slots=True)
class Entry(Generic[Item]):
    """One message on its way."""

    key: str
    """Messages of one key go in order."""
    item: Item
    n_tries: int = 0
    due: float = 0.0


@dataclass(slots=True)
class Queue(Generic[Item]):
    """Of one receiver."""

    _entries: list[Entry[Item]] = field(default_factory=list)
    _rests_until: float = 0.0
    _n_failures: int = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, key: str, item: Item) -> None:
        """Put a message behind the others."""
        self._entries.append(Entry(key, item))

    def extend(self, items: Iterable[tuple[str, Item]]) -> None:
        for key, item in items:
            self.add(key, item)

    def next(self, now: float, is_allowed: Callable[[Item], bool] = lambda item: True) -> Entry[Item] | None:
        """
        Return what may be sent now; None where nothing may.

        Args:
            is_allowed: what may not waits, and no other waits for it but those of its key.
        """
        if now < self._rests_until:
            return None
        waiting: set[str] = set()
        for entry in self._entries:
            if entry.key not in waiting and entry.due <= now and is_allowed(entry.item):
                return entry
            waiting.add(entry.key)
        return None

    def next_due(self, now: float) -> float | None:
        """Return when to ask again; None = when something is added."""
        firsts: dict[str, float] = {}
        for entry in self._entries:
            firsts.setdefault(entry.key, entry.due)
        return max(min(firsts.values()), self._rests_until, now) if firsts else None

    def clear(self) -> None:
        """Forget all: another service sends it."""
        self._entries.clear()
        self._n_failures, self._rests_until = 0, 0.0

    def wake(self) -> None:
        """Let nothing rest any longer: the receiver is another one now."""
        self._n_failures, self._rests_until = 0, 0.0
        for entry in self._entries:
            entry.due = 0.0

    def arrived(self, entry: Entry[Item]) -> None:
        """Note that the receiver has it."""
        if entry in self._entries:  # it may have been cleared meanwhile
            self._entries.remove(entry)
        self._n_failures, self._rests_until = 0, 0.0

    def away(self, entry: Entry[Item], now: float, *, after_seconds: float = 0.0) -> float:
        """
        Note that the receiver did not take it and may later; return for how long it rests.

        Args:
            after_seconds: what the receiver itself asked for (Retry-After).
        """
        entry.n_tries += 1
        rest = min(FIRST_REST_SECONDS * 2.0 ** min(self._n_failures, 16), MAX_REST_SECONDS)
        rest = max(rest, min(after_seconds, MAX_REFUSED_REST_SECONDS))
        self._n_failures += 1
        self._rests_until = now + rest
        return rest

    def refused(self, entry: Entry[Item], now: float) -> float:
        """Note that the receiver does not want this one; return for how long it rests."""
        entry.n_tries += 1
        rest = min(FIRST_REST_SECONDS * 2.0 ** min(entry.n_tries - 1, 16), MAX_REFUSED_REST_SECONDS)
        entry.due = now + rest
        return rest
