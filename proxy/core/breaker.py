"""
A breaker: stops calls to an upstream that keeps failing, and lets a few through later to see. Pure: no clock, no I/O.

Each call needs a permit, and gives it back by `report`, whatever became of it:

    state      permit                           report
    closed     always                           enough failures open it
    open       none before `open_for` passed,   ignored: the call began before
               then it is half open
    half_open  at most `trials` at once         successes enough close it; a failure too many opens it again

Two ways to say "enough". By `threshold`: so many failures in a row, any success between starts the count anew; one
trial, which decides. By window: `failure_count` of the last `failure_capacity` outcomes; `success_count` of
`success_capacity` trials.

An outcome is success, failure or ignore; what counts as which is the caller's policy. An ignored trial gives its permit
back and decides nothing.
"""

from collections import Counter, deque
from typing import Final, Literal

from msgspec import Struct

from gnomon.config.model import Breaker as Policy

State = Literal["closed", "open", "half_open"]
CLOSED, OPEN, HALF_OPEN = "closed", "open", "half_open"
SUCCESS, FAILURE, IGNORE = range(3)

Permit = int
"""0: given while closed; else the number of the half-open phase that it is a trial of."""
FREE: Final[Permit] = 0


class Transition(Struct, frozen=True):
    """A change of state: why, and what was counted since the breaker was made."""

    from_state: State
    to_state: State
    reason: str
    counters: dict[str, int]


class Breaker:
    """See the module's text. Times are monotonic seconds, given by the caller."""

    __slots__ = (
        "_failed", "_in_trial", "_opened_at", "_phase", "_policy", "_reopens_above", "_trial_failures",
        "_trial_successes", "_trials", "_window", "n_calls", "n_misses", "n_skipped", "reasons", "state",
    )  # fmt: skip

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._trials = 1 if policy.threshold else max(1, policy.success_capacity)
        self._reopens_above = 0 if policy.threshold else max(0, policy.success_capacity - policy.success_count)
        self.state: State = "closed"
        self._window: deque[bool] = deque(maxlen=policy.failure_capacity if not policy.threshold else 1)
        self._failed = 0
        self._opened_at = 0.0
        self._phase = 0
        self._in_trial = self._trial_successes = self._trial_failures = 0
        self.n_calls = 0
        self.n_misses = 0
        self.n_skipped = 0
        self.reasons: Counter[str] = Counter()

    @property
    def is_settled(self) -> bool:
        """Closed, and a success would change nothing: who reports one may leave it out."""
        return self.state == CLOSED and not self._failed and bool(self._policy.threshold)

    def permit(self, now: float) -> tuple[Permit | None, Transition | None]:
        """Return a permit for one call (None: skip this upstream), and the transition that asking has caused."""
        if self.state == CLOSED:
            return FREE, None
        transition = None
        if self.state == OPEN:
            if now - self._opened_at < self._policy.open_for_seconds:
                self.n_skipped += 1
                return None, None
            self._phase += 1
            self._in_trial = self._trial_successes = self._trial_failures = 0
            transition = self._go("half_open", "")
        if self._in_trial + self._trial_successes + self._trial_failures >= self._trials:
            self.n_skipped += 1
            return None, transition
        self._in_trial += 1
        return self._phase, transition

    def may_try(self, now: float) -> bool:
        """Say whether `permit` would give one; nothing is counted."""
        if self.state == OPEN:
            return now - self._opened_at >= self._policy.open_for_seconds
        return self.state == CLOSED or self._in_trial + self._trial_successes + self._trial_failures < self._trials

    def report(self, permit: Permit, outcome: int, now: float, reason: str = "") -> Transition | None:
        """
        Give a permit back; return the transition that the outcome has caused.

        Args:
            outcome: SUCCESS, FAILURE or IGNORE.
            reason: what went wrong, in the vocabulary of error classes; counted whatever the outcome.
        """
        self.n_calls += 1
        if reason:
            self.reasons[reason] += 1
        if outcome == FAILURE:
            self.n_misses += 1
        if permit == FREE:
            return self._count(outcome, now, reason) if self.state == CLOSED else None
        if self.state != HALF_OPEN or permit != self._phase:
            return None  # a trial of an earlier phase, which is decided
        self._in_trial -= 1
        return self._try(outcome, now, reason)

    def counters(self) -> dict[str, int]:
        """Return the counts since the breaker was made: calls, misses, skipped, and each reason."""
        return {"calls": self.n_calls, "misses": self.n_misses, "skipped": self.n_skipped, **self.reasons}

    def _count(self, outcome: int, now: float, reason: str) -> Transition | None:
        policy = self._policy
        if outcome == IGNORE:
            return None
        is_failure = outcome == FAILURE
        if policy.threshold:
            self._failed = self._failed + 1 if is_failure else 0
            return self._open(now, reason) if self._failed >= policy.threshold else None
        window = self._window
        if len(window) == window.maxlen:
            self._failed -= window[0]
        window.append(is_failure)
        self._failed += is_failure
        return self._open(now, reason) if is_failure and self._failed >= policy.failure_count else None

    def _try(self, outcome: int, now: float, reason: str) -> Transition | None:
        if outcome == SUCCESS:
            self._trial_successes += 1
            if self._trial_successes >= (1 if self._policy.threshold else self._policy.success_count):
                self._failed = 0
                self._window.clear()
                return self._go("closed", reason)
        elif outcome == FAILURE:
            self._trial_failures += 1
            if self._trial_failures > self._reopens_above:
                return self._open(now, reason)
        return None

    def _open(self, now: float, reason: str) -> Transition:
        self._opened_at = now
        return self._go("open", reason)

    def _go(self, state: State, reason: str) -> Transition:
        before, self.state = self.state, state
        return Transition(before, state, reason, self.counters())
