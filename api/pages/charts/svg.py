"""
The SVG element, and the few shapes it is made of.

Coordinates are CSS pixels of a drawing made for its width: nothing is scaled later. Every text is escaped here.
"""

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

Shape = str
"""A piece of SVG, escaped."""

TINY = 1e-12
"""Less is drawn as nothing."""
HATCH_UNKNOWN = "url(#hatch-unknown)"
HATCH_WASTE = "url(#hatch-waste)"
"""Fills that the page's frame defines once."""


def element(width: float, height: float, body: Iterable[Shape], label: str, css_class: str = "") -> Markup:
    """
    Return one drawing, announced as `label`.

    Args:
        label: what it says, in words; empty = it only repeats what stands beside it.
    """
    named = f'role="img" aria-label="{escape(label)}"' if label else 'aria-hidden="true"'
    of_class = f' class="{css_class}"' if css_class else ""
    w, h = at(width), at(height)
    return Markup(f'<svg{of_class} width="{w}" height="{h}" viewBox="0 0 {w} {h}" {named}>{"".join(body)}</svg>')


def at(value: float) -> str:
    """Return a coordinate, to a tenth of a pixel."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def text(x: float, y: float, words: str, css_class: str = "", anchor: str = "") -> Shape:
    """Return words at their baseline; anchor: start (default), middle or end."""
    of_class = f' class="{css_class}"' if css_class else ""
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text{of_class} x="{at(x)}" y="{at(y)}"{anchored}>{escape(words)}</text>'


def rule(x1: float, y1: float, x2: float, y2: float, css_class: str) -> Shape:
    """Return a straight line."""
    return f'<line class="{css_class}" x1="{at(x1)}" y1="{at(y1)}" x2="{at(x2)}" y2="{at(y2)}"/>'


def rect(x: float, y: float, width: float, height: float, css_class: str, title: str = "") -> Shape:
    """Return a rectangle; what has no width or height is left out."""
    if width <= 0 or height <= 0:
        return ""
    inner = f"><title>{escape(title)}</title></rect>" if title else "/>"
    return f'<rect class="{css_class}" x="{at(x)}" y="{at(y)}" width="{at(width)}" height="{at(height)}"{inner}'


def hatched(x: float, y: float, width: float, height: float) -> Shape:
    """Return a rectangle that says: unknown."""
    if width <= 0:
        return ""
    return f'<rect fill="{HATCH_UNKNOWN}" x="{at(x)}" y="{at(y)}" width="{at(width)}" height="{at(height)}"/>'


def dot(x: float, y: float, radius: float, css_class: str) -> Shape:
    """Return a filled circle."""
    return f'<circle class="{css_class}" cx="{at(x)}" cy="{at(y)}" r="{at(radius)}"/>'


def line(xs: Sequence[float], ys: Sequence[float | None], css_class: str) -> Shape:
    """Return a line through the points; a None breaks it, for unknown is not zero."""
    steps, pen = [], "M"
    for x, y in zip(xs, ys, strict=True):
        if y is None:
            pen = "M"
            continue
        steps.append(f"{pen}{at(x)} {at(y)}")
        pen = "L"
    return f'<path class="{css_class}" d="{"".join(steps)}"/>' if steps else ""


def area(xs: Sequence[float], tops: Sequence[float], bottoms: Sequence[float], css_class: str, fill: str = "") -> Shape:
    """Return the ground between two lines."""
    if len(xs) < 2:
        return ""
    upper = "L".join(f"{at(x)} {at(y)}" for x, y in zip(xs, tops, strict=True))
    lower = "L".join(f"{at(x)} {at(y)}" for x, y in zip(reversed(xs), reversed(bottoms), strict=True))
    face = f'fill="{fill}"' if fill else f'class="{css_class}"'
    return f'<path {face} d="M{upper}L{lower}Z"/>'


def runs(values: Sequence[float | None]) -> list[tuple[int, int]]:
    """Return the stretches of known values, as [first, behind the last)."""
    found: list[tuple[int, int]] = []
    first: int | None = None
    for place, value in enumerate([*values, None]):
        if value is None:
            if first is not None:
                found.append((first, place))
            first = None
        elif first is None:
            first = place
    return found


def nice_top(peak: float) -> float:
    """Return the upper end of a scale: the next of 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten."""
    if peak < TINY:
        return 1.0
    power = 10.0 ** math.floor(math.log10(peak))
    steps = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    return next((step * power for step in steps if step * power >= peak * 0.999), power * 10)
