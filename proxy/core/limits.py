"""
Rate limits: at most so many calls in any period. Pure: no clock, no I/O.

    Budget      what the configuration calls one: its rules, each for a pattern of methods
    Claim       a budget as one place draws on it: a project, a network, a user, an upstream
    Share       an upstream's claim for one method: the logs that a call is written into

A rule keeps a log of the calls of the last period, one for each key (an address, a user, a network, as it asks). A call
goes through when every rule that matches its method has room in its log, and is written into all of them; one that is
refused is written into none. The period slides: no stretch of that length ever holds more than `maxCount` calls. Calls
that came close together are kept as one entry, which ends with its last call: a log is small, and room comes late by
1/64 of the period at most.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Final

from gnomon.config.model import RateLimitRule
from gnomon.config.patterns import matches

GRAINS: Final = 64
"""Entries of a log at most, one more or less."""
KEYS_LIMIT: Final = 16_384
"""Keys of a rule (clients choose their addresses); beyond, the one that was silent for longest is forgotten."""
_METHODS_LIMIT: Final = 4096

Key = tuple[str, ...]


class CallLog:
    """The calls of one period, for one rule and key. Times are monotonic seconds, given by the caller."""

    __slots__ = ("_entries", "_grain", "_max_count", "_n", "_period")

    def __init__(self, max_count: int, period_seconds: float) -> None:
        self._max_count = max_count
        self._period = period_seconds
        self._grain = period_seconds / GRAINS
        self._entries: deque[tuple[float, float, int]] = deque()  # first call, last call, how many
        self._n = 0

    def wait(self, now: float) -> float:
        """Return the seconds until there is room for one call more: 0 = now, infinity = never."""
        if not self._max_count:
            return math.inf
        entries, period = self._entries, self._period
        while entries and entries[0][1] + period <= now:
            self._n -= entries.popleft()[2]
        left = self._n
        if left < self._max_count:
            return 0.0
        for _, last, n in entries:
            left -= n
            if left < self._max_count:
                return last + period - now
        raise AssertionError("a log holds more calls than its entries do")

    def add(self, at: float) -> None:
        """Write a call down, made now or granted for later; calls are kept in order."""
        entries = self._entries
        self._n += 1
        if entries:
            first, last, n = entries[-1]
            at = max(at, last)
            if at - first < self._grain:
                entries[-1] = (first, at, n + 1)
                return
        entries.append((at, at, 1))


class Rule:
    """One rule of a budget, with its logs."""

    __slots__ = ("_logs", "config")

    def __init__(self, config: RateLimitRule) -> None:
        self.config = config
        self._logs: dict[Key, CallLog] = {}

    def log(self, key: Key) -> CallLog:
        """Return the log of a key, made where there is none."""
        logs = self._logs
        found = logs.pop(key, None)
        if found is None:
            if len(logs) >= KEYS_LIMIT:
                del logs[next(iter(logs))]
            found = CallLog(self.config.max_count, self.config.period_seconds)
        logs[key] = found  # the end of the order: used last
        return found


class Budget:
    """The rules of one budget, and what was asked of it."""

    __slots__ = ("_matching", "id", "limits", "n_calls", "n_refused")

    def __init__(self, budget_id: str, rules: Sequence[RateLimitRule]) -> None:
        self.id = budget_id
        self.limits = tuple(Rule(rule) for rule in rules)
        self.n_calls = 0
        """Calls let through."""
        self.n_refused = 0
        self._matching: dict[str, tuple[int, ...]] = {}

    def matching(self, method: str) -> tuple[int, ...]:
        """Return the places of the rules that hold for a method."""
        found = self._matching.get(method)
        if found is None:
            if len(self._matching) >= _METHODS_LIMIT:
                self._matching.clear()
            found = self._matching[method] = tuple(
                place for place, rule in enumerate(self.limits) if matches(rule.config.method, method)
            )
        return found


class Claim:
    """A budget as one place draws on it."""

    __slots__ = ("_keys", "budget", "whose")

    def __init__(
        self, budget: Budget, whose: str, own: Key = (), *, user: str = "", address: str = "", network: str = ""
    ) -> None:
        """
        Args:
            whose: the place, for messages: `project`, `network`, `user`, `upstream`.
            own: what is counted apart whatever the rules say.
            user, address, network: whose calls these are; rules may count them apart.
        """
        self.budget = budget
        self.whose = whose
        self._keys = tuple(
            (
                *own,
                *(("user", user) if rule.config.per_user else ()),
                *(("address", address) if rule.config.per_ip else ()),
                *(("network", network) if rule.config.per_network else ()),
            )
            for rule in budget.limits
        )

    def rules_for(self, method: str) -> list[tuple[Rule, Key]]:
        """Return the rules that hold for a method, each with the key of its log."""
        return [(self.budget.limits[place], self._keys[place]) for place in self.budget.matching(method)]


class Refused:
    """No room: whose budget is used up, and in how many seconds to try again (infinity: never)."""

    __slots__ = ("claim", "seconds")

    def __init__(self, claim: Claim, seconds: float) -> None:
        self.claim = claim
        self.seconds = seconds


def admit(claims: Sequence[Claim], method: str, now: float) -> float | Refused:
    """
    Let a client's call through, or refuse it.

    Returns:
        Seconds that the call has to wait (0: none), within every rule's `wait_seconds`; its place is taken. Or whose
        budget it goes beyond: then nothing is counted.
    """
    logs: list[CallLog] = []
    longest = 0.0
    for claim in claims:
        for rule, key in claim.rules_for(method):
            log = rule.log(key)
            wait = log.wait(now)
            if wait > rule.config.wait_seconds:
                claim.budget.n_refused += 1
                return Refused(claim, wait)
            longest = max(longest, wait)
            logs.append(log)
    for log in logs:
        log.add(now + longest)
    for claim in claims:
        claim.budget.n_calls += 1
    return longest


class Share:
    """An upstream's claim for one method: nobody waits, for another upstream can be asked instead."""

    __slots__ = ("_budget", "_logs")

    def __init__(self, claim: Claim, method: str) -> None:
        self._budget = claim.budget
        self._logs = tuple(rule.log(key) for rule, key in claim.rules_for(method))

    def has_room(self, now: float) -> bool:
        """Say whether a call may go out; one that may not is counted as refused."""
        for log in self._logs:
            if log.wait(now) > 0:
                self._budget.n_refused += 1
                return False
        return True

    def count(self, now: float) -> None:
        """Write down a call that goes out, room or none: our own questions are never held back."""
        self._budget.n_calls += 1
        for log in self._logs:
            log.add(now)


def share(claim: Claim | None, method: str) -> Share | None:
    """Return what a method may draw on; None where nothing limits it."""
    return Share(claim, method) if claim is not None and claim.budget.matching(method) else None
