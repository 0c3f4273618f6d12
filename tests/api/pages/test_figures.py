"""Numbers, money and times as people read them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from api.pages import figures

NOW = datetime(2026, 11, 18, 2, 47, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_is_wilsons(k: int, n: int, low: float, high: float) -> None:
    """The 95 % score interval. Source of the values: Newcombe, Statistics in Medicine 17 (1998), table I, method 3."""
    found = figures.wilson(k, n)

    assert (found.share, round(found.low, 4), round(found.high, 4)) == (k / n, low, high)


def test_nothing_counted_is_nothing_known() -> None:
    """Without a sample the interval is everything, and the rate is blank."""
    assert figures.wilson(0, 0) == figures.Interval(0.0, 0.0, 1.0)
    assert not figures.rate(0, 0).figure
    assert figures.rate(0, 0).interval == ""
    with pytest.raises(ValueError, match="3 of 2"):
        figures.wilson(3, 2)


@given(st.integers(1, 10**7), st.data())
def test_the_share_lies_within_its_interval(n: int, data: st.DataObject) -> None:
    """Whatever the counts, 0 ≤ low ≤ share ≤ high ≤ 1."""
    k = data.draw(st.integers(0, n))
    found = figures.wilson(k, n)

    assert 0 <= found.low <= found.share <= found.high <= 1


@pytest.mark.parametrize(
    ("k", "n", "words"),
    [
        (1431, 4_316_974, "0.033 % (0.0315 to 0.0349 %, n 4.32 M)"),
        (0, 431_697, "0 (at most 0.0009 %, n 432 k)"),
        (0, 3_000, "0 (at most 0.13 %, n 3,000)"),
        (1, 41, "1 of 41"),
        (0, 99, "0 of 99"),
        (0, 100, "0 (at most 3.7 %, n 100)"),
        (100, 100, "100 % (96.3 to 100.0 %, n 100)"),
    ],
)
def test_a_rate_shows_what_it_rests_on(k: int, n: int, words: str) -> None:
    """Two figures, the interval with the digits the sample bears, n; small samples are counts."""
    assert figures.rate(k, n).in_words == words


@given(st.integers(100, 10**8))
def test_zero_of_n_is_an_upper_bound(n: int) -> None:
    """`at most` is never below the bound, and at most a fifth above it."""
    bound = figures.wilson(0, n).high * 100
    shown = float(figures.rate(0, n).interval.removeprefix("at most ").removesuffix(" %"))

    assert bound * (1 - 1e-6) <= shown <= bound * 1.2


def test_how_many_pairs_a_limit_needs() -> None:
    """As many as make zero differences an upper bound at the limit."""
    n = figures.needed_for(0.0001)

    assert n == 38_411
    assert figures.wilson(0, n).high <= 0.0001 < figures.wilson(0, n - 2).high


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.0000021, "0.00021 %"),
        (0.00041, "0.041 %"),
        (0.0123, "1.2 %"),
        (0.1, "10 %"),
        (0.456, "46 %"),
        (0.9542, "95 %"),
        (0.99617, "99.62 %"),
        (0.9999968, "99.99968 %"),
    ],
)
def test_a_share_has_two_significant_figures(share: float, text: str) -> None:
    """Of what is small: the share, or what is missing to all."""
    assert figures.percent(share).text == text


def test_an_unknown_share_is_blank() -> None:
    """Not zero."""
    assert str(escape(figures.percent(None))) == ""


@pytest.mark.parametrize(
    ("k", "n", "text"),
    [(0, 500, "0"), (500, 500, "100 %"), (477, 500, "95.40 %"), (1, 10**7, "0.00001 %"), (3, 7, "3 of 7"), (0, 0, "")],
)
def test_a_column_has_one_precision(k: int, n: int, text: str) -> None:
    """But what would round to nothing keeps its figures."""
    assert figures.share(k, n).text == text


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0"), (9_999, "9,999"), (10_000, "10 k"), (86_300, "86 k"), (999_499, "999 k"), (999_500, "1.00 M"),
        (4_316_974, "4.32 M"), (1_204_000_000, "1.20 G"),
    ],
)  # fmt: skip
def test_counts_are_short_from_ten_thousand_on(n: int, text: str) -> None:
    """And carry the exact number."""
    figure = figures.count(n)

    assert figure.text == text
    assert str(escape(figure)) == f'<data value="{n}">{text}</data>'


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "$0"), ("372.47", "$372"), ("1234.5", "$1,234"), ("99.995", "$100"), ("99.99", "$99.99"),
        ("59.29", "$59.29"), ("0.31", "$0.31"), ("0.00423", "$0.0042"), ("0.0000105", "$0.000010"), ("-3.5", "-$3.50"),
    ],
)  # fmt: skip
def test_sums_of_money(amount: str, text: str) -> None:
    """Whole dollars from 100, cents below, two figures below a cent; the exact decimal stays beside."""
    figure = figures.usd(Decimal(amount))

    assert figure.text == text
    assert Decimal(figure.value) == Decimal(amount)


def test_a_call_has_all_its_digits_and_unpriced_is_blank() -> None:
    """$0.0000105 is not $0.00001, and no price is not $0."""
    assert figures.price(Decimal("0.000010500000")).text == "$0.0000105"
    assert figures.usd(None).text == figures.price(None).text == figures.pace(None).text == ""


@pytest.mark.parametrize(
    ("amount", "text"),
    [("12.47", "$12.5"), ("1.25", "$1.25"), ("0.618", "$0.62"), ("0.0062", "$0.0062"), ("1250", "$1,250"), ("0", "$0")],
)
def test_pace(amount: str, text: str) -> None:
    """USD per hour in three figures, two below one."""
    assert figures.pace(Decimal(amount)).text == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (0.00041, "0.4 ms"), (0.0014, "1.4 ms"), (0.0142, "14 ms"), (0.9994, "999 ms"), (0.9996, "1 s"),
        (2.34, "2.3 s"), (26, "26 s"),
        (119, "119 s"), (120, "2 min"), (2100, "35 min"), (7200, "2 h"), (39_600, "11 h"),
        (233_280, "2.7 days"), (604_800, "7 days"), (2_592_000, "30 days"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    """In the unit that fits."""
    assert figures.duration(seconds).text == text


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0 B"), (999, "999 B"), (1_900, "1.9 KB"), (412_000, "412 KB"), (6_100_000, "6.1 MB"), (999_600, "1 MB")],
)
def test_bytes(n: int, text: str) -> None:
    """Decimal units."""
    assert figures.size(n).text == text


def test_times_name_their_day_when_it_is_not_today() -> None:
    """And their year when it is another; the whole time is on hover."""
    assert figures.moment(NOW - timedelta(minutes=35), NOW).text == "02:12"
    assert figures.moment(NOW - timedelta(days=2, hours=4, minutes=42), NOW).text == "15 Nov 22:05"
    assert figures.moment(NOW - timedelta(days=365), NOW).text == "18 Nov 2025 02:47"
    assert figures.moment(NOW, NOW, with_seconds=True).text == "02:47:12"
    assert str(escape(figures.moment(NOW, NOW))) == (
        '<time datetime="2026-11-18T02:47:12Z" title="2026-11-18T02:47:12Z">02:47</time>'
    )
    assert not figures.moment(None, NOW)


def test_a_time_is_shown_in_the_zone_of_now_and_told_in_utc() -> None:
    """What is another day there is another day here; hover and tools have UTC."""
    found = figures.moment(NOW - timedelta(hours=3), NOW.astimezone(ZoneInfo("Asia/Tokyo")))
    west = figures.moment(NOW - timedelta(hours=1), NOW.astimezone(ZoneInfo("America/New_York")))

    assert (found.text, found.iso) == ("08:47", "2026-11-17T23:47:12Z")
    assert west.text == "20:47"
    assert figures.day(NOW, NOW.astimezone(ZoneInfo("America/New_York"))) == "17 Nov"


def test_heights_and_hashes() -> None:
    """Commas and hexadecimal on hover; a copy is plain and whole."""
    assert str(escape(figures.block(26437118))) == (
        '<data value="26437118" title="0x19365fe" data-whole="26437118">26,437,118</data>'
    )
    assert figures.shortened("0x91ae" + "0" * 56 + "4c07").text == "0x91ae…4c07"
    assert figures.shortened("0x91ae4c07").text == "0x91ae4c07"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("$.result", "$"),
        ("$.result[*].logs", "$[*].logs"),
        ("$.result.x", "$.x"),
        ("$.error.code", "$.error.code"),
        ("$.results", "$.results"),
    ],
)
def test_paths_are_drawn_from_the_result_on(path: str, shown: str) -> None:
    """Errors keep their root."""
    assert figures.shown_path(path) == shown


def test_what_a_chain_says_is_escaped() -> None:
    """A value with markup in it is text."""
    hostile = '"><script>alert(1)</script>'

    assert "<script" not in str(escape(figures.Figure(hostile, hostile, hostile, hostile)))
