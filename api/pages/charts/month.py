"""Spend by cause to the month's end, and an account against its budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from api.pages.charts import svg

_Scale = Callable[[float], float]
"""A value's place in pixels."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One cause: its cumulative USD at the days of the drawing."""

    css_class: str
    totals: Sequence[float]
    is_waste: bool = False
    """Hatched."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """USD at the month's end: the middle, and the ends of its 80 % band where there is one."""

    middle: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """What is drawn; days count from the month's beginning, fractions included."""

    days: Sequence[float]
    """Of the totals; the last one is now."""
    n_days: float
    layers: Sequence[Layer]
    ticks: Sequence[tuple[float, str]]
    """Days and their words."""
    now_words: str
    budget: float | None = None
    budget_words: str = ""
    forecast: Forecast | None = None
    forecast_words: Sequence[str] = ()
    """At the right edge, the first one bold."""
    before: Sequence[float] = ()
    """Cumulative USD of the range before at the same days, as far as it goes; empty = no comparison."""
    pace: tuple[float, str, str] | None = None
    """The day on which the present pace meets the budget, what is said of it, and the same for a narrow drawing."""


def month(drawn: Month, label: str, *, width: float, height: float = 300) -> Markup:
    """Return the drawing: causes stacked, budget line, forecast band, and the present pace in red to the budget."""
    is_narrow = width < 500
    left, right, head, foot = 44, 8 if is_narrow else 92, 14, 22
    plot_w, plot_h = width - left - right, height - head - foot
    total = sum(layer.totals[-1] for layer in drawn.layers if layer.totals)
    ends = [total, drawn.budget or 0.0, *drawn.before[-1:]]
    if drawn.forecast is not None:
        ends.append(drawn.forecast.high if drawn.forecast.high is not None else drawn.forecast.middle)
    top = svg.nice_top(max(ends) * 1.05)

    def x(day: float) -> float:
        return left + min(day / drawn.n_days, 1.0) * plot_w

    def y(value: float) -> float:
        return head + plot_h - min(max(value, 0.0) / top, 1.0) * plot_h

    body: list[svg.Shape] = []
    for step in range(6):
        value = top * step / 5
        body.append(svg.rule(left, y(value), left + plot_w, y(value), "grid0"))
        body.append(svg.text(left - 6, y(value) + 4, f"${value:,.4g}", "", "end"))
    for day, words in drawn.ticks[:: 2 if is_narrow else 1]:
        body.append(svg.text(x(day), height - 6, words, "", "" if day <= 0 else "middle"))
    body += _stack(drawn, [x(day) for day in drawn.days], y)
    if drawn.before:
        xs = [x(day) for day in drawn.days[: len(drawn.before)]]
        ys = [y(value) for value in drawn.before[: len(xs)]]
        body += [svg.line(xs, ys, "ln-under"), svg.line(xs, ys, "ln-was over")]
    if drawn.days:
        body += _outlook(drawn, total, x, y, is_narrow)
    if drawn.budget is not None:
        body.append(svg.rule(left, y(drawn.budget), left + plot_w, y(drawn.budget), "lim"))
        # The words of the pace stand beside its end: the budget's are at the other side.
        is_left_taken = drawn.pace is not None and x(drawn.pace[0]) < left + plot_w / 2
        at, anchor = (left + plot_w - 6, "end") if is_left_taken else (left + 6, "")
        body.append(svg.text(at, y(drawn.budget) - 5, drawn.budget_words, "lab2 halo", anchor))
    return svg.element(width, height, body, label)


def _stack(drawn: Month, xs: Sequence[float], y: _Scale) -> list[svg.Shape]:
    body: list[svg.Shape] = []
    low = [0.0] * len(xs)
    for layer in drawn.layers:
        high = [below + value for below, value in zip(low, layer.totals, strict=True)]
        tops, bottoms = [y(value) for value in high], [y(value) for value in low]
        body.append(svg.area(xs, tops, bottoms, layer.css_class))
        if layer.is_waste:
            body.append(svg.area(xs, tops, bottoms, "", svg.HATCH_WASTE))
        body.append(svg.line(xs, tops, "sep"))
        low = high
    return body


def _outlook(drawn: Month, total: float, x: _Scale, y: _Scale, is_narrow: bool) -> list[svg.Shape]:
    now, end = x(drawn.days[-1]), x(drawn.n_days)
    body: list[svg.Shape] = []
    forecast = drawn.forecast
    if forecast is not None:
        if forecast.low is not None and forecast.high is not None:
            body.append(svg.area([now, end], [y(total), y(forecast.high)], [y(total), y(forecast.low)], "band"))
        body.append(svg.line([now, end], [y(total), y(forecast.middle)], "ln"))
        if not is_narrow:
            for row, words in enumerate(drawn.forecast_words):
                body.append(svg.text(end + 8, y(forecast.middle) + 4 + row * 15, words, "" if row else "lab lb"))
    if drawn.pace is not None and drawn.budget is not None:
        day, words, short = drawn.pace
        body.append(svg.line([now, x(day)], [y(total), y(drawn.budget)], "ln-bad"))
        words = short if is_narrow else words
        is_right = x(day) > (x(0) + end) / 2
        at = x(day) + (-6 if is_right else 8)
        body.append(svg.text(at, y(drawn.budget) - 5, words, "t-bad halo", "end" if is_right else ""))
    body.append(svg.rule(now, y(float("inf")), now, y(0), "now"))
    is_left = now < 140
    at, anchor = (now + 5, "") if is_left else (now - 5, "end")
    body.append(svg.text(at, y(total) - 22, "now", "halo", anchor))
    body.append(svg.text(at, y(total) - 8, drawn.now_words, "lab lb halo", anchor))
    return body


def bullet(
    value: float,
    top: float,
    label: str,
    *,
    budget: float | None = None,
    forecast: Forecast | None = None,
    width: float = 96,
) -> Markup:
    """Return a bullet graph: bar = spent, thin band = forecast, mark = budget, red where the forecast passes it."""
    room = width - 2

    def x(amount: float) -> float:
        return min(max(amount, 0.0) / (top or 1.0), 1.0) * room

    body = [svg.rect(0, 4, room, 12, "inc")]
    is_over = False
    if forecast is not None:
        if forecast.low is not None and forecast.high is not None:
            body.append(svg.rect(x(forecast.low), 4, x(forecast.high) - x(forecast.low), 12, "band"))
        body.append(svg.rect(x(forecast.middle) - 0.75, 4, 1.5, 12, "pt"))
        is_over = budget is not None and forecast.middle > budget
    body.append(svg.rect(0, 7, x(value), 6, "pt"))
    if budget is not None:
        body.append(svg.rect(x(budget) - 1, 1, 2, 18, "pt-bad" if is_over else "pt"))
    return svg.element(width, 20, body, label)
