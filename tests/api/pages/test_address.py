"""The state of a page is its address."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.pages import address
from api.pages.address import BadAddress, View

NOW = datetime(2026, 11, 18, 2, 47, 12, 345000, tzinfo=UTC)


def view(*query: tuple[str, str], own: tuple[str, ...] = ("method", "class"), path: str = "/divergence") -> View:
    return address.view(path, query, NOW, default_from="now-7d", own=own)


def test_a_page_has_its_own_range_until_the_address_names_one() -> None:
    """The default is not carried to other pages; a named range is."""
    assert view().span.seconds == 7 * 86400
    assert view().to("/spend") == "/spend"
    assert view(("from", "now-3h")).to("/spend") == "/spend?from=now-3h&to=now"


def test_networks_and_live_are_carried_along() -> None:
    """Each of several; what belongs to one page stays there."""
    found = view(("net", "evm:1"), ("net", "evm:8453"), ("live", "1"), ("method", "eth_call"))

    assert found.networks == ("evm:1", "evm:8453")
    assert found.network == ""
    assert found.to("/spend") == "/spend?net=evm:1&net=evm:8453&live=1"
    assert found.here() == "/divergence?net=evm:1&net=evm:8453&live=1&method=eth_call"
    assert found.here(method=None) == "/divergence?net=evm:1&net=evm:8453&live=1"


def test_a_panel_has_the_address_of_its_page() -> None:
    """With everything that the page was asked."""
    assert view(("method", "eth_call")).part("matrix") == "/divergence/_matrix?method=eth_call"
    assert view(path="/").part("strips") == "/_strips"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ([("nett", "evm:1")], "no parameter 'nett'"),
        ([("from", "yesterday")], "no time"),
        ([("from", "2026-11-18T00:00:00Z"), ("to", "2026-11-17T00:00:00Z")], "not after"),
        ([("from", "now")], "not after"),
        ([("from", "now-99999999999999d")], "from"),
    ],
)
def test_what_cannot_be_read_is_said(query: list[tuple[str, str]], words: str) -> None:
    """Unknown names, times that are none, ranges without an inside."""
    with pytest.raises(BadAddress, match=words):
        view(*query)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ([], "Last 7 days"),
        ([("from", "now-3h")], "Last 3 h"),
        ([("from", "month")], "November 2026"),
        ([("from", "2026-11-17T23:47:00Z"), ("to", "2026-11-18T02:47:00Z")], "17 Nov 23:47 to 18 Nov 02:47"),
    ],
)
def test_the_range_in_words(query: list[tuple[str, str]], words: str) -> None:
    """Presets by name, others by their ends."""
    assert view(*query).words() == words


def test_a_fixed_link_shows_the_same_to_others() -> None:
    """Times are written out, and it does not run."""
    link = view(("from", "now-3h"), ("live", "1")).fixed()

    assert link == "/divergence?from=2026-11-17T23:47:12Z&to=2026-11-18T02:47:12Z"


def test_ranges_move_by_their_length() -> None:
    """Back, and forth again; never beyond now."""
    found = view(("from", "2026-11-17T00:00:00Z"), ("to", "2026-11-17T06:00:00Z"))

    assert "from=2026-11-16T18:00:00Z&to=2026-11-17T00:00:00Z" in found.moved(-1)
    assert "from=2026-11-17T06:00:00Z&to=2026-11-17T12:00:00Z" in found.moved(1)
    assert "to=2026-11-18T02:47:12Z" in view().moved(1)


@pytest.mark.parametrize(
    ("query", "start", "end", "words"),
    [
        ([("from", "now-3h")], "2026-11-17T20:47:12", "2026-11-17T23:47:12", "the 3 h before"),
        ([], "2026-11-04T02:47:12", "2026-11-11T02:47:12", "the 7 days before"),
        ([("from", "month")], "2026-10-01T00:00:00", "2026-10-18T02:47:12", "the same part of October"),
        (
            [("from", "2026-11-17T00:00:00Z"), ("to", "2026-11-17T06:00:00Z")],
            "2026-11-16T18:00:00",
            "2026-11-17T00:00:00",
            "the 6 h before",
        ),
    ],
)
def test_the_range_before_is_as_long_and_ends_where_this_one_begins(
    query: list[tuple[str, str]], start: str, end: str, words: str
) -> None:
    """The month so far has as much of the month before."""
    found = view(*query, ("compare", "1"), ("live", "1"))
    before = found.before()

    assert [at.strftime("%Y-%m-%dT%H:%M:%S") for at in (before.span.start, before.span.end)] == [start, end]
    assert found.before_words == words
    assert not before.is_compared
    assert before.here() == f"/divergence?from={start}Z&to={end}Z"


def test_a_shorter_month_before_ends_with_itself() -> None:
    """The 30th of March has all of February beside it, not a part of March."""
    march = datetime(2026, 3, 30, 12, tzinfo=UTC)
    before = address.view("/spend", [("from", "month")], march, default_from="month").before()

    assert (before.span.start, before.span.end) == (
        datetime(2026, 2, 1, tzinfo=UTC),
        datetime(2026, 3, 1, tzinfo=UTC),
    )


def test_the_comparison_is_carried_along_and_can_be_left() -> None:
    """Like the range: to other pages, other ranges and a fixed link."""
    found = view(("compare", "1"), ("method", "eth_call"))

    assert found.to("/spend") == "/spend?compare=1"
    assert found.with_compared(False) == "/divergence?method=eth_call"
    assert view().with_compared(True) == "/divergence?compare=1"
    assert "compare=1" in found.fixed()
    assert "compare=1" in found.moved(-1)


def test_times_are_shown_in_the_zone_of_the_address() -> None:
    """The range stays what it is; words and axes are of the zone, and round there: India is half an hour off."""
    query = (("from", "2026-11-17T23:47:00Z"), ("to", "2026-11-18T02:47:00Z"))
    utc, india = view(*query), view(*query, ("tz", "Asia/Kolkata"))

    assert india.span == utc.span
    assert india.now == utc.now
    assert india.words() == "18 Nov 05:17 to 18 Nov 08:17"
    assert [words for _, words in address.ticks(india.span, india.clock)] == [
        "05:30", "06:00", "06:30", "07:00", "07:30", "08:00"
    ]  # fmt: skip
    assert next(words for _, words in address.ticks(view(("tz", "Asia/Kolkata")).span, india.clock)) == "12 Nov"
    assert (utc.zone_words, india.zone_words) == ("UTC", "Kolkata time")
    assert india.to("/spend").endswith("&tz=Asia/Kolkata")
    assert india.with_zone("") == utc.here()


def test_reckoning_stays_in_utc_over_a_change_of_the_clock() -> None:
    """Three hours are three hours in the night in which Berlin goes back one; the words say what its clocks showed."""
    now = datetime(2026, 10, 25, 2, 30, tzinfo=UTC)
    found = address.view("/", [("tz", "Europe/Berlin"), ("from", "now-3h")], now, default_from="now-3h")

    assert found.span.seconds == 3 * 3600
    assert found.before().span.start == datetime(2026, 10, 24, 20, 30, tzinfo=UTC)
    assert [words for _, words in address.ticks(found.span, found.clock, most=3)] == ["02:00", "02:00", "03:00"]


@pytest.mark.parametrize("name", ["Mars/Base", "../etc/passwd", "Europe", "/etc/localtime", "x" * 300, "a\0b"])
def test_what_is_no_zone_is_said(name: str) -> None:
    """Whatever the text is."""
    with pytest.raises(BadAddress, match="no time zone"):
        view(("tz", name))


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("now-90d", ["Last 30 days"]),
        ("now-30d", ["Last 7 days"]),
        ("now-1h", ["Last 15 min"]),
        ("now-15m", []),
        ("now-1m", []),
    ],
)
def test_a_way_out_is_the_next_shorter_range(start: str, words: list[str]) -> None:
    """The longest preset that is shorter; the shortest has none."""
    found = view(("from", start)).shorter()

    assert [name for name, _ in found] == words
    assert all("&to=now" in address for _, address in found)


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_value_survives_its_link(method: str, network: str) -> None:
    """What is put into an address is read from it again."""
    import urllib.parse

    found = view(("method", method), ("net", network))
    query = urllib.parse.parse_qsl(urllib.parse.urlsplit(found.here()).query)

    assert view(*query) == found


def test_ticks_are_at_round_times() -> None:
    """Hours within a day, days beyond; inside the range."""
    hours = address.ticks(view(("from", "now-3h")).span, NOW)
    days = address.ticks(view().span, NOW)

    assert [words for _, words in hours] == ["00:00", "00:30", "01:00", "01:30", "02:00", "02:30"]
    assert [words for _, words in days] == [f"{day} Nov" for day in range(12, 19)]
    assert all(0 <= place <= 1 for place, _ in hours + days)
