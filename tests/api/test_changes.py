"""What is new: counted, numbered, kept, put together."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from analytics.questions import load
from api.changes import KINDS, Change, Changes, Mark, events

AT = datetime(2026, 12, 1, tzinfo=UTC)


def marks(**counts: int) -> Mapping[str, Mark]:
    return {kind: Mark(n, AT if n else None) for kind, n in counts.items()}


def test_the_first_marks_are_no_change() -> None:
    """Counting begins there."""
    changes = Changes("a")

    assert list(changes.saw(marks(requests=5, heads=1))) == []
    assert changes.number == 0


def test_a_change_says_how_much_more_there_is() -> None:
    """Of what grew; a kind that was not there before begins at none."""
    changes = Changes("a")
    changes.saw(marks(requests=5, heads=1))

    assert list(changes.saw(marks(requests=7, heads=1, alerts=2))) == [
        Change(1, "requests", 2, AT),
        Change(2, "alerts", 2, AT),
    ]
    assert list(changes.saw(marks(requests=7, heads=1, alerts=2))) == []


@pytest.mark.parametrize(
    ("mark", "n"), [(Mark(5, AT.replace(hour=1)), 0), (Mark(4, AT), 0), (Mark(6, AT.replace(hour=1)), 1)]
)
def test_less_or_newer_is_a_change_too(mark: Mark, n: int) -> None:
    """Something stored was replaced or taken away: there is something to see, and nothing more of it."""
    changes = Changes("a")
    changes.saw({"alerts": Mark(5, AT)})

    assert [change.n for change in changes.saw({"alerts": mark})] == [n]


def test_counting_anew_tells_nothing() -> None:
    """Marks of another range are only compared with marks of the same."""
    changes = Changes("a")
    changes.saw(marks(requests=500))
    changes.count_anew(marks(requests=20))

    assert list(changes.saw(marks(requests=20))) == []
    assert [change.n for change in changes.saw(marks(requests=21))] == [1]


def test_what_follows_a_place_is_put_together_by_kind() -> None:
    """One of each kind with the sum, in the order of their numbers; nothing behind the last."""
    changes = Changes("a")
    changes.saw(marks(requests=0, heads=0))
    for n in (1, 2, 3):
        changes.saw(marks(requests=n, heads=min(n, 2)))

    assert list(changes.after(1)) == [Change(4, "heads", 2, AT), Change(5, "requests", 2, AT)]
    assert list(changes.after(5)) == []


@pytest.mark.parametrize(
    ("last_id", "place"),
    [
        ("a-5", 5), ("a-3", 3), ("a-2", 2), ("a-1", None), ("a-0", None), ("a-6", None),
        ("b-5", None), ("a", None), ("-5", None), ("a--5", None), ("a-٥", None), ("a-5 ", None),
        ("a-" + "9" * 40, None),
    ],
)  # fmt: skip
def test_a_place_is_known_as_long_as_all_behind_it_is_kept(last_id: str, place: int | None) -> None:
    """Five changes of which three are kept: 3 to 5. What is no id of this run has no place."""
    changes = Changes("a", kept=3)
    changes.saw(marks(requests=0))
    for n in range(1, 6):
        changes.saw(marks(requests=n))

    assert changes.place(last_id) == place


def test_before_the_first_change_the_only_place_is_the_beginning() -> None:
    """Where a listener is who came before anything was new."""
    changes = Changes("a")

    assert (changes.place("a-0"), changes.place("a-1")) == (0, None)


def test_an_event_is_a_line_each_and_an_empty_one() -> None:
    """As the standard has it; times as everywhere in the API."""
    changes = Changes("a")
    changes.saw(marks(requests=0, alerts=1))
    changes.saw({"requests": Mark(3, AT), "alerts": Mark(0, None)})
    first, second, rest = events(changes, 0).decode().split("\n\n")

    assert first.split("\n")[:2] == ["event: requests", "id: a-1"]
    assert json.loads(first.split("\n")[2].removeprefix("data: ")) == {"n": 3, "newest_at": "2026-12-01T00:00:00.000Z"}
    assert json.loads(second.split("\n")[2].removeprefix("data: ")) == {"n": 0, "newest_at": None}
    assert rest == ""
    assert events(changes, 2) == b""


def test_kinds_are_those_that_the_question_names() -> None:
    """And no other."""
    said = next(column.meaning for column in load("stored_since").columns if column.name == "kind")

    assert tuple(said.replace(" or ", ", ").split(", ")) == KINDS
