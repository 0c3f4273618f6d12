"""
How far everyone is: the heads of each upstream, and what the network's heads are for routing.

An unknown head is one that was never observed or has expired; it is never 0. A shadow's heads are tracked for the
comparison and have no part in the network's. A head of more than `OUTLIER_BLOCKS` above the second highest does not
set the network's head (a lying node), nor does one that answers for another chain, and the update says that it was
left out. How far behind an upstream is counts in blocks, and in seconds since the network had the block that it lacks.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

Axis = Literal["latest", "safe", "finalized"]
AXES: Final[tuple[Axis, ...]] = ("latest", "safe", "finalized")

OUTLIER_BLOCKS: Final = 128
OUTLIER_SECONDS: Final = 60.0
_HISTORY: Final = 256
"""Hashes kept for each upstream, to see a block replaced."""


class HeadChange(Struct, frozen=True):
    """One upstream's head on one axis has changed (or was seen first)."""

    upstream: str
    axis: Axis
    number: int
    hash: str
    parent_hash: str
    source: str
    is_outlier: bool


class ReorgSeen(Struct, frozen=True):
    """A block that the upstream had reported was replaced."""

    upstream: str
    number: int
    depth: int
    old_hash: str
    new_hash: str


class Position:
    """What one upstream has said; numbers are None while unknown."""

    __slots__ = ("finalized", "hashes", "is_left_out", "is_shadow", "latest", "safe", "seen_at")

    def __init__(self, is_shadow: bool) -> None:
        self.is_shadow = is_shadow
        self.is_left_out = is_shadow
        """It has no part in the network's heads: a shadow, or on another chain."""
        self.latest: int | None = None
        self.safe: int | None = None
        self.finalized: int | None = None
        self.seen_at = dict.fromkeys(AXES, 0.0)
        self.hashes: dict[int, str] = {}


class HeadBook:
    """The heads of one network. Times are monotonic seconds, given by the caller."""

    def __init__(self, upstreams: dict[str, bool], expiry_seconds: dict[str, float]) -> None:
        """
        Args:
            upstreams: upstream id → whether it is a shadow.
            expiry_seconds: upstream id → how long an observation holds.
        """
        self.positions = {upstream: Position(is_shadow) for upstream, is_shadow in upstreams.items()}
        self._expiry = expiry_seconds
        self._pace: tuple[float, int] | None = None
        self._block_seconds: float | None = None
        self._reached: deque[tuple[int, float]] = deque(maxlen=_HISTORY)
        """Heads of the network as it grew, with the time of each."""
        self.latest: int | None = None
        self.safe: int | None = None
        self.finalized: int | None = None
        self.version = 0
        """Grows with every change of any head: caches of encoded heads compare it."""

    def observe(
        self,
        upstream: str,
        axis: Axis,
        number: int,
        now: float,
        *,
        block_hash: str = "",
        parent_hash: str = "",
        source: str = "poll",
    ) -> list[HeadChange | ReorgSeen]:
        """Take an observation; return what changed, oldest first. A head learnt from a response only moves forward."""
        position = self.positions[upstream]
        before: int | None = getattr(position, axis)
        if source == "response" and before is not None and number <= before:
            if number == before:
                position.seen_at[axis] = now
            return []
        position.seen_at[axis] = now
        changes: list[HeadChange | ReorgSeen] = []
        replaced = False
        if axis == "latest" and block_hash:
            reorg = self._reorg(upstream, position, before, number, block_hash, parent_hash)
            if reorg is not None:
                changes.append(reorg)
                replaced = True
        if before == number and not replaced:
            return changes
        setattr(position, axis, number)
        self._recompute(axis)
        if axis == "latest" and not position.is_left_out and before != number:
            self._learn_pace(now)
            self._note_growth(now)
        head: int | None = getattr(self, axis)
        is_outlier = not position.is_shadow and (position.is_left_out or (head is not None and head < number))
        changes.append(HeadChange(upstream, axis, number, block_hash, parent_hash, source, is_outlier))
        return changes

    def expire(self, now: float) -> list[tuple[str, Axis]]:
        """Forget observations that are too old; return which."""
        gone: list[tuple[str, Axis]] = []
        for upstream, position in self.positions.items():
            for axis in AXES:
                if getattr(position, axis) is not None and now - position.seen_at[axis] > self._expiry[upstream]:
                    setattr(position, axis, None)
                    gone.append((upstream, axis))
        for axis in {axis for _, axis in gone}:
            self._recompute(axis)
        return gone

    def adopt(self, before: "HeadBook", upstreams: Iterable[str]) -> None:
        """Take over what another book knows of upstreams that are the same in both."""
        for upstream in upstreams:
            old, new = before.positions[upstream], self.positions[upstream]
            if old.is_shadow is not new.is_shadow:
                continue
            for name in Position.__slots__:
                value = getattr(old, name)
                setattr(new, name, dict(value) if isinstance(value, dict) else value)
        self._pace, self._block_seconds = before._pace, before._block_seconds
        self._reached = before._reached.copy()
        for axis in AXES:
            self._recompute(axis)

    def leave_out(self, upstream: str, is_left_out: bool) -> None:
        """Let an upstream set the network's heads, or not: it answers for another chain."""
        position = self.positions[upstream]
        if position.is_shadow or position.is_left_out is is_left_out:
            return
        position.is_left_out = is_left_out
        for axis in AXES:
            self._recompute(axis)

    def lag_blocks(self, upstream: str) -> int | None:
        """Return how many blocks an upstream is behind the network's head; None while either is unknown."""
        own = self.positions[upstream].latest
        return None if own is None or self.latest is None else max(0, self.latest - own)

    def lag_seconds(self, upstream: str, now: float) -> float | None:
        """
        Return for how long the network has had a block that the upstream lacks; None while either head is unknown.

        After more growth than is remembered, it is the age of the oldest that is.
        """
        lag = self.lag_blocks(upstream)
        if not lag:
            return None if lag is None else 0.0
        own = self.positions[upstream].latest
        assert own is not None
        return next((max(0.0, now - at) for number, at in self._reached if number > own), 0.0)

    def is_beyond(self, number: int, *, finalized: bool = False) -> bool:
        """Say whether a block number is above the network's head at the confidence asked for; unknown heads say no."""
        head = self.finalized if finalized else self.latest
        return head is not None and number > head

    def _recompute(self, axis: Axis) -> None:
        self.version += 1
        known = sorted(
            (n for p in self.positions.values() if not p.is_left_out and (n := getattr(p, axis)) is not None),
            reverse=True,
        )
        reach = OUTLIER_BLOCKS
        if self._block_seconds:
            reach = max(reach, round(OUTLIER_SECONDS / self._block_seconds))
        while len(known) > 1 and known[0] - known[1] > reach:
            known.pop(0)
        setattr(self, axis, known[0] if known else None)

    def _note_growth(self, now: float) -> None:
        head = self.latest
        while head is not None and self._reached and self._reached[-1][0] > head:
            self._reached.pop()  # it fell: what was above is to be reached anew
        if head is not None and (not self._reached or self._reached[-1][0] < head):
            self._reached.append((head, now))

    def _learn_pace(self, now: float) -> None:
        if self.latest is None:
            return
        if self._pace is None or self.latest < self._pace[1]:
            self._pace = (now, self.latest)
        elif self.latest - self._pace[1] >= 8 and now > self._pace[0]:
            self._block_seconds = (now - self._pace[0]) / (self.latest - self._pace[1])
            self._pace = (now, self.latest)

    def _reorg(
        self, upstream: str, position: Position, before: int | None, number: int, block_hash: str, parent_hash: str
    ) -> ReorgSeen | None:
        """Note the hash of the new head; report the lowest block that it is known to have replaced."""
        hashes = position.hashes
        lowest: tuple[int, str, str] | None = None
        known = hashes.get(number)
        if known is not None and known != block_hash:
            lowest = (number, known, block_hash)
        parent = hashes.get(number - 1)
        if parent_hash and parent is not None and parent != parent_hash:
            lowest = (number - 1, parent, parent_hash)
            hashes[number - 1] = parent_hash
        hashes.pop(number, None)
        hashes[number] = block_hash
        if lowest is not None:
            for stale in [n for n in hashes if n > number]:
                del hashes[stale]
        while len(hashes) > _HISTORY:
            del hashes[next(iter(hashes))]  # the one noted longest ago: after a restart at block 0 that is a high one
        if lowest is None:
            return None
        depth = max((before if before is not None else number) - lowest[0] + 1, 1)
        return ReorgSeen(upstream, lowest[0], depth, lowest[1], lowest[2])
