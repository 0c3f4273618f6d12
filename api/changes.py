"""
What is new, by kind: told from counts of what is stored, numbered, and kept for a while for whoever was away.

A change says only that there is something new of a kind, how much, and how new; who wants to see it asks for it. So
changes of one kind may be put together, and a listener who is behind never needs more than one a kind.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from api import values

KINDS: Final = ("alerts", "breakers", "comparisons", "heads", "requests")
"""Those of the question `stored_since`."""
KEPT: Final = 512
"""Changes that are kept: some minutes of all kinds, hours of quiet ones."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How much there is of a kind."""

    n: int
    newest_at: datetime | None


@dataclass(frozen=True, slots=True)
class Change:
    """Something new of a kind."""

    number: int
    """Counts up by one, over all kinds."""
    kind: str
    n: int
    """How much more than at the change before; 0 where only something stored has changed."""
    newest_at: datetime | None


class Changes:
    """The changes seen so far, the last of them kept."""

    def __init__(self, name: str, kept: int = KEPT) -> None:
        """
        Args:
            name: told from that of every other run, so that an id of another one is known as such.
            kept: most changes to keep.
        """
        self.name = name
        self._kept: deque[Change] = deque(maxlen=kept)
        self._marks: dict[str, Mark] | None = None
        self.number = 0
        """Of the last change."""

    def saw(self, marks: Mapping[str, Mark]) -> Sequence[Change]:
        """Return the changes since the marks before; the first ones are only where counting begins."""
        before, self._marks = self._marks, dict(marks)
        if before is None:
            return ()
        found = []
        for kind, mark in marks.items():
            former = before.get(kind, Mark(0, None))
            if mark != former:
                self.number += 1
                found.append(Change(self.number, kind, max(mark.n - former.n, 0), mark.newest_at))
        self._kept.extend(found)
        return found

    def count_anew(self, marks: Mapping[str, Mark]) -> None:
        """Count on from other marks, as of another range of time; nothing of it is a change."""
        self._marks = dict(marks)

    def id(self, number: int) -> str:
        """Return what names a change to listeners."""
        return f"{self.name}-{number}"

    def place(self, last_id: str) -> int | None:
        """Return the number of the change that a listener has seen last; None where what followed is not kept."""
        name, _, text = last_id.rpartition("-")
        if name != self.name or not (text.isascii() and text.isdigit()) or len(text) > 18:
            return None
        number = int(text)
        oldest = self._kept[0].number if self._kept else self.number + 1
        return number if oldest - 1 <= number <= self.number else None

    def after(self, number: int) -> Sequence[Change]:
        """Return what is new behind a change, put together to one of each kind, by number."""
        found: dict[str, Change] = {}
        for change in self._kept:
            if change.number > number:
                former = found.pop(change.kind, None)
                n = change.n + (former.n if former else 0)
                found[change.kind] = Change(change.number, change.kind, n, change.newest_at)
        return tuple(found.values())


def event(kind: str, event_id: str, content: Mapping[str, object]) -> bytes:
    """Return one event as a stream of server-sent events has it. Source: HTML standard, 9.2.6."""
    return b"event: %b\nid: %b\ndata: %b\n\n" % (kind.encode(), event_id.encode(), msgspec.json.encode(content))


def events(changes: Changes, number: int) -> bytes:
    """Return what is new behind a change as events; empty where nothing is."""
    return b"".join(
        event(
            change.kind,
            changes.id(change.number),
            {"n": change.n, "newest_at": None if change.newest_at is None else values.moment(change.newest_at)},
        )
        for change in changes.after(number)
    )
