"""
Who tells: of several alert services over one store one leads, the others stand by. Pure: what the store says and the
time come in.

                nobody, released, or I led                  `settle` later mine is still the greatest
    standing_by ─────────────────────────────► claiming ────────────────────────────────────────────► leading
        ▲      or silent for LEASE_SECONDS        │                                                      │
        └─────────────────────────────────────────┴────────────── a greater claim is there ──────────────┘

A claim is a row with a greater epoch; the greatest (epoch, holder) counts. The leader shows by a row every
RENEW_SECONDS that it lives, and acts only until VALID_SECONDS after it last began to ask the store and found its own
claim the greatest, by its own clock, which goes on while the machine sleeps. Who stands by claims when he has seen no
new row for LEASE_SECONDS by his clock, the store answering, and acts only VALID_SECONDS later: by then whoever led has
seen the claim, or may not act any more. So two never act at the same time, whatever their clocks say, and a store that
is away moves nothing.

A service that has seen no other lately may act although the store is away: nobody can have claimed but an unknown.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

RENEW_SECONDS: Final = 4.0
VALID_SECONDS: Final = 12.0
LEASE_SECONDS: Final = 16.0
SETTLE_SECONDS: Final = 1.0
"""Two services that start over an empty table see each other's claim within it."""
OTHERS_SECONDS: Final = 60.0
"""Who has written a row within it is there."""

Role = Literal["standing_by", "claiming", "leading"]
Action = Literal["wait", "claim", "renew", "lead", "step_down"]


@dataclass(frozen=True, slots=True)
class View:
    """What the store says: the greatest claim, and who else is there."""

    epoch: int = 0
    """0 = nobody has claimed."""
    holder: str = ""
    host: str = ""
    state: str = ""
    """`claiming`, `leading` or `released`, as its newest row says."""
    beat: int = 0
    """Rows of the greatest claim: another number means that its holder lives."""
    is_contested: bool = False
    """Another service has claimed the same epoch."""
    n_others: int = 0
    """Other services that have written lately."""


@dataclass(slots=True)
class Lease:
    """One service's part."""

    holder: str
    """The same in the next life only where two processes can never have it at once."""
    role: Role = "standing_by"
    epoch: int = 0
    has_others: bool = True
    """Whether another service was there when the store was last asked; unknown counts as yes."""
    _watched: tuple[int, str, int] | None = None
    _watched_since: float = 0.0
    _claimed_at: float = 0.0
    _settle: float = 0.0
    _wrote_at: float = field(default=float("-inf"))
    _confirmed_at: float = field(default=float("-inf"))

    def next(self, now: float, asked_at: float, view: View) -> Action:
        """
        Return what to do, now that the store has answered.

        Args:
            now: after the answer; any time may have passed since the question.
            asked_at: before the question.
            view: the answer.

        `claim`: write a row of epoch `view.epoch + 1`, then call `claimed`; `renew`: write a row with the role, then
        call `renewed`; `lead`: it leads now, the same; `step_down`: it stands by now.
        """
        self.has_others = view.n_others > 0
        if self.role == "standing_by":
            return "claim" if self._is_free(now, view) else "wait"
        if (view.epoch, view.holder) != (self.epoch, self.holder):
            was = self.role
            self.role, self._watched = "standing_by", None
            return "step_down" if was == "leading" else "wait"
        self._confirmed_at = asked_at
        if self.role == "claiming":
            if view.is_contested:  # the other may have seen no other claim than his own yet
                self._settle = VALID_SECONDS
            if asked_at < self._claimed_at + self._settle:
                return "renew" if now - self._wrote_at >= RENEW_SECONDS else "wait"
            self.role = "leading"
            return "lead"
        return "renew" if now - self._wrote_at >= RENEW_SECONDS else "wait"

    def _is_free(self, now: float, view: View) -> bool:
        if view.epoch == 0 or view.state == "released" or view.holder == self.holder:
            return True
        seen = (view.epoch, view.holder, view.beat)
        if seen != self._watched:
            self._watched, self._watched_since = seen, now
        return now - self._watched_since >= LEASE_SECONDS

    def lost_sight(self) -> None:
        """The store did not answer: what was not seen meanwhile does not count as silence."""
        self._watched = None

    def claimed(self, now: float, view: View) -> None:
        """
        A claim is written.

        Args:
            now: after it was written.
            view: what it was made upon.
        """
        settle = VALID_SECONDS
        if view.epoch == 0 or view.state == "released":
            settle = SETTLE_SECONDS
        elif view.holder == self.holder and view.state == "leading":
            settle = 0.0  # the last life over this folder had waited long enough
        self.role, self.epoch = "claiming", view.epoch + 1
        self._wrote_at, self._claimed_at, self._settle = now, now, settle

    def renewed(self, now: float) -> None:
        """A row is written: this service lives."""
        self._wrote_at = now

    def may_act(self, now: float) -> bool:
        """Return whether no other service can be acting."""
        return self.role == "leading" and (now - self._confirmed_at < VALID_SECONDS or not self.has_others)
