"""What changed, on one clock: seven quantities over one time axis, and where the trouble began."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from api.pages import figures, heads, known, steps
from api.pages.address import Span, ticks
from api.pages.charts import strips as drawing
from api.pages.figures import duration, moment, percent, rate
from api.pages.page import HAS_BEFORE, Around, Shown, both, together
from api.pages.told import Told
from api.pages.watched import firing, step_of

N_MISMATCH_STEPS = 36
"""Few pairs fall into a short step: their rate is drawn over longer ones."""
WIDE, NARROW = 678, 342


async def strips(around: Around) -> Shown:
    view, step = around.view, step_of(around)
    n = steps.count_of(view.span, step)
    slow = step_of(around, N_MISMATCH_STEPS)
    (
        (served, old_served),
        (spend, old_spend),
        (lags, old_lags),
        history,
        (pairs, old_pairs),
        budgets,
        alerts,
    ) = await together(
        both(lambda one: one.rows("service_over_time", step=str(step)), around),
        both(lambda one: one.rows("spend_in_steps", step=str(step)), around),
        both(lambda one: heads.lags(one, step), around),
        heads.breaker_changes(around),
        both(lambda one: one.rows("divergence_in_steps", step=str(slow)), around),
        around.rows("budgets"),
        firing(around),
    )
    found = [
        *_of_service(served, old_served, n, step),
        _of_spend(spend, old_spend, n, step, budgets),
        _of_head(lags, old_lags, n, around),
        _of_breaker(history, around),
        _of_mismatch(pairs, old_pairs, steps.count_of(view.span, slow), around),
    ]
    drawn = [strip for strip in found if strip is not None]
    incident, events = _incident(history, alerts, around)
    clock = drawing.Clock(ticks(view.span, view.clock), events, incident)
    return {
        "wide": drawing.strips(drawn, clock, width=WIDE),
        "narrow": drawing.strips(drawn, clock, width=NARROW, is_narrow=True),
        "drawn": drawn,
        "series": [
            (strip, y, _texts(strip.values), _texts(strip.before) if strip.before else "")
            for strip, y in zip(drawn, drawing.places(len(drawn)), strict=True)
            if strip.values
        ],
        "table": _table(drawn, view.span, n, step),
        "from_ms": int(view.span.start.timestamp() * 1000),
        "to_ms": int(view.span.end.timestamp() * 1000),
        "step": str(duration(step)),
        HAS_BEFORE: any(steps.known(strip.before) for strip in drawn),
    }


def _texts(values: Sequence[float | None]) -> str:
    """Return values as a drawing's crosshair reads them: three figures each, blank where unknown."""
    return " ".join(str(figures.number(value)) for value in values)


def _table(drawn: Sequence[drawing.Strip], asked: Span, n: int, step: int) -> dict[str, Any]:
    """Return the same as rows: a time, and the value of each strip then, that of longer steps at their beginning."""
    columns = [(f"{strip.name}, {strip.unit}", strip.values) for strip in drawn if strip.values]
    columns += [(f"{strip.name}, before", strip.before) for strip in drawn if strip.before]
    rows = []
    for at in range(n):
        places = [(values, at * len(values) / n) for _, values in columns]
        found = [values[int(place)] if place == int(place) else None for values, place in places]
        rows.append((steps.started(asked, at, step), [figures.number(value) for value in found]))
    return {"heads": [head for head, _ in columns], "rows": rows}


Rows = Sequence[Mapping[str, Any]]


def _of_service(rows: Rows, before: Rows | None, n: int, step: int) -> list[drawing.Strip]:
    per_second = _per_second(rows, n, step)
    paid = [(v or 0) / step for v in steps.series(rows, "n_paid", n)]
    errors, slow = _errors(rows, n), _p99(rows, n)
    # The last step is only partly over: what is said of now is the one before it.
    now = max(n - 2, 0)
    # A range of which nothing is stored has no requests: not zero, but unknown.
    then = [_per_second(before, n, step), _errors(before, n), _p99(before, n)] if before else [(), (), ()]
    return [
        drawing.Strip(
            name="Requests", unit="per second, below: paid", each=" a second", values=per_second, part=paid,
            before=then[0],
            last=str(figures.number(per_second[now])),
            was=_was(then[0], lambda v: str(figures.number(v))) or f"{figures.number(paid[now])} paid",
        ),
        drawing.Strip(
            name="Errors to clients", unit="% of requests", each=" %", values=errors, before=then[1],
            last=_of_hundred(_last(errors)),
            was=_was(then[1], _of_hundred) or f"peak {figures.number(max(steps.known(errors), default=0.0), 2)}",
        ),
        drawing.Strip(
            name="Client p99", unit="ms", each=" ms", values=slow, last=_milliseconds(_last(slow)), before=then[2],
            was=_was(then[2], _milliseconds) or f"peak {figures.number(max(steps.known(slow), default=0.0))}",
        ),
    ]  # fmt: skip


def _per_second(rows: Rows, n: int, step: int) -> list[float | None]:
    return [None if v is None else v / step for v in steps.series(rows, "n", n)]


def _errors(rows: Rows, n: int) -> list[float | None]:
    values: list[float | None] = [None] * n
    for row in rows:
        if 0 <= row["step"] < n:
            values[row["step"]] = row["n_failed"] / row["n"] * 100
    return values


def _p99(rows: Rows, n: int) -> list[float | None]:
    return [None if v is None else v / 1000 for v in steps.series(rows, "p99_us", n, missing=None)]


def _was(values: Sequence[float | None], words: Callable[[float | None], str]) -> str:
    """Return what a series was at the same place of the range before; empty where there is nothing to compare."""
    last = _last(values)
    return "" if last is None else f"before {words(last)}"


def _last(values: Sequence[float | None]) -> float | None:
    """Return the newest known value of a series whose last step is only partly over."""
    return next((value for value in reversed(values[:-1] or values) if value is not None), None)


def _of_hundred(value: float | None) -> str:
    return "" if value is None else str(percent(value / 100))


def _milliseconds(value: float | None) -> str:
    return "" if value is None else str(duration(value / 1000))


def _per_hour(rows: Rows, n: int, step: int) -> list[float | None]:
    return [None if v is None else v * 3600 / step for v in steps.series(rows, "usd", n)]


def _of_spend(rows: Rows, before: Rows | None, n: int, step: int, budgets: Rows) -> drawing.Strip | None:
    per_hour = _per_hour(rows, n, step)
    then = _per_hour(before, n, step) if before else ()
    paces = [
        float(row["budget"]) / ((row["cycle_to"] - row["cycle_from"]).total_seconds() / 3600)
        for row in budgets
        if row["budget"] is not None
    ]
    limit = sum(paces) or None
    now = _last(per_hour) or 0.0
    usual = sorted(steps.known(per_hour))
    middle = usual[len(usual) // 2] if usual else 0.0
    is_over = limit is not None and now > limit
    return drawing.Strip(
        name="Paid spend", unit="USD per hour", each=" USD an hour", values=per_hour, last=_dollars(now), before=then,
        was=_was(then, lambda v: _dollars(v or 0.0)) or f"median {_dollars(middle)}",
        limit=limit, limit_words=f"budget pace {_dollars(limit)[1:]}" if limit else "", tone="bad" if is_over else "",
    )  # fmt: skip


def _dollars(value: float) -> str:
    return str(figures.pace(Decimal(repr(round(value, 9)))))


def _of_head(lags: heads.Lags, before: heads.Lags | None, n: int, around: Around) -> drawing.Strip | None:
    shadows = {(one.network, one.id) for one in known.upstreams(around.settings) if one.tier == "shadow"}
    mine = {key: lag for key, lag in lags.items() if key not in shadows and lag.now is not None}
    if not mine:
        return None
    key, worst = max(mine.items(), key=lambda item: (item[1].now or 0, item[1].peak))
    old = (before or {}).get(key)
    then = steps.of_length(old.values, n) if old is not None else ()
    behind = worst.now or 0
    limit = heads.LIMIT_BLOCKS
    return drawing.Strip(
        name="Head lag, blocks", each=" blocks", unit=key[1], values=worst.values, last=f"{behind:,}", before=then,
        was=_was(then, lambda v: f"{v:,.0f}")
        or (str(duration(worst.seconds)) if behind else f"peak {worst.peak:,.0f}"),
        limit=float(limit),
        limit_words=f"limit {limit}",
        tone="warn" if behind > limit else "",
    )  # fmt: skip


def _of_breaker(history: Sequence[Mapping[str, Any]], around: Around) -> drawing.Strip | None:
    span = around.view.span
    changed = {(row["network"], row["upstream"]) for row in history if row["at"] >= span.start}
    found = {
        key: heads.open_spans(history, *key, span) for key in {(row["network"], row["upstream"]) for row in history}
    }
    all_spans = {key: spans for key, spans in sorted(found.items()) if spans or key in changed}
    if not all_spans:
        return None
    key, spans = max(all_spans.items(), key=lambda item: sum(one.end - one.start for one in item[1]))
    _, upstream = key
    last = next(row["to_state"] for row in history if (row["network"], row["upstream"]) == key)
    tone = {"open": "bad", "half_open": "warn"}.get(last, "")
    others = len({(one.network, one.id) for one in known.upstreams(around.settings) if one.tier != "shadow"}) - 1
    open_now = sum(1 for found in all_spans.values() if found and found[-1].end >= 1) - (1 if last != "closed" else 0)
    was = f"{others - open_now} others closed" if others > 0 else ""
    return drawing.Strip(name="Breaker", unit=upstream, spans=spans, last=last, was=was, tone=tone)


def _of_mismatch(rows: Rows, before: Rows | None, n: int, around: Around) -> drawing.Strip | None:
    controls = {(one.network, one.id) for one in known.upstreams(around.settings) if one.is_control}
    totals: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        key = (row["network"], row["shadow_upstream"])
        if key not in controls:
            sums = totals.setdefault(key, [0, 0])
            sums[0] += row["mismatch"]
            sums[1] += row["n"]
    if not totals:
        return None
    worst = max(totals, key=lambda key: (figures.wilson(*totals[key]).low, totals[key][1]))
    found = rate(*totals[worst])
    mine = [row for row in before or () if (row["network"], row["shadow_upstream"]) == worst]
    was = rate(sum(row["mismatch"] for row in mine), sum(row["n"] for row in mine))
    return drawing.Strip(
        name="Mismatch, %",
        each=" %",
        unit=f"final, {worst[1]}",
        values=_mismatches(rows, worst, n),
        before=_mismatches(mine, worst, n) if mine else (),
        last=str(found.figure),
        was=f"before {was.figure}" if was.is_known else f"n {found.n}",
    )


def _mismatches(rows: Rows, key: tuple[str, str], n: int) -> list[float | None]:
    values: list[float | None] = [None] * n
    for row in rows:
        if (row["network"], row["shadow_upstream"]) == key and 0 <= row["step"] < n:
            values[row["step"]] = row["mismatch"] / row["n"] * 100
    return values


def _incident(
    history: Sequence[Mapping[str, Any]], firing: Sequence[Told], around: Around
) -> tuple[float | None, list[tuple[float, str]]]:
    """Return where the trouble that fires now began, and with what: the first alert, or a breaker shortly before."""
    span = around.view.span
    inside = [one for one in firing if span.start <= one.since < span.end]
    if not inside:
        return None, []
    first = min(inside, key=lambda one: one.since)
    at, words = first.since, first.what
    for row in history:
        if row["to_state"] == "open" and span.start <= row["at"] < at and at - row["at"] < timedelta(minutes=30):
            at, words = row["at"], f"{row['upstream']} opens"
    return span.place(at), [(span.place(at), f"{moment(at, around.view.clock)} {words}")]
