"""A cursor is ours, of this question and these parameters, or it is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import cursors
from api.cursors import Cursor
from api.errors import Refused

HERE = Cursor("2026-01-01 00:00:00.000", "2026-01-02 00:00:00.000", ("2026-01-01 12:00:00.123", "r1", "s1"))
GIVEN = {"network": "evm:1"}


@given(st.lists(st.text(), min_size=1, max_size=5), st.dictionaries(st.text(), st.text(), max_size=4))
def test_what_is_encoded_comes_back(key: list[str], given_: dict[str, str]) -> None:
    """Whatever the keys hold."""
    cursor = Cursor("a", "b", tuple(key))
    text = cursors.encode(cursor, "q", given_)

    assert cursors.decode(text, "q", given_, len(key)) == cursor
    assert text.isascii()


@pytest.mark.parametrize(
    ("question", "given_", "n_keys"),
    [("other", GIVEN, 3), ("q", {}, 3), ("q", {"network": "evm:2"}, 3), ("q", GIVEN, 2), ("q", GIVEN, 4)],
    ids=["another question", "a filter gone", "another filter", "fewer keys", "more keys"],
)
def test_a_cursor_of_something_else_is_refused(question: str, given_: dict[str, str], n_keys: int) -> None:
    """It would give rows that nobody asked for."""
    text = cursors.encode(HERE, "q", GIVEN)
    with pytest.raises(Refused) as refused:
        cursors.decode(text, question, given_, n_keys)

    assert refused.value.problem == "bad-cursor"


@pytest.mark.parametrize(
    "text",
    ["", "x", "!!!!", "bnVsbA", "W10", "WzFd", "e30", "WzEsMl0", "[" * 3000, "é", "WyJhIiwiYiIsImMiLCJkIiwiZSIsImYiXQ"],
)
def test_anything_is_refused(text: str) -> None:
    """With the one error."""
    with pytest.raises(Refused, match="not one of this question"):
        cursors.decode(text, "q", GIVEN, 3)


@given(st.text(max_size=200))
def test_any_text_is_a_cursor_or_refused(text: str) -> None:
    """And nothing else happens."""
    with pytest.raises(Refused):
        cursors.decode(text, "q", GIVEN, 3)


@given(st.data())
def test_a_changed_cursor_is_refused(data: st.DataObject) -> None:
    """One character is enough."""
    text = cursors.encode(HERE, "q", GIVEN)
    index = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from("ABCDEFabcdef0123456789-_").filter(lambda c: c != text[index]))
    changed = text[:index] + other + text[index + 1 :]
    try:
        found = cursors.decode(changed, "q", GIVEN, 3)
    except Refused:
        return

    assert found == HERE  # bits that base64 leaves unused
