"""What a number was, and how it changed."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.pages import earlier, figures
from api.pages.earlier import NOT_ASKED
from api.pages.figures import rate

M = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("now", "before", "words"),
    [
        (0, 0, "same"),
        (1, 1, "same"),
        (1, 0, ""),
        (0, 1, f"{M}100 %"),
        (112, 100, "+12 %"),
        (88, 100, f"{M}12 %"),
        (1004, 1000, "+0.4 %"),
        (1095, 1000, "+9.5 %"),
        (1096, 1000, "+9.6 %"),
        (999, 100, "+899 %"),
        (1000, 100, "10 ×"),
        (123_456, 1, "123,456 ×"),
    ],
)
def test_a_change_is_told_in_parts_of_what_was(now: float, before: float, words: str) -> None:
    """From ten times on as times; from nothing to something is no ratio."""
    assert earlier.changed(now, before) == words


def test_an_unknown_is_not_compared() -> None:
    """Without a number before there is nothing to show; without one now no change is told."""
    assert earlier.amount(5, None, figures.UNKNOWN) is NOT_ASKED
    assert str(earlier.amount(None, 5, figures.count(5))) == "5"
    assert str(earlier.amount(Decimal("1.5"), Decimal("1.0"), figures.usd(Decimal("1.0")))) == "$1.00 · +50 %"
    assert not NOT_ASKED
    assert NOT_ASKED.__html__() == ""


@pytest.mark.parametrize(
    ("now", "before", "words"),
    [(13, 0, "0 · +13"), (0, 13, f"13 · {M}13"), (2, 2, "2 · same"), (None, 2, "2"), (2, None, "")],
)
def test_a_height_is_told_by_its_difference(now: int | None, before: int | None, words: str) -> None:
    """In blocks, and not in parts of none."""
    assert str(earlier.level(now, before)) == words


@pytest.mark.parametrize(
    ("now", "before", "words"),
    [
        ((56, 70), (48, 80), "48 of 80"),
        ((20, 1000), (20, 1000), "2 % · same"),
        ((0, 1000), (0, 200), "0 · same"),
        ((20, 1000), (21, 1000), "2.1 % · no clear change"),
        ((60, 1000), (20, 1000), "2 % · +4 points"),
        ((20, 1000), (60, 1000), f"6 % · {M}4 points"),
        ((60, 1000), (0, 0), ""),
    ],
)
def test_a_share_changes_only_where_its_samples_bear_it(
    now: tuple[int, int], before: tuple[int, int], words: str
) -> None:
    """Small samples are told as they were; a difference whose interval has zero in it is no clear change."""
    assert str(earlier.share(rate(*now), rate(*before))) == words
    assert str(earlier.share(rate(*now), None)) == ""


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((6, 7, 2, 7), 0.0582, 0.8062),
        ((5, 56, 0, 29), -0.0381, 0.1926),
        ((0, 10, 0, 20), -0.1611, 0.2775),
        ((10, 10, 0, 10), 0.6075, 1.0),
    ],
)
def test_the_interval_of_a_difference_is_the_published_one(
    counts: tuple[int, int, int, int], low: float, high: float
) -> None:
    """Table II of Newcombe's paper, method 10."""
    assert earlier.difference(*counts) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500), st.integers(0, 500))
def test_an_interval_holds_its_difference_and_turns_with_its_sides(a: int, b: int, c: int, d: int) -> None:
    """Swapping the sides turns the signs; the difference itself lies within, and all of it between -1 and 1."""
    low, high = earlier.difference(a, a + b, c, c + d)
    back = earlier.difference(c, c + d, a, a + b)

    assert (-back[1], -back[0]) == pytest.approx((low, high))
    assert -1 - 1e-9 <= low <= high <= 1 + 1e-9
    if a + b and c + d:
        assert low - 1e-9 <= a / (a + b) - c / (c + d) <= high + 1e-9


def test_it_is_read_as_what_was() -> None:
    """The exact value beside the short one; screen readers hear that it is of before."""
    html = str(earlier.amount(112, 100, figures.count(100)).__html__())

    assert '<data value="100">100</data>' in html
    assert "before" in html
    assert html.startswith('<small class="was">')
