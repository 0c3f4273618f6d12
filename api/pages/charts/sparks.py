"""Small charts for table cells."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from api.pages.charts import svg

MIN_SPAN = 2.5
"""Pixels: however short a state was, its bar is to be seen."""


MAX_BAR = 14
"""Pixels: one bar alone is no block."""


class Span(NamedTuple):
    """A stretch of time with a state, on a scale from 0 to 1."""

    start: float
    end: float
    css_class: str
    """`open`, `half`, or `hot` for an alert."""
    title: str = ""


def spark(
    values: Sequence[float | None],
    label: str,
    *,
    width: float = 110,
    height: float = 22,
    limit: float | None = None,
    css_class: str = "ln",
) -> Markup:
    """Return a line of values from zero to their peak, the last one dotted, with a dashed limit where there is one."""
    peak = max([*(value for value in values if value is not None), limit or 0.0], default=0.0) or 1.0
    step = (width - 4) / max(len(values) - 1, 1)

    def y(value: float) -> float:
        return height - 2 - max(value, 0.0) / peak * (height - 4)

    ys = [None if value is None else y(value) for value in values]
    xs = [1 + place * step for place in range(len(values))]
    body = [svg.rule(0, height - 1.5, width, height - 1.5, "grid0")]
    if limit is not None:
        body.append(svg.rule(0, y(limit), width, y(limit), "lim"))
    body.append(svg.line(xs, ys, css_class))
    if ys and ys[-1] is not None:
        body.append(svg.dot(xs[-1], ys[-1], 1.8, "pt"))
    return svg.element(width, height, body, label)


def bars(
    values: Sequence[float],
    label: str,
    *,
    width: float = 70,
    height: float = 18,
    css_class: str = "ar-b",
    top: float | None = None,
) -> Markup:
    """Return one bar per value; `top` is the scale that a column shares, and a bar above it is notched."""
    scale = top or max(values, default=0.0) or 1.0
    step = min(width / max(len(values), 1), MAX_BAR)
    body = [svg.rule(0, height - 0.5, width, height - 0.5, "grid0")]
    for place, value in enumerate(values):
        tall = min(value, scale) / scale * (height - 2)
        if value > 0:
            tall = max(tall, 1.0)
        body.append(svg.rect(place * step, height - 1 - tall, max(step - 1.5, 1), tall, css_class))
        if value > scale:
            body.append(svg.rect(place * step - 1, 4, step + 0.5, 2, "cut"))
    return svg.element(width, height, body, label)


def spans(found: Sequence[Span], label: str, *, width: float = 330, height: float = 20) -> Markup:
    """Return a thin line with a bar where a state held; a bar is wide enough to be seen, and stays inside."""
    middle = height / 2
    body = [svg.rect(0, middle - 1, width, 2, "closed")]
    for span in found:
        x = span.start * width
        wide = max((span.end - span.start) * width, MIN_SPAN)
        body.append(svg.rect(min(x, width - wide), middle - 6, wide, 12, span.css_class, span.title))
    return svg.element(width, height, body, label)


def ticks(marks: Sequence[tuple[float, str]], *, width: float = 330, height: float = 13) -> Markup:
    """Return the words of a time axis, at places from 0 to 1, kept inside."""
    body = []
    for place, words in marks:
        anchor = "" if place < 0.04 else "end" if place > 0.96 else "middle"
        body.append(svg.text(place * width, height - 2, words, "", anchor))
    return svg.element(width, height, body, "")


def pair(these: float, others: float, label: str, *, width: float = 110) -> Markup:
    """Return two shares of 0 to 1 as bars, one above the other."""
    body = [svg.rect(0, 2, (width - 2) * these, 5, "ar-b"), svg.rect(0, 9, (width - 2) * others, 5, "ar")]
    return svg.element(width, 16, body, label)
