"""
Which primary first: the configured order, but that those in trouble stand behind those that are not. Pure: no clock.

Three kinds of trouble, by own measurements, each with a bound to enter it and a lower one to leave it, so that the
order does not flutter:

    failing   a good share of its calls brought no answer; calls fade out, so that one nobody calls is tried again
    lagging   behind the network's head for longer than its own polls explain
    slow      its head polls, the one question that every upstream gets at the same rate, take several times the best's

The worst trouble decides first, then the configured order. Scores reorder primaries among themselves only: what costs
money is never reached by a score.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

HALF_LIFE_SECONDS: Final = 20.0
FAILING_FROM, FAILING_UNTIL = 0.2, 0.05
"""Share of calls that failed."""
_MIN_CALLS: Final = 5.0
"""So many calls (faded) must have been seen before their failures mean something."""
LAG_BLOCKS: Final = 2
"""Further behind than this counts; closer is how polls at different moments look."""
LAG_POLLS: Final = 3
"""For so many of its own poll intervals must it have been behind."""
SLOW_FROM, SLOW_UNTIL = 3.0, 2.0
"""Times the best one's poll."""
_SLOW_SECONDS: Final = 0.05
"""A smaller difference is nobody's trouble, whatever its ratio."""
_POLL_WEIGHT: Final = 0.2


class Trouble(Struct, frozen=True):
    """What is wrong with one upstream; the members weigh in this order."""

    failing: bool = False
    lagging: bool = False
    slow: bool = False

    @property
    def weight(self) -> int:
        """0 for none; the greater, the further behind."""
        return self.failing * 4 + self.lagging * 2 + self.slow

    def __str__(self) -> str:
        return ",".join(name for name in ("failing", "lagging", "slow") if getattr(self, name)) or "none"


class Seen(Struct, frozen=True):
    """What was seen of one upstream since the last time."""

    n_calls: int
    n_failed: int
    head: int | None
    poll_interval_seconds: float


class _Record:
    __slots__ = ("behind_since", "calls", "failed", "poll_seconds", "trouble")

    def __init__(self) -> None:
        self.calls = self.failed = 0.0
        self.behind_since: float | None = None
        self.poll_seconds: float | None = None
        self.trouble = Trouble()


class Scores:
    """The primaries of one network. Times are monotonic seconds, given by the caller."""

    def __init__(self, names: Sequence[str]) -> None:
        self._records = {name: _Record() for name in names}
        self._at: float | None = None

    def adopt(self, before: "Scores", names: Iterable[str]) -> None:
        """Take over what was seen of upstreams that are the same in both."""
        for name in names:
            if name in self._records and name in before._records:
                self._records[name] = before._records[name]
        self._at = before._at

    def polled(self, name: str, seconds: float) -> None:
        """Take how long a head poll took."""
        record = self._records.get(name)
        if record is not None:
            before = record.poll_seconds
            record.poll_seconds = seconds if before is None else before + _POLL_WEIGHT * (seconds - before)

    def trouble(self, name: str) -> Trouble:
        """Return what is wrong with an upstream."""
        record = self._records.get(name)
        return record.trouble if record is not None else Trouble()

    def weigh(self, seen: dict[str, Seen], network_head: int | None, now: float) -> bool:
        """
        Take what was seen; return whether anybody's trouble has changed.

        Args:
            seen: of each upstream, its calls since the last time and its head now.
            network_head: the newest block of the network; None while unknown.
        """
        fade = 0.5 ** ((now - self._at) / HALF_LIFE_SECONDS) if self._at is not None else 1.0
        self._at = now
        polls = [r.poll_seconds for n, r in self._records.items() if n in seen and r.poll_seconds is not None]
        best = min(polls, default=None)
        changed = False
        for name, facts in seen.items():
            record = self._records[name]
            record.calls = record.calls * fade + facts.n_calls
            record.failed = record.failed * fade + facts.n_failed
            found = Trouble(
                failing=self._is_failing(record),
                lagging=self._is_lagging(record, facts, network_head, now),
                slow=self._is_slow(record, best),
            )
            changed |= found != record.trouble
            record.trouble = found
        return changed

    @staticmethod
    def _is_failing(record: _Record) -> bool:
        if record.calls < _MIN_CALLS:
            return record.trouble.failing and record.calls >= 1.0
        bound = FAILING_UNTIL if record.trouble.failing else FAILING_FROM
        return record.failed / record.calls > bound

    @staticmethod
    def _is_lagging(record: _Record, facts: Seen, network_head: int | None, now: float) -> bool:
        if facts.head is None or network_head is None:
            record.behind_since = None
            return False
        lag = network_head - facts.head
        if record.trouble.lagging:
            return lag > 1
        if lag <= LAG_BLOCKS:
            record.behind_since = None
            return False
        if record.behind_since is None:
            record.behind_since = now
        return now - record.behind_since >= LAG_POLLS * facts.poll_interval_seconds

    @staticmethod
    def _is_slow(record: _Record, best: float | None) -> bool:
        if record.poll_seconds is None or best is None or record.poll_seconds - best < _SLOW_SECONDS:
            return False
        return record.poll_seconds > best * (SLOW_UNTIL if record.trouble.slow else SLOW_FROM)

    def ordered(self, names: Sequence[str]) -> list[str]:
        """Return upstreams in the order in which to ask them: as given, those in trouble last."""
        return sorted(names, key=lambda name: self.trouble(name).weight)
