"""
How many calls, and how much money: what mirrored calls and probes may use. Pure: no clock, no I/O.

    Rate            at most so many in any second
    MonthlyBudget   at most so much in a month (UTC), calls under way counted at what they are expected to cost

A budget survives the process that keeps it by grants: it may use what the file beside the log says is used, and the
file is raised, ahead of use, by a hundredth of the budget. Whatever ends the process, no more was spent than the file
says; a clean end writes the exact figure.
"""

from collections import deque
from typing import Final

_GRANTS: Final = 100
"""So many times a month, at most and restarts aside, is the file of a budget written."""


class Rate:
    """At most `per_second` takes in any second; below 1, one take in `1 / per_second` seconds; 0: none at all."""

    __slots__ = ("_taken", "_window_seconds", "per_second")

    def __init__(self, per_second: float) -> None:
        """
        Raises:
            ValueError: the rate is negative.
        """
        if per_second < 0:
            raise ValueError(f"a rate of {per_second} a second")
        self.per_second = per_second
        self._taken: deque[float] = deque(maxlen=int(per_second) if per_second >= 1 else 1)
        self._window_seconds = 1.0 if per_second >= 1 or not per_second else 1.0 / per_second

    def has_room(self, now: float) -> bool:
        """Say whether one more may be taken at a monotonic instant, in seconds."""
        if not self.per_second:
            return False
        taken = self._taken
        return len(taken) < (taken.maxlen or 1) or now - taken[0] >= self._window_seconds

    def take(self, now: float) -> None:
        """Take one; the oldest is forgotten."""
        self._taken.append(now)


class MonthlyBudget:
    """
    Money for one month after the other. Amounts are integers of one unit of the caller's, months any text.

    limit      the budget; 0 lets nothing through, what costs nothing included
    spent      what ended calls have cost this month
    reserved   what calls under way are expected to cost
    granted    what the file says is used: `spent + reserved` may reach it without another write
    """

    __slots__ = ("granted", "limit", "month", "reserved", "spent")

    def __init__(self, limit: int, month: str = "", spent: int = 0) -> None:
        self.limit = limit
        self.month = month
        self.spent = self.granted = spent
        self.reserved = 0

    def has_room(self, cost: int, month: str) -> bool:
        """Say whether a call of an expected cost may go out."""
        self._turn(month)
        return self.limit > 0 and self.spent + self.reserved + cost <= self.limit

    def wanted_grant(self, cost: int) -> int | None:
        """Return the figure that the file must hold before a call of that cost goes out; None: it holds enough."""
        needed = self.spent + self.reserved + cost
        return None if needed <= self.granted else min(self.limit, needed + self.limit // _GRANTS)

    def reserve(self, cost: int) -> None:
        """Count a call that goes out."""
        self.reserved += cost

    def settle(self, expected: int, actual: int, month: str) -> None:
        """Count a call that has ended, in the month of its end."""
        self._turn(month)
        self.reserved -= expected
        self.spent += actual

    def _turn(self, month: str) -> None:
        if month != self.month:
            self.month = month
            self.spent = self.granted = 0
