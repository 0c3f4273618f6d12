"""
Rows become groups: spend per hour, verdicts and health per minute.

A group's last item is the greatest offset that went in, so that a rollup is stored by the sink's rule like any other
table: rows above the rollup's own floor are grouped, none below. Rows that are alike in all that counts are counted
first; only those counts are looked at one by one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ingest.blocks import Block
from ingest.tables import (
    ATTEMPTS,
    COMPARISONS,
    DIVERGENCE_MINUTELY,
    HEALTH_MINUTELY,
    HOUR_MS,
    MINUTE_MS,
    SPEND_HOURLY,
    Row,
    Table,
)

HEALTH_KINDS = frozenset({"client", "retry", "hedge", "probe", "shadow"})
"""Calls that say how an upstream answers; its head polls and chain checks do not."""
_FAILED = frozenset({"error", "timeout", "transport"})


def spend(attempts: Block) -> Block:
    """Return `spend_hourly` groups of rows of `attempts`."""
    place = ATTEMPTS.word_places
    dimensions = [
        place[name]
        for name in ("project", "network", "vendor", "account", "upstream", "tier", "kind", "cause", "method")
    ]
    labels = [tuple(label[i] for i in dimensions) for label in attempts.labels]
    minutes = _minutes(attempts)
    groups: dict[Row, list[Any]] = {}
    alike = Counter(
        zip(
            minutes, attempts.numbers, attempts.column("is_wasted"), attempts.column("units"), attempts.column("usd"),
            strict=True,
        )
    )  # fmt: skip
    for (minute, number, is_wasted, units, usd), n in alike.items():
        at = minute * MINUTE_MS
        group = groups.setdefault((at - at % HOUR_MS, *labels[number]), [0, 0, 0, 0, None, None, 0])
        group[0] += n
        if is_wasted:
            group[1] += n
        if usd is None:
            group[2] += n
        else:
            group[5] = usd * n + (group[5] or 0)
        if units is None:
            group[3] += n
        else:
            group[4] = units * n + (group[4] or 0)
    for (minute, number), off in _last(zip(minutes, attempts.numbers, strict=True), attempts.offsets).items():
        at = minute * MINUTE_MS
        group = groups[(at - at % HOUR_MS, *labels[number])]
        group[6] = max(group[6], off)
    return _block(SPEND_HOURLY, groups)


def divergence(comparisons: Block) -> Block:
    """Return `divergence_minutely` groups of rows of `comparisons`."""
    place = COMPARISONS.word_places
    dimensions = [place[name] for name in ("network", "method", "shadow_upstream", "outcome", "class", "finality")]
    labels = [tuple(label[i] for i in dimensions) for label in comparisons.labels]
    keys = list(zip(_minutes(comparisons), comparisons.numbers, strict=True))
    last = _last(keys, comparisons.offsets)
    groups: dict[Row, list[Any]] = {}
    for (minute, number), n in Counter(keys).items():
        group = groups.setdefault((minute * MINUTE_MS, *labels[number]), [0, 0])
        group[0] += n
        group[1] = max(group[1], last[minute, number])
    return _block(DIVERGENCE_MINUTELY, groups)


def health(attempts: Block) -> Block:
    """Return `health_minutely` groups of rows of `attempts`; durations leave out cancelled calls."""
    place = ATTEMPTS.word_places
    dimensions = [place[name] for name in ("network", "upstream", "tier")]
    labels = [tuple(label[i] for i in dimensions) for label in attempts.labels]
    kinds = [label[place["kind"]] for label in attempts.labels]
    outcomes = [label[place["outcome"]] for label in attempts.labels]
    minutes = _minutes(attempts)
    alike = Counter(
        zip(
            minutes, attempts.numbers, attempts.column("is_empty"),
            map(_rounded.__getitem__, attempts.column("duration_us")), strict=True,
        )
    )  # fmt: skip
    groups: dict[Row, list[Any]] = {}
    for (minute, number, is_empty, duration_us), n in alike.items():
        if kinds[number] not in HEALTH_KINDS:
            continue
        group = groups.setdefault((minute * MINUTE_MS, *labels[number]), [0, 0, 0, {}, 0])
        group[0] += n
        if outcomes[number] in _FAILED:
            group[1] += n
        if is_empty:
            group[2] += n
        if outcomes[number] != "cancelled":
            durations = group[3]
            durations[duration_us] = durations.get(duration_us, 0) + n
    for (minute, number), off in _last(zip(minutes, attempts.numbers, strict=True), attempts.offsets).items():
        if kinds[number] in HEALTH_KINDS:
            group = groups[(minute * MINUTE_MS, *labels[number])]
            group[4] = max(group[4], off)
    return _block(HEALTH_MINUTELY, groups)


def _minutes(block: Block) -> list[int]:
    return [at // MINUTE_MS for at in block.times]


def _last(keys: Iterable[tuple[int, int]], offsets: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return the greatest offset of each key."""
    last: dict[tuple[int, int], int] = {}
    for key, off in zip(keys, offsets, strict=True):
        if off > last.get(key, -1):
            last[key] = off
    return last


def _block(table: Table, groups: Mapping[Row, Sequence[Any]]) -> Block:
    """Return groups as rows: what they have in common, then what was added up."""
    return Block.of_rows(table, [(*key, *group) for key, group in groups.items()])


class _Rounded(dict[int, int]):
    """Durations that were rounded lately."""

    def __missing__(self, duration_us: int) -> int:
        if len(self) >= _KEPT:
            self.clear()
        rounded = self[duration_us] = round_duration(duration_us)
        return rounded


_KEPT = 100_000


def round_duration(duration_us: int) -> int:
    """
    Return a duration rounded to five significant bits, the middle of its bucket: within 3.2 % of the true one.

    Exact below 32 us. Buckets of equal durations add up, so quantiles over merged rows are those over all rows.

    >>> round_duration(0), round_duration(31), round_duration(33), round_duration(1_000_000)
    (0, 31, 33, 999424)
    """
    shift = duration_us.bit_length() - 5
    if shift <= 0:
        return duration_us
    return min((duration_us >> shift << shift) + (1 << shift >> 1), 0xFFFFFFFF)


_rounded = _Rounded()
