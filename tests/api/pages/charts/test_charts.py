"""Charts are drawings with words; nothing unknown is drawn as zero; nothing of a chain can leave its place."""

import re
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from api.pages.charts import heads, histogram, month, sparks, strips, svg, waterfall

HOSTILE = '</text><script>alert("1")</script>'
VALUES = st.lists(st.one_of(st.none(), st.floats(0, 1e9)), max_size=40)


STRIP = strips.Strip(name="Requests", unit="per second", last="12", values=[1.0, None, 2.0])


CLOCK = strips.Clock([(0.0, "00:00"), (0.5, "00:30"), (1.0, "01:00")], [(0.6, "02:11 first timeouts")], 0.6)
MONTH = month.Month(
    days=[0, 1, 2.5],
    n_days=30,
    layers=[month.Layer("c1", [0, 3, 5]), month.Layer("c3", [0, 1, 2], is_waste=True)],
    ticks=[(0.5, "1 Nov"), (29.5, "30 Nov")],
    now_words="$7",
    budget=90,
    budget_words="budget $90",
    forecast=month.Forecast(60, 50, 70),
    forecast_words=["$60", "$50 to $70"],
    pace=(12, "if the last 30 min went on: budget gone 12 Nov", "budget gone 12 Nov"),
)
DRAWINGS: dict[str, Callable[[], Markup]] = {
    "spark": lambda: sparks.spark([0, 1, None, 3], "trend", limit=2),
    "spark of nothing": lambda: sparks.spark([], "trend"),
    "bars": lambda: sparks.bars([0, 1, 20], "a day", top=12),
    "spans": lambda: sparks.spans([sparks.Span(0.2, 0.2001, "open"), sparks.Span(0.999, 1, "half", "x")], "breaker"),
    "ticks": lambda: sparks.ticks([(0, "00:00"), (0.5, "12:00"), (1, "24:00")]),
    "pair": lambda: sparks.pair(1, 0.43, "100 % of these, 43 % of the others"),
    "strips": lambda: strips.strips(
        [STRIP, replace(STRIP, spans=[sparks.Span(0, 1, "open")]), replace(STRIP, limit=5.0, limit_words="limit 5")],
        CLOCK,
        width=678,
    ),
    "strips, narrow": lambda: strips.strips(
        [replace(STRIP, part=[0.5, 0.1, 0.2], values=[1.0, 2.0, 2.0])], CLOCK, width=342, is_narrow=True
    ),
    "strips of nothing": lambda: strips.strips([replace(STRIP, values=[])], strips.Clock([]), width=678),
    "histogram": lambda: histogram.histogram(
        [0, 3, 5], "pairs an hour", width=790, ticks=[(0, "12 Nov"), (1, "18 Nov")], marks=[(0.5, "mask version 4")]
    ),
    "month": lambda: month.month(MONTH, "November", width=760),
    "month, narrow": lambda: month.month(MONTH, "November", width=342),
    "bullet": lambda: month.bullet(291, 800, "alchemy", budget=400, forecast=month.Forecast(505, 450, 560)),
    "ridge": lambda: heads.ridge([0, 1, None, None, 9], "lag of op-2", top=16, limit=5),
    "delay": lambda: heads.delay(0.1, 1.9, "p50 0.1 s, p99 1.9 s", top_seconds=2.5),
    "call": lambda: waterfall.call(15, 56, 80, "c2"),
    "skipped": lambda: waterfall.skipped("skipped, no call"),
    "scale": lambda: waterfall.scale(80),
}  # fmt: skip


def test_the_pace_is_told_where_it_has_room() -> None:
    """Early in a narrow month the words stand right of the line, and are the short ones; late, left of it."""
    early = month.month(replace(MONTH, pace=(4, "long words of it", "short")), "November", width=342)
    late = month.month(replace(MONTH, pace=(28, "long words of it", "short")), "November", width=342)
    wide = month.month(replace(MONTH, pace=(4, "long words of it", "short")), "November", width=760)

    assert re.search(r'<text class="t-bad halo" x="[\d.]+" y="[\d.]+">short<', early)
    assert re.search(r'<text class="t-bad halo" x="[\d.]+" y="[\d.]+" text-anchor="end">short<', late)
    assert "long words of it" in wide


@pytest.mark.parametrize("drawn", ["strips", "ridge", "histogram", "month"])
def test_the_range_before_is_one_dotted_line(drawn: str) -> None:
    """Where it is given, and only there; unknown breaks it."""
    made: dict[str, Callable[..., Markup]] = {
        "strips": lambda values: strips.strips([replace(STRIP, before=values)], CLOCK, width=678),
        "ridge": lambda values: heads.ridge([0, 1, 2], "lag", top=16, limit=5, before=values),
        "histogram": lambda values: histogram.histogram([0, 3, 5], "pairs", width=790, ticks=[], before=values),
        "month": lambda values: month.month(replace(MONTH, before=values), "November", width=760),
    }

    assert "ln-was" not in made[drawn]([])
    found = re.findall(r'<path class="ln-was[^"]*" d="([^"]+)"', made[drawn]([1.0, 2.0, 3.0]))
    assert len(found) == 1
    assert found[0].count("L") == 2
    if drawn in ("strips", "ridge"):
        assert re.findall(r'ln-was" d="(M[^"]+)"', made[drawn]([1.0, None, 3.0]))[0].count("M") == 2


def test_a_peak_of_before_does_not_flatten_this_range() -> None:
    """The scale grows to thrice this range's peak and no further; with nothing now it is all of before."""
    tops = [
        re.findall(r'text-anchor="end">([\d.,]+)</text>', strips.strips([strip], CLOCK, width=678))
        for strip in (
            replace(STRIP, values=[1.0, 2.0, 1.0], before=[4.0, 4.0, 4.0]),
            replace(STRIP, values=[1.0, 2.0, 1.0], before=[4.0, 100.0, 4.0]),
            replace(STRIP, values=[0.0, 0.0, 0.0], before=[4.0, 100.0, 4.0]),
        )
    ]

    assert ["4" in tops[0], "6" in tops[1], "100" in tops[2]] == [True, True, True]


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_one_element_without_styles(name: str) -> None:
    """Well-formed, sized, announced or hidden from screen readers, and nothing that a strict policy would refuse."""
    drawing = DRAWINGS[name]()
    root = ElementTree.fromstring(drawing)

    assert root.tag == "svg"
    assert float(root.attrib["width"]) > 0
    assert ("aria-label" in root.attrib and root.attrib["role"] == "img") != ("aria-hidden" in root.attrib)
    assert not re.search(r"\bstyle=|\son\w+=|<script|nan|inf\b", drawing)


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_stays_within_its_width(name: str) -> None:
    """No bar begins or ends outside."""
    root = ElementTree.fromstring(DRAWINGS[name]())
    width = float(root.attrib["width"])
    for shape in root.iter("rect"):
        x, wide = float(shape.attrib["x"]), float(shape.attrib["width"])

        assert x >= -1.05
        assert x + wide <= width + 0.15


def test_words_are_text() -> None:
    """Markup in a label or a name is escaped."""
    for drawing in (
        sparks.spark([1.0], HOSTILE),
        strips.strips([replace(STRIP, name=HOSTILE, last=HOSTILE, was=HOSTILE)], CLOCK, width=678),
        sparks.spans([sparks.Span(0, 1, "open", HOSTILE)], HOSTILE),
        waterfall.skipped(HOSTILE),
    ):
        assert "<script" not in drawing
        ElementTree.fromstring(drawing)


def test_unknown_breaks_the_line() -> None:
    """Between two known values with an unknown one there is no stroke."""
    assert svg.line([0, 1, 2], [5, None, 6], "ln").count("M") == 2


def test_unknown_is_hatched() -> None:
    """On ridges and strips, up to the known neighbours."""
    assert str(heads.ridge([0, None, None, 1], "lag", top=16, limit=5)).count("hatch-unknown") == 1
    assert str(heads.ridge([None, 1, None], "lag", top=16, limit=5)).count("hatch-unknown") == 2
    assert "hatch-unknown" not in heads.ridge([0, 1], "lag", top=16, limit=5)
    assert str(strips.strips([STRIP], CLOCK, width=678)).count("hatch-unknown") == 1


def test_only_what_passes_the_limit_is_amber() -> None:
    """At the limit it is not over it."""
    assert "ar-warn" not in heads.ridge([5, 5], "lag", top=16, limit=5)
    assert "ar-warn" in heads.ridge([5, 6], "lag", top=16, limit=5)


def test_a_short_state_is_seen() -> None:
    """However short, a bar is 2.5 pixels wide."""
    drawing = sparks.spans([sparks.Span(0.5, 0.5, "open")], "breaker")

    assert 'class="open" x="165" y="4" width="2.5"' in drawing


def test_a_bar_above_the_scale_is_notched() -> None:
    """One that would leave the column's scale is cut, and says so."""
    assert str(sparks.bars([1, 2, 13], "a day", top=12)).count('class="cut"') == 1


def test_a_budget_that_the_forecast_passes_is_red() -> None:
    """A mark, red only then."""
    assert "pt-bad" in month.bullet(1, 10, "a", budget=5, forecast=month.Forecast(6))
    assert "pt-bad" not in month.bullet(1, 10, "a", budget=5, forecast=month.Forecast(5))


def test_waste_is_hatched_over_its_colour() -> None:
    """So that it is told apart without colour."""
    assert str(month.month(MONTH, "November", width=760)).count("hatch-waste") == 1


@pytest.mark.parametrize(
    ("peak", "top"),
    [(0, 1), (5e-324, 1), (0.7, 0.8), (1, 1), (1.1, 1.2), (14, 15), (16, 20), (81, 100), (1800, 2000), (99.99, 100)],
)
def test_the_top_of_a_scale_is_a_round_number(peak: float, top: float) -> None:
    """The next one that is easy to read."""
    assert svg.nice_top(peak) == pytest.approx(top)


@given(VALUES)
def test_any_values_can_be_drawn(values: list[float | None]) -> None:
    """Empty, unknown, all zero, huge: always a drawing, never a number that is none."""
    for drawing in (
        sparks.spark(values, "trend"),
        heads.ridge(values, "lag", top=16, limit=5),
        strips.strips([replace(STRIP, values=values)], strips.Clock([]), width=300),
        sparks.bars([value or 0.0 for value in values], "a day"),
        histogram.histogram([int(value or 0) for value in values], "an hour", width=300, ticks=[]),
    ):
        ElementTree.fromstring(drawing)

        assert not re.search(r"nan|inf\b", drawing)
