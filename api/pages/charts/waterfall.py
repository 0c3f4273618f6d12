"""The calls of one request, one under the other on one clock."""

from markupsafe import Markup

from api.pages.charts import svg
from api.pages.charts.sparks import MIN_SPAN


def call(start_ms: float, end_ms: float, total_ms: float, css_class: str, *, width: float = 430) -> Markup:
    """Return one call as a bar from its start to its end."""
    total = total_ms or 1.0
    wide = max((end_ms - start_ms) / total * width, MIN_SPAN)
    x = min(start_ms / total * width, width - wide)
    body = [svg.rule(0, 9, width, 9, "grid0"), svg.rect(max(x, 0), 4, wide, 10, css_class)]
    return svg.element(width, 18, body, f"from {start_ms:,.4g} to {end_ms:,.4g} ms")


def skipped(words: str, *, width: float = 430) -> Markup:
    """Return a row without a call, and why."""
    return svg.element(width, 18, [svg.rule(0, 9, width, 9, "grid0"), svg.text(0, 13, words, "halo")], words)


def scale(total_ms: float, *, width: float = 430) -> Markup:
    """Return the axis."""
    step = svg.nice_top(total_ms / 4)
    body = []
    for number in range(5):
        ms = step * number
        if ms <= total_ms * 0.98:
            x = ms / (total_ms or 1.0) * width
            body.append(
                svg.text(x, 11, f"{ms:,.4g}" + (" ms" if number == 1 else ""), "", "" if number == 0 else "middle")
            )
    return svg.element(width, 14, body, "")
