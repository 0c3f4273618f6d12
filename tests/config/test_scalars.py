"""Durations, sizes and words are read as written, or refused."""

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.config.scalars import format_duration, parse_duration, parse_flag, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("5s", 5.0),
        ("1m30s", 90.0),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("3y", 3 * 365 * 86400.0),
        ("90d", 90 * 86400.0),
        ("2w", 14 * 86400.0),
        ("100us", 1e-4),
        ("100µs", 1e-4),
        ("0", 0.0),
        ("0s", 0.0),
        ("-5s", -5.0),
        ("+5s", 5.0),
    ],
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    """Go's form and our longer units are read."""
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "5 s", "s", "abc", "5sec", "1e3s", "--5s", "5s ", "nan", "1" * 400 + "y", "-"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    """No unit, a space, a word or an overflow is one named error."""
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@given(st.integers(0, 10**18))
def test_a_printed_duration_is_read_back(nanoseconds: int) -> None:
    """What is printed is read as the same nanoseconds, as far as a float can tell."""
    seconds = nanoseconds / 1e9

    assert math.isclose(parse_duration(format_duration(seconds)), seconds, rel_tol=1e-12, abs_tol=1e-9)


@given(st.text(max_size=12))
def test_any_text_is_a_duration_or_our_error(text: str) -> None:
    """No input raises anything but ValueError."""
    with contextlib.suppress(ValueError):
        assert math.isfinite(parse_duration(text))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1048576", 1 << 20),
        ("64MiB", 64 << 20),
        ("1GB", 10**9),
        ("4g", 4 << 30),
        ("1.5 KB", 1500),
        ("2 tib", 2 << 40),
    ],
)
def test_sizes_are_bytes(text: str, size: int) -> None:
    """Numbers, decimal and binary units are read."""
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1 parsec", "0.3", "1e3"])
def test_what_is_no_size_is_refused(text: str) -> None:
    """Signs, unknown units and parts of a byte are errors."""
    with pytest.raises(ValueError, match="is not a"):
        parse_size(text)


@pytest.mark.parametrize(
    ("word", "truth"), [("True", True), ("on", True), ("YES", True), ("off", False), ("no", False)]
)
def test_flags_are_words(word: str, truth: bool) -> None:
    """A closed list of words, in any case."""
    assert parse_flag(word) is truth


@pytest.mark.parametrize("word", ["", "1", "0", "y", "enabled"])
def test_other_words_are_no_flags(word: str) -> None:
    """Nothing else is taken for a truth."""
    with pytest.raises(ValueError, match="neither true nor false"):
        parse_flag(word)
