"""
The hourly rollup's sums made those of the calls again.

For each key (log, topic, part) the rollup of a day holds exactly the calls up to the greatest offset that it names,
for it is written by the sink's rule (ingest.sink). So both sides can be added up over the same calls while new ones are
being stored, and what differs is put right by a row that adds the difference: no call more, so much money more or less.
Such a row melts into its group like any other. A group whose number of calls differs is left as it is: its calls are
not kept any more, in part or all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from ingest.engine import literal
from ingest.repricing.calls import scaled
from ingest.tables import DATABASE, HOUR_MS, Row

_DIMENSIONS = "project, network, vendor, account, upstream, tier, kind, cause, method"
_KEY = "log_id, topic, part"
N_OF_GROUP = 1 + 9 + 3
"""Hour, dimensions and key of a row of both statements."""
_WRAP = 1 << 64
"""Counters have no sign: one less is 2^64 - 1 more, as the engine adds them up."""

Group = tuple[str, ...]
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Sums:
    """Of one group."""

    n: int
    n_wasted: int
    n_unpriced: int
    n_unitless: int
    units: int
    """Of 10^-12; 0 where no call has any, which `n_unitless` tells."""
    usd: int


@dataclass(frozen=True, slots=True)
class Correction:
    """A row to be added to the rollup."""

    key: Key
    row: Row
    """As in `SPEND_HOURLY.columns`."""


def rollup(day: date) -> str:
    """Return the SELECT of the groups of a day in the rollup, with the greatest offset of each."""
    return f"""
SELECT toUnixTimestamp(hour) AS h, {_DIMENSIONS}, {_KEY}, sum(n), sum(n_wasted), sum(n_unpriced), sum(n_unitless),
    sum(units), sum(usd), max(off)
FROM {DATABASE}.spend_hourly
WHERE {_hours("hour", day)} AND vendor NOT IN ('', 'self-hosted')
GROUP BY h, {_DIMENSIONS}, {_KEY}
"""


def calls(day: date, floors: dict[Key, int]) -> str:
    """
    Return the SELECT of the same groups from the calls.

    Args:
        day: UTC.
        floors: of each key the greatest offset in the rollup of that day.
    """
    names = ", ".join(literal(" ".join(key)) for key in floors)
    place = f"indexOf([{names}], concat(log_id, ' ', topic, ' ', toString(part)))"
    greatest = f"CAST([{', '.join(map(str, floors.values()))}], 'Array(UInt64)')"
    return f"""
SELECT toUnixTimestamp(toStartOfHour(at)) AS h, {_DIMENSIONS}, {_KEY}, count(), countIf(is_wasted),
    countIf(isNull(usd)), countIf(isNull(units)), sum(units), sum(usd)
FROM {DATABASE}.attempts
WHERE {_hours("at", day)} AND vendor NOT IN ('', 'self-hosted') AND {place} > 0 AND off <= {greatest}[{place}]
GROUP BY h, {_DIMENSIONS}, {_KEY}
"""


def _hours(column: str, day: date) -> str:
    return (
        f"{column} >= toDateTime64('{day:%Y-%m-%d} 00:00:00', 3, 'UTC') "
        f"AND {column} < toDateTime64('{day + timedelta(days=1):%Y-%m-%d} 00:00:00', 3, 'UTC')"
    )


def floors(rows: Iterable[Sequence[str]]) -> dict[Key, int]:
    """Return the greatest offset of each key, from the rows of `rollup`."""
    found: dict[Key, int] = {}
    for row in rows:
        key = (row[N_OF_GROUP - 3], row[N_OF_GROUP - 2], row[N_OF_GROUP - 1])
        found[key] = max(found.get(key, 0), int(row[-1]))
    return found


def corrections(of_rollup: Iterable[Sequence[str]], of_calls: Iterable[Sequence[str]]) -> tuple[list[Correction], int]:
    """
    Return what to add to the rollup, and how many groups are left as they are because their calls are not kept.

    Args:
        of_rollup, of_calls: rows of `rollup` and `calls`.
    """
    wanted = {tuple(row[:N_OF_GROUP]): _sums(row) for row in of_calls}
    found, n_left = [], 0
    for row in of_rollup:
        group, has = tuple(row[:N_OF_GROUP]), _sums(row)
        want = wanted.get(group)
        if want is None or want.n != has.n:
            n_left += 1
        elif want != has:
            found.append(_correction(group, has, want, int(row[-1])))
    return found, n_left


def _sums(row: Sequence[str]) -> Sums:
    counts = [int(text) for text in row[N_OF_GROUP : N_OF_GROUP + 4]]
    units, usd = (scaled(text) or 0 for text in row[N_OF_GROUP + 4 : N_OF_GROUP + 6])
    return Sums(counts[0], counts[1], counts[2], counts[3], units, usd)


def _correction(group: Group, has: Sums, want: Sums, off: int) -> Correction:
    hour_ms = int(group[0]) * 1000
    assert hour_ms % HOUR_MS == 0
    row = (
        hour_ms, *group[1 : N_OF_GROUP - 3], 0, (want.n_wasted - has.n_wasted) % _WRAP,
        (want.n_unpriced - has.n_unpriced) % _WRAP, (want.n_unitless - has.n_unitless) % _WRAP,
        want.units - has.units, want.usd - has.usd, off,
    )  # fmt: skip
    return Correction((group[-3], group[-2], group[-1]), row)
