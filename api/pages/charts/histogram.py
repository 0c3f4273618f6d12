"""Counts per hour or day, with marks where something changed."""

from collections.abc import Sequence

from markupsafe import Markup

from api.pages.charts import svg


def histogram(
    values: Sequence[int],
    label: str,
    *,
    width: float,
    ticks: Sequence[tuple[float, str]],
    marks: Sequence[tuple[float, str]] = (),
    before: Sequence[int] = (),
    height: float = 62,
    css_class: str = "ar-b",
) -> Markup:
    """
    Return bars on one scale, zero at the foot and the top named.

    Args:
        ticks, marks: (place from 0 to 1, words); a mark is a line through the drawing.
        before: the same counts in the range before, as a dotted line; empty = no comparison.
    """
    left = 34.0
    plot, floor = width - left, height - 16
    top = svg.nice_top(max([*values, *before], default=0))
    tall = floor - 10
    step = plot / max(len(values), 1)
    body = [
        svg.rule(left, floor + 0.5, width, floor + 0.5, "axis"),
        svg.rule(left, 10, width, 10, "grid0"),
        svg.text(left - 6, 14, f"{top:,.10g}", "", "end"),
        svg.text(left - 6, floor + 4, "0", "", "end"),
    ]
    for number, value in enumerate(values):
        if value:
            high = max(value / top * tall, 1.0)
            body.append(svg.rect(left + number * step, floor - high, max(step - 1, 0.8), high, css_class))
    if before:
        xs = [left + (number + 0.5) * step for number in range(len(before))]
        body.append(svg.line(xs, [floor - value / top * tall for value in before], "ln-was"))
    for place, words in ticks:
        x = left + place * plot
        body.append(svg.text(x, height - 2, words, "", "end" if x > width - 20 else "" if place < 0.02 else "middle"))
    for place, words in marks:
        x = left + place * plot
        is_right = place > 0.6
        body.append(svg.rule(x, 0, x, floor, "ev"))
        body.append(svg.text(x + (-5 if is_right else 5), 10, words, "lab2 halo", "end" if is_right else ""))
    return svg.element(width, height, body, label)
