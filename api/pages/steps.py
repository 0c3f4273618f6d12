"""Rows of numbered steps as even series, with gaps where nothing is known."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from api.pages.address import Span


def seconds_of(asked: Span, n_steps: int) -> int:
    """Return how long a step is so that a range has about so many, whole seconds, at least one."""
    return max(1, math.ceil(asked.seconds / n_steps))


def count_of(asked: Span, step_seconds: int) -> int:
    """Return how many steps a range has, the last one perhaps short."""
    return max(1, math.ceil(asked.seconds / step_seconds))


def series(
    rows: Iterable[Mapping[str, Any]], name: str, n_steps: int, *, missing: float | None = 0.0
) -> list[float | None]:
    """
    Return one value per step.

    Args:
        rows: with `step` and the named column; NULL stays unknown.
        missing: what a step without a row is: 0 where that means none, None where it means unknown.
    """
    values: list[float | None] = [missing] * n_steps
    for row in rows:
        step = int(row["step"])
        if 0 <= step < n_steps:
            value = row[name]
            values[step] = float(value) if isinstance(value, int | float | Decimal) else None
    return values


def of_length(values: Sequence[float | None], n_steps: int) -> list[float | None]:
    """Return a series cut, or made longer by unknown steps, to so many."""
    return [*values[:n_steps], *([None] * (n_steps - len(values)))]


def known(values: Sequence[float | None]) -> list[float]:
    """Return the known values."""
    return [value for value in values if value is not None]


def started(asked: Span, step: int, step_seconds: int) -> datetime:
    """Return when a step begins."""
    return datetime.fromtimestamp(asked.start.timestamp() + step * step_seconds, UTC)
