"""
A flight: one client request on its way through the upstreams. Pure: no clock, no I/O.

The shell starts a flight, carries out each command, and reports what became of each attempt; the flight answers
with the next command. Its rules, in the order they are applied:

    1  An answer (a result that is no miss, or a verdict of the chain) is served; whoever is still trying is cancelled.
    2  A miss above every head is the answer too (`beyond_head`): nobody has that block.
    3  Else the next upstream of the same list is tried at once, whatever siblings are doing.
    4  With nobody left to try while a sibling is still trying, the flight waits for it.
    5  Tiered: once every eligible primary failed or missed, the fallbacks are tried (the escape).
    6  Once everybody was tried: the next round, if the policy has one left (after a miss there are fewer, as a rule
       none); else a remembered miss is served; else the flight fails, and the last JSON-RPC error is what the client
       gets.

Writes go elsewhere only when the request surely did not reach the node.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

U = TypeVar("U")
"""An upstream, as the shell knows it; the flight only hands it back."""

TRY, WAIT, SERVE, SERVE_MISS, FAIL, PAUSE = range(6)
"""
Commands: try (upstream, kind, cause) · wait for siblings · serve this attempt's answer · serve the remembered miss ·
fail · pause for the retry delay, then call `resume`.
"""

ANSWERED, MISSED, REFUSED, FAILED = range(4)
"""
What became of an attempt: an answer · an empty result that means "not here" · the node or its gate refused without
executing (rate limit, quota, no such method, HTTP 4xx/5xx of a gate, connection refused) · anything else.
"""

_CAUSES = {"timeout": "timeout", "rate_limited": "rate_limited", "quota": "quota"}


class Command(Generic[U]):
    """One instruction to the shell; `upstream`, `kind` and `cause` are set for TRY only."""

    __slots__ = ("cause", "kind", "op", "upstream")

    def __init__(self, op: int, upstream: U | None = None, kind: str = "", cause: str = "") -> None:
        self.op = op
        self.upstream = upstream
        self.kind = kind
        self.cause = cause


_WAIT: "Command[object]" = Command(WAIT)
_SERVE: "Command[object]" = Command(SERVE)
_SERVE_MISS: "Command[object]" = Command(SERVE_MISS)
_FAIL: "Command[object]" = Command(FAIL)
_PAUSE: "Command[object]" = Command(PAUSE)


class Flight(Generic[U]):
    """See the module's text; one object serves one request."""

    __slots__ = (
        "_candidates",
        "_cause",
        "_empty_rounds",
        "_fallbacks",
        "_first_cause",
        "_has_miss",
        "_is_write",
        "_live",
        "_next",
        "_primaries",
        "_round",
        "_rounds",
        "beyond_head",
        "escaped",
        "hedges_left",
    )  # fmt: skip

    def __init__(
        self,
        primaries: Sequence[U],
        fallbacks: Sequence[U],
        *,
        rounds: int = 1,
        empty_rounds: int = 1,
        hedges: int = 0,
        is_write: bool = False,
        first_cause: str = "",
        escape_cause: str = "primary_error",
    ) -> None:
        """
        Args:
            primaries: whom to try first, best first; in an ordered network everybody.
            fallbacks: whom the escape reaches; empty in an ordered network.
            rounds: passes over the lists, the first included.
            empty_rounds: passes while there was a miss; never more than `rounds`.
            hedges: parallel attempts that may be fired.
            first_cause: cause of the very first attempt (`policy_order` where a fallback heads the order).
            escape_cause: cause of the escape when no primary is eligible at all.
        """
        self._primaries = primaries
        self._fallbacks = fallbacks
        self._candidates = primaries
        self._next = 0
        self._live = 0
        self._round = 1
        self._rounds = rounds
        self._empty_rounds = min(rounds, empty_rounds)
        self._cause = escape_cause
        self._first_cause = first_cause
        self._has_miss = False
        self._is_write = is_write
        self.hedges_left = 0 if is_write else hedges
        self.beyond_head = False
        self.escaped = False

    @property
    def round(self) -> int:
        """The pass over the lists that is under way, from 1."""
        return self._round

    @property
    def n_live(self) -> int:
        """Attempts under way."""
        return self._live

    def start(self) -> Command[U]:
        """Return the first command."""
        if self._primaries:
            return self._try("client", self._first_cause)
        return self._go_on()

    def finished(self, outcome: int, error_class: str = "", *, beyond_head: bool = False) -> Command[U]:
        """
        Take what became of one attempt and return what to do now.

        Args:
            outcome: ANSWERED, MISSED, REFUSED or FAILED.
            error_class: for REFUSED and FAILED, in the contract's vocabulary.
            beyond_head: for MISSED: the block asked for is above every head, and the network accepts that.
        """
        self._live -= 1
        if outcome == ANSWERED:
            return _SERVE  # type: ignore[return-value]
        if outcome == MISSED:
            if beyond_head:
                self.beyond_head = True
                return _SERVE  # type: ignore[return-value]
            self._has_miss = True
            self._cause = "empty_at_head"
        else:
            self._cause = _CAUSES.get(error_class, "primary_error")
            if self._is_write and outcome == FAILED:
                return _FAIL  # type: ignore[return-value]
        return self._go_on()

    def skipped(self, command: Command[U], cause: str) -> Command[U]:
        """Take that the upstream of a TRY was not asked, and why; return what to do instead."""
        self._live -= 1
        if command.kind == "hedge":
            return self._try("hedge", "hedge") if self._next < len(self._candidates) else _WAIT  # type: ignore[return-value]
        self._cause = cause
        return self._go_on()

    def hedge(self) -> Command[U]:
        """Return what to do when the hedge delay has passed: one more of the same list, or nothing."""
        if self.hedges_left > 0 and self._next < len(self._candidates):
            self.hedges_left -= 1
            return self._try("hedge", "hedge")
        return _WAIT  # type: ignore[return-value]

    def resume(self) -> Command[U]:
        """Return the first command of the round that a PAUSE announced."""
        self._round += 1
        self._candidates = self._primaries or self._fallbacks
        self._next = 0
        return self._try("retry", "retry")

    def _go_on(self) -> Command[U]:
        if self._next < len(self._candidates):
            return self._try("client" if self._round == 1 else "retry", self._cause)
        if self._live:
            return _WAIT  # type: ignore[return-value]
        if self._candidates is self._primaries and self._fallbacks:
            self._candidates = self._fallbacks
            self._next = 0
            self.escaped = True
            return self._try("client" if self._round == 1 else "retry", self._cause)
        rounds = self._empty_rounds if self._has_miss else self._rounds
        if self._round < rounds and (self._primaries or self._fallbacks):
            return _PAUSE  # type: ignore[return-value]
        return _SERVE_MISS if self._has_miss else _FAIL  # type: ignore[return-value]

    def _try(self, kind: str, cause: str) -> Command[U]:
        upstream = self._candidates[self._next]
        self._next += 1
        self._live += 1
        return Command(TRY, upstream, kind, cause)
