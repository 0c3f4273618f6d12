import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.compare.paths import generic, keys_of, parse, render


@pytest.mark.parametrize(
    ("keys", "path", "generic_path"),
    [
        ([], "$.result", "$.result"),
        (["logs", 0, "data"], "$.result.logs[0].data", "$.result.logs[*].data"),
        ([3, "storage", "0x0c2c"], "$.result[3].storage['0x0c2c']", "$.result[*].storage[*]"),
        (["pending", "0x" + "a" * 40, "7"], f"$.result.pending['0x{'a' * 40}']['7']", "$.result.pending[*][*]"),
        (["0xa9059cbb-64"], "$.result['0xa9059cbb-64']", "$.result[*]"),
        (["f" * 64], f"$.result.{'f' * 64}", "$.result[*]"),
        (["a-b"], "$.result['a-b']", "$.result['a-b']"),
        (["it's", "a\\b", ""], r"$.result['it\'s']['a\\b']['']", r"$.result['it\'s']['a\\b']['']"),
        (["a\nb", "\ud800"], r"$.result['a\nb']['\ud800']", r"$.result['a\nb']['\ud800']"),
        (["result_1", "$x"], "$.result.result_1.$x", "$.result.result_1.$x"),
    ],
)
def test_a_place_is_shown_with_and_without_its_indexes(keys: list[str | int], path: str, generic_path: str) -> None:
    """Names that are no identifiers are quoted, names that are data fold, control characters are escaped."""

    assert path == render("$.result", keys)
    assert generic_path == generic("$.result", keys)
    assert render("$.result", keys).encode()
    assert ("$.result", keys) == parse(path)


@given(st.sampled_from(["$.result", "$.error", "$[17].result"]), st.lists(st.text() | st.integers(0, 10**6)))
def test_a_path_can_be_read_back(root: str, keys: list[str | int]) -> None:
    """Whatever the names are: quotes, backslashes, control characters, halves of pairs."""
    assert (root, keys) == parse(render(root, keys))


@pytest.mark.parametrize(
    "text", ["", "$", "$.results.a", "result.a", "$.result.", "$.result[x]", "$.result['a]", "$.result a"]
)
def test_what_is_no_path_is_refused(text: str) -> None:
    """By one named error, never read in part."""
    with pytest.raises(ValueError, match="no path"):
        parse(text)


def test_a_place_is_a_chain_from_the_root() -> None:
    """The keys come out in the order of the way down."""

    assert keys_of((((None, "a"), 0), "b")) == ["a", 0, "b"]
    assert keys_of(None) == []
