"""Lag of one upstream's head in time; how long after the first an upstream learns of a block."""

from collections.abc import Sequence

from markupsafe import Markup

from api.pages.charts import svg


def ridge(
    values: Sequence[float | None],
    label: str,
    *,
    top: float,
    limit: float,
    before: Sequence[float | None] = (),
    width: float = 330,
    height: float = 32,
) -> Markup:
    """
    Return lag in time on the scale of all rows: hatched where it is unknown, amber where it passes the limit.

    Args:
        before: the same in the range before, on the same steps, as a dotted line; empty = no comparison.
    """
    step = width / max(len(values) - 1, 1)
    xs = [place * step for place in range(len(values))]
    floor = height - 1

    def y(value: float) -> float:
        return floor - min(max(value, 0.0), top) / top * (height - 3)

    body = [svg.rule(0, y(limit), width, y(limit), "axis")]
    behind = 0
    for first, last in svg.runs(values):
        body.append(_gap(xs, behind, first, width, height))
        known = [value for value in values[first:last] if value is not None]
        ground = [floor] * len(known)
        body.append(svg.area(xs[first:last], [y(value) for value in known], ground, "ar-q"))
        if any(value > limit for value in known):
            over = [y(value) if value > limit else floor for value in known]
            body.append(svg.area(xs[first:last], over, ground, "ar-warn"))
        behind = last
    body.append(_gap(xs, behind, len(xs), width, height))
    if before:
        body.append(svg.line(xs, [None if value is None else y(value) for value in before], "ln-was"))
    body.append(svg.rule(0, height - 0.5, width, height - 0.5, "axis"))
    return svg.element(width, height, body, label)


def _gap(xs: Sequence[float], first: int, last: int, width: float, height: float) -> svg.Shape:
    if last <= first:
        return ""
    start = xs[first - 1] if first else 0.0
    end = xs[last] if last < len(xs) else width
    return svg.hatched(start, 3, end - start, height - 4)


def delay(p50_seconds: float, p99_seconds: float, label: str, *, top_seconds: float, width: float = 160) -> Markup:
    """Return a dot at the median and a bar at p99, on the scale of all rows."""

    def x(seconds: float) -> float:
        return 4 + min(seconds / (top_seconds or 1.0), 1.0) * (width - 10)

    body = [svg.rule(x(top_seconds * part), 0, x(top_seconds * part), 20, "grid0") for part in (0, 0.5, 1)]
    body.append(svg.rule(x(p50_seconds), 10, x(p99_seconds), 10, "wh"))
    body.append(svg.dot(x(p50_seconds), 10, 3.2, "pt"))
    body.append(svg.rect(x(p99_seconds) - 1, 5, 2, 10, "pt"))
    return svg.element(width, 20, body, label)
