"""Two answers beside each other: every line of both, once, in order, and differences where the comparer has them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.pages import aligned
from gnomon.compare import exact, judge
from gnomon.compare.preview import preview
from gnomon.compare.walk import ABSENT

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def rows_of(a: Any, b: Any) -> list[aligned.Row]:
    """Return the lines of two values, differing where the comparer says so."""
    left, right = (json.dumps(value).encode() for value in (a, b))
    primary, shadow = (judge.Answer(kind="result", fragment=text) for text in (left, right))
    found = preview(judge.Question(method="x_y"), primary, shadow, judge.NO_POLICY)
    return aligned.rows(exact.decode(left), exact.decode(right), [place.path for place in found.places])


def text_of(rows: list[aligned.Row], side: str) -> str:
    """Return one side's lines as one JSON text."""
    sides = [getattr(row, side) for row in rows]
    return "".join(f"{one.name}{one.whole or one.text}{one.end}" for one in sides if one is not None)


@given(JSON, JSON)
def test_each_side_is_whole(a: Any, b: Any) -> None:
    """Its lines put together are its answer; its line numbers count without a gap."""
    rows = rows_of(a, b)

    for side, value in (("left", a), ("right", b)):
        numbers = [getattr(row, side).number for row in rows if getattr(row, side) is not None]
        assert numbers == list(range(1, len(numbers) + 1))
        assert sorted_json(json.loads(text_of(rows, side))) == sorted_json(value)


def sorted_json(value: Any) -> str:
    """Lists stay in order but for partners, which stand beside each other: compared as sets of elements."""
    if isinstance(value, list):
        return json.dumps(sorted(sorted_json(one) for one in value))
    if isinstance(value, dict):
        return json.dumps({name: sorted_json(one) for name, one in sorted(value.items())})
    return json.dumps(value)


@given(JSON)
def test_equal_answers_have_no_difference(value: Any) -> None:
    """Every line is on both sides, and equal."""
    rows = rows_of(value, value)

    assert all(row.is_equal and row.left is not None and row.right is not None for row in rows)


@given(JSON, JSON)
def test_what_differs_is_marked(a: Any, b: Any) -> None:
    """Where the comparer finds something, at least one line is marked; a line that is on one side alone always is."""
    rows = rows_of(a, b)
    marked = [row for row in rows if row.path]

    assert bool(marked) == (exact.canonical(a) != exact.canonical(b)) or not a or not b
    assert all(row.path for row in rows if row.left is None or row.right is None)


def test_members_keep_their_place() -> None:
    """A member that only one side has stands behind its neighbour, against nothing."""
    rows = rows_of({"a": 1, "b": 2}, {"a": 1, "x": 9, "b": 3})

    assert [(row.left and row.left.text, row.right and row.right.text, row.path) for row in rows] == [
        ("{", "{", ""), ("1", "1", ""), (None, "9", "$.result.x"), ("2", "3", "$.result.b"), ("}", "}", ""),
    ]  # fmt: skip


def test_elements_stand_beside_their_partner() -> None:
    """Lists of other lengths are put together by key, as the comparer does."""
    log = [{"transactionHash": "0x1", "logIndex": f"0x{n}"} for n in range(3)]
    rows = rows_of(log, [log[0], {**log[2], "data": "0x"}])
    left_over = [row for row in rows if row.right is None]

    assert {row.path for row in left_over} == {"$.result"}
    assert [row.path for row in rows if row.right and row.right.name == '"data": '] == ["$.result[2].data"]


@pytest.mark.parametrize(
    ("a", "b", "left", "right"),
    [
        ("0x" + "1" * 64, "0x" + "1" * 63 + "2", '111111111"', '112"'),
        ("0x" + "a" * 64, "0x" + "a" * 64, '"0xaaaaaaaaa', "aaaaaaa"),
    ],
)
def test_long_words_are_cut_where_they_differ(a: str, b: str, left: str, right: str) -> None:
    """What differs stays in sight; the whole is kept beside."""
    (row,) = rows_of(a, b)

    assert row.left is not None
    assert row.right is not None
    assert left in row.left.text
    assert right in row.right.text
    assert "…" in row.left.text
    assert (row.left.whole, row.right.whole) == (f'"{a}"', f'"{b}"')


def test_equal_stretches_are_folded() -> None:
    """Two lines around each difference stay; short stretches are not worth a fold."""
    a = {f"m{n}": n for n in range(20)}
    parts = aligned.folded(rows_of(a, {**a, "m10": 0, "m14": 0}))

    assert [(part.is_folded, part.start, len(part.rows)) for part in parts] == [
        (False, 0, 1), (True, 1, 8), (False, 9, 13),
    ]  # fmt: skip
    assert "8 equal lines: m0, m1, m2, …" in [part.words for part in parts]
    assert sum(len(part.rows) for part in parts) == 22


def test_an_answer_too_long_is_not_laid_out() -> None:
    """It is told, not drawn."""
    long = list(range(aligned.MAX_ROWS + 1))

    with pytest.raises(aligned.TooLong):
        aligned.rows(long, [*long, 1], [])
    with pytest.raises(aligned.TooLong):
        aligned.rows(long, ABSENT, [])
