import typing

import pytest

from gnomon.compare.classes import CLASSES, fold_name, most_telling, of_names, of_values
from gnomon.compare.exact import Number, Value

WORD = "0" * 63 + "d"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("0xAB", "0xab", "hex_case"),
        ("0XAB", "0xab", "hex_case"),
        ("A" * 40, "a" * 40, "hex_case"),
        ("Ada", "ada", "value"),
        ("0x01", "0x1", "hex_padding"),
        ("0x", "0x0", "hex_padding"),
        ("0x0A", "0xa", "hex_padding"),
        ("0", "00", "hex_padding"),
        ("0xd", WORD, "encoding"),
        ("0xa", "10", "encoding"),
        ("10", "0xa", "encoding"),
        ("", "0x", "encoding"),
        ("1.0", "1", "encoding"),
        ("0x1", "0x2", "value"),
        ("abc", "abd", "value"),
        ("0xzz", "0xZZ", "value"),
        ("", "0x12", "empty_vs_data"),
        ("0x", "0x12", "empty_vs_data"),
        ("", "text", "empty_vs_data"),
        (None, "0x00", "empty_vs_data"),
        (None, 5, "empty_vs_data"),
        (None, False, "empty_vs_data"),
        (None, {"a": 1}, "empty_vs_data"),
        (None, [1], "empty_vs_data"),
        (None, [], "type"),
        (None, {}, "type"),
        (None, "", "type"),
        (None, "0x", "type"),
        (1717281735, "0x665ba3c7", "type"),
        (1, "1", "type"),
        (True, 1, "type"),
        (False, {"a": 1}, "type"),
        ([], {}, "type"),
        (1, 2, "value"),
        (True, False, "value"),
        (1, Number("1.0"), "encoding"),
        (100, Number("1e2"), "encoding"),
        (Number("1.50"), Number("1.5"), "encoding"),
        (Number("0.7473261666666666"), Number("0.7473261666666667"), "value"),
        (2**53, Number("9007199254740993.0"), "value"),
        (1, Number("1e99999999999999999999"), "value"),
        (Number("NaN"), Number("Infinity"), "value"),
    ],
)
def test_the_class_says_what_kind_of_difference_it_is(a: Value, b: Value, expected: str) -> None:
    """Whichever side has which value."""

    assert expected == of_values(a, b)
    assert expected == of_values(b, a)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("0xAb", "0xaB", "hex_case"),
        ("0x1", "0x01", "hex_padding"),
        ("0x" + WORD, WORD, "encoding"),
        ("a", "A", None),
        ("0xzz", "0xZZ", None),
        ("0x1", "0x2", None),
    ],
)
def test_member_names_may_be_spellings_of_one_word(a: str, b: str, expected: str | None) -> None:
    """Hex words only; plain names are strict."""

    assert expected == of_names(a, b)


def test_plain_names_are_no_words() -> None:
    """`data`, `fee` and short digits do not fold."""

    assert [fold_name(name) for name in ("data", "fee", "12", "")] == [None] * 4


def test_classes_are_those_of_the_vocabulary() -> None:
    """The closed list of the public interface, `none` apart."""
    public = {
        "value",
        "type",
        "hex_case",
        "hex_padding",
        "encoding",
        "null_vs_absent",
        "missing_field",
        "extra_field",
        "empty_vs_data",
        "array_order",
        "array_length",
        "stale_head",
        "reorg_block_hash",
        "error_vs_result",
        "error_code",
        "error_message",
    }

    assert public == CLASSES


@pytest.mark.parametrize(
    ("named", "first"),
    [
        ({"value", "stale_head"}, "stale_head"),
        ({"hex_case", "value"}, "value"),
        ({"extra_field", "error_code"}, "error_code"),
        ({"null_vs_absent", "hex_padding"}, "hex_padding"),
        ({"array_order"}, "array_order"),
    ],
)
def test_the_most_telling_class_comes_first(named: set[str], first: str) -> None:
    """A reading of the chain before an error, an error before a value, a value before a spelling."""

    assert first == most_telling(named)[0]
    assert set(most_telling(named)) == named


def test_every_outcome_has_words() -> None:
    """The vocabulary of outcomes is that of the interface."""
    from gnomon.compare.judge import Outcome

    assert set(typing.get_args(Outcome)) == {
        "identical",
        "identical_masked",
        "tolerated",
        "mismatch",
        "error",
        "incomparable",
        "missing",
        "undecided",
    }
