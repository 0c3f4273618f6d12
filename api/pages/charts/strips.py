"""
Several quantities on one clock: what may explain each other shares one time axis.

Two drawings of the same strips: the wide one has names left and values right, the narrow one has both above each strip.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from api.pages.charts import svg
from api.pages.charts.sparks import MIN_SPAN, Span

MAX_UNIT = 24
"""Letters of a unit that fit left of a wide drawing."""
MAX_BEFORE = 3
"""Times this range's peak that the range before may stretch a scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """One quantity."""

    name: str
    unit: str
    values: Sequence[float | None] = ()
    """At even steps over the whole clock; None = unknown."""
    last: str
    """Its value now, in words."""
    was: str = ""
    """Beside it: its peak, or what is usual."""
    part: Sequence[float] = ()
    """A part of `values`, drawn over them."""
    before: Sequence[float | None] = ()
    """The same in the range before, on the same steps; empty = no comparison."""
    spans: Sequence[Span] | None = None
    """A state in time, in place of values."""
    limit: float | None = None
    limit_words: str = ""
    tone: str = ""
    """`bad` or `warn` where it passed its limit."""
    each: str = ""
    """The unit behind a single value: ` ms`."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The axis that all strips share; places run from 0 to 1."""

    ticks: Sequence[tuple[float, str]]
    events: Sequence[tuple[float, str]] = ()
    """What is drawn over all strips."""
    incident: float | None = None
    """From where the ground is tinted."""


@dataclass(frozen=True, slots=True)
class _Layout:
    left: float
    right: float
    above: float
    """Room for words above each strip."""
    gap: float
    tall: float


_WIDE = _Layout(left=136, right=92, above=0, gap=9, tall=28)
_NARROW = _Layout(left=0, right=0, above=18, gap=8, tall=34)
_HEAD, _FOOT = 22, 18


def strips(series: Sequence[Strip], clock: Clock, *, width: float, is_narrow: bool = False) -> Markup:
    """Return the drawing; its label says the value of each strip now."""
    layout = _NARROW if is_narrow else _WIDE
    one = layout.above + layout.tall + layout.gap
    height = _HEAD + one * len(series) + _FOOT
    base = height - _FOOT
    left, plot = layout.left, width - layout.left - layout.right
    body: list[svg.Shape] = []
    if clock.incident is not None:
        start = left + clock.incident * plot
        body.append(svg.rect(start, _HEAD - 4, left + plot - start, base - _HEAD + 4, "inc"))
    for place, words in _thinned(clock.ticks, is_narrow):
        x = left + place * plot
        body.append(svg.rule(x, _HEAD - 4, x, base, "grid0"))
        body.append(svg.text(x, height - 4, words, "", "" if x < 16 else "end" if width - x < 16 else "middle"))
    for number, strip in enumerate(series):
        drawing = _Drawing(strip, layout, width, _HEAD + number * one + layout.above)
        body += drawing.words()
        body += drawing.spans() if strip.spans is not None else drawing.values()
    for place, words in clock.events:
        x = left + place * plot
        body.append(svg.rule(x, 14, x, base, "ev"))
        body.append(svg.text(x + (-4 if place > 0.5 else 4), 11, words, "lab2", "end" if place > 0.5 else ""))
    label = "On one clock: " + "; ".join(
        f"{strip.name}, {strip.unit}, now {strip.last or 'unknown'}" for strip in series
    )
    return svg.element(width, height, body, label, "strips")


def places(n: int) -> list[float]:
    """Return where each of so many strips begins in the wide drawing, in pixels from its top."""
    return [_HEAD + number * (_WIDE.above + _WIDE.tall + _WIDE.gap) + _WIDE.above for number in range(n)]


def _thinned(ticks: Sequence[tuple[float, str]], is_narrow: bool) -> Sequence[tuple[float, str]]:
    """Return at most four ticks for a narrow drawing."""
    return ticks[:: max(1, -(-len(ticks) // 4))] if is_narrow else ticks


class _Drawing:
    """One strip at its place."""

    def __init__(self, strip: Strip, layout: _Layout, width: float, y: float) -> None:
        self._strip = strip
        self._layout = layout
        self._width = width
        self._plot = width - layout.left - layout.right
        self._y = y
        self._bottom = y + layout.tall
        now = max([value for value in strip.values if value is not None], default=0.0)
        before = max([value for value in strip.before if value is not None], default=0.0)
        # A single peak of the range before shall not flatten this one: it leaves the drawing.
        self._top = svg.nice_top(max(now, strip.limit or 0.0, min(before, MAX_BEFORE * now) if now else before))

    def words(self) -> list[svg.Shape]:
        strip, y = self._strip, self._y
        tone = f" t-{strip.tone}" if strip.tone else ""
        if self._layout.above:
            return [
                svg.text(0, y - 5, f"{strip.name}, {strip.unit}" if strip.unit else strip.name, "lab"),
                svg.text(self._width, y - 5, strip.last, f"lab lb{tone}", "end"),
            ]
        drawn = [
            svg.text(0, y + 11, strip.name, "lab"),
            svg.text(0, y + 25, _cut(strip.unit)),
            svg.text(self._width, y + 11, strip.last, f"lab lb{tone}", "end"),
        ]
        if strip.was:
            drawn.append(svg.text(self._width, y + 25, strip.was, "", "end"))
        if strip.spans is None:
            drawn.append(svg.text(self._layout.left - 6, y + 6, f"{self._top:,.10g}", "", "end"))
        return drawn

    def spans(self) -> list[svg.Shape]:
        middle = self._y + self._layout.tall / 2
        left = self._layout.left
        drawn = [svg.rect(left, middle - 1, self._plot, 2, "closed")]
        for span in self._strip.spans or ():
            wide = max((span.end - span.start) * self._plot, MIN_SPAN)
            x = min(left + span.start * self._plot, left + self._plot - wide)
            drawn.append(svg.rect(x, middle - 6, wide, 12, span.css_class, span.title))
        return drawn

    def values(self) -> list[svg.Shape]:
        strip, left, bottom = self._strip, self._layout.left, self._bottom
        step = self._plot / max(len(strip.values) - 1, 1)
        xs = [left + place * step for place in range(len(strip.values))]
        ys = [None if value is None else self._height_of(value) for value in strip.values]
        drawn = [svg.rule(left, bottom + 0.5, left + self._plot, bottom + 0.5, "axis")]
        known = svg.runs(strip.values)
        behind = 0
        for first, last in known:
            drawn.append(_unknown(xs, behind, first, self._y, self._layout.tall))
            tops = [y for y in ys[first:last] if y is not None]
            drawn.append(svg.area(xs[first:last], tops, [bottom] * len(tops), "ar"))
            behind = last
        if strip.values:
            drawn.append(_unknown(xs, behind, len(xs), self._y, self._layout.tall))
        if any(strip.part):
            tops = [self._height_of(value) for value in strip.part]
            drawn.append(svg.area(xs, tops, [bottom] * len(tops), "c1"))
        else:
            drawn.append(svg.line(xs, ys, "ln-bad" if strip.tone == "bad" else "ln"))
        if strip.before:
            drawn.append(
                svg.line(xs, [None if value is None else self._height_of(value) for value in strip.before], "ln-was")
            )
        if strip.limit is not None:
            y = self._height_of(strip.limit)
            drawn.append(svg.rule(left, y, left + self._plot, y, "lim"))
            # Near the top its words go below: above is the strip before.
            drawn.append(svg.text(left + 3, y - 3 if y - self._y >= 10 else y + 11, strip.limit_words, "halo"))
        return drawn

    def _height_of(self, value: float) -> float:
        return self._bottom - min(max(value, 0.0) / self._top, 1.0) * self._layout.tall


def _cut(words: str) -> str:
    """
    Return words as long as the room left of a strip; the table tells them whole.

    >>> _cut("an-upstream-with-a-very-long-name")
    'an-upstream-with-a-very…'
    """
    return words if len(words) <= MAX_UNIT else words[: MAX_UNIT - 1] + "…"


def _unknown(xs: Sequence[float], first: int, last: int, y: float, tall: float) -> svg.Shape:
    """Return the hatching of a stretch without values, up to its known neighbours."""
    if last <= first or len(xs) < 2:
        return ""
    start, end = xs[max(first - 1, 0)], xs[min(last, len(xs) - 1)]
    return svg.hatched(start, y + tall - 8, end - start, 8)
