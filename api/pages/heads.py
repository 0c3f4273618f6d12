"""What pages say of heads and breakers in time: lag per step, and when a breaker was open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from api.pages import steps
from api.pages.address import Span
from api.pages.charts import sparks
from api.pages.figures import iso
from api.pages.page import Around

LOOKED_BACK = timedelta(days=7)
"""What changed longer before the range is not looked for, as in the question `breakers`."""
LIMIT_BLOCKS = 5
"""More is lagging: the threshold of the shipped rule HeadLag."""


@dataclass(frozen=True, slots=True)
class Lag:
    """How far one upstream is behind the best of its network."""

    values: Sequence[float | None]
    """Blocks per step; None = nothing was heard of it."""
    now: int | None
    """None = unknown."""
    number: int | None
    block_seconds: float
    since_step: int | None
    """The step from which on it is as it is now: behind the limit, or unknown."""

    @property
    def peak(self) -> float:
        return max(steps.known(self.values), default=0.0)

    @property
    def seconds(self) -> float:
        """How much chain time it is behind."""
        return (self.now or 0) * self.block_seconds


Lags = Mapping[tuple[str, str], Lag]
"""By network and upstream."""


async def lags(around: Around, step: int, axis: str = "latest") -> dict[tuple[str, str], Lag]:
    """Return the lag of every upstream over the page's range, by network and id."""
    rows = await around.rows("head_lag_in_steps", step=str(step), axis=axis)
    n = steps.count_of(around.view.span, step)
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["network"], row["upstream"]), []).append(row)
    return {key: _lag(mine, n) for key, mine in found.items()}


def _lag(rows: Sequence[Mapping[str, Any]], n: int) -> Lag:
    values: list[float | None] = [None] * n
    for row in rows:
        if row["is_heard"] and 0 <= row["step"] < n:
            values[row["step"]] = float(row["lag_blocks"])
    # The last step is only partly over: what was heard in the one before it still holds.
    now = next((value for value in reversed(values[-3:]) if value is not None), None)
    last = rows[-1]
    return Lag(
        values, None if now is None else int(now), last["number"], last["block_seconds"] or 0.0, since(values, now)
    )


def since(values: Sequence[float | None], now: float | None) -> int | None:
    """Return the first step of the last unbroken stretch beyond the limit, or without a sign; None if all is well."""
    if now is not None and now <= LIMIT_BLOCKS:
        return None
    first = None
    for step in range(len(values) - 1, -1, -1):
        value = values[step]
        is_same = value is None if now is None else value is None or value > LIMIT_BLOCKS
        if not is_same:
            break
        if value is not None or now is None:
            first = step
    return first


async def breaker_changes(around: Around) -> list[dict[str, Any]]:
    """Return the changes of breakers, the newest first: of the range, and before it as far as a state is looked for."""
    return await around.rows("breaker_history", from_=iso(around.view.span.start - LOOKED_BACK))


def open_spans(history: Sequence[Mapping[str, Any]], network: str, upstream: str, asked: Span) -> list[sparks.Span]:
    """
    Return when a breaker was open or half open, on a scale from 0 to 1.

    Args:
        history: rows of `breaker_changes`, the newest first; before the first change it was in its `from_state`.
    """
    changes = [row for row in reversed(history) if (row["network"], row["upstream"]) == (network, upstream)]
    found: list[sparks.Span] = []
    if not changes:
        return found
    state, start = changes[0]["from_state"], 0.0
    for row in [*changes, None]:
        end = 1.0 if row is None else asked.place(row["at"])
        if state != "closed" and end > 0:
            css_class = "open" if state == "open" else "half"
            found.append(
                sparks.Span(
                    start, end, css_class, f"{state} from {asked.place_words(start)} to {asked.place_words(end)} UTC"
                )
            )
        if row is not None:
            state, start = row["to_state"], end
    return found
