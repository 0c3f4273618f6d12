"""Where the next segment comes from: a decision over sizes and positions, without touching a file."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recycle:
    """Take the consumed segment that begins with `base`: its pages are there already."""

    base: int


@dataclass(frozen=True, slots=True)
class Remove:
    """The consumed segment that begins with `base` has another size than is wanted now: make room, then ask again."""

    base: int


@dataclass(frozen=True, slots=True)
class Create:
    """Allocate a new file."""


def plan_next(
    sizes_by_base: Mapping[int, int], consumed: int, segment_bytes: int, max_bytes: int
) -> Recycle | Remove | Create | None:
    """
    Return what to do for the next segment; None when the log is full.

    Args:
        sizes_by_base: size of each segment file in bytes by its first record; the newest is the one in use.
        consumed: no consumer needs a record below this one; 0 when there is no consumer.
        segment_bytes: size of a new segment.
        max_bytes: bound of all files together.

    A segment is consumed when the next one begins at or below `consumed`; the newest never is.
    """
    bases = sorted(sizes_by_base)
    if len(bases) > 1 and bases[1] <= consumed:
        return Recycle(bases[0]) if sizes_by_base[bases[0]] == segment_bytes else Remove(bases[0])
    if sum(sizes_by_base.values()) + segment_bytes <= max_bytes:
        return Create()
    return None
