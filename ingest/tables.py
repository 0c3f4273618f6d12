"""
The tables that the sink writes: columns, wire types and partitions.

A row is a tuple in the order of `Table.columns`: its first item is the time that decides its partition (ms since 1970,
UTC), its last the offset of its event. `log_id`, `topic` and `part` are the sink's and are not in a row.

tests/analytics/test_migrations.py holds these beside what the migrations make.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from typing import Any

from ingest.native import (
    Column,
    Encoder,
    bools,
    counters,
    histograms,
    nullable_amounts,
    nullable_numbers,
    numbers,
    raws,
    texts,
    word_lists,
    words,
)

Row = tuple[Any, ...]

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
MINUTE_MS = 60_000
DATABASE = "gnomon_core"

_KINDS: dict[str, tuple[str, Encoder]] = {
    "time": ("DateTime64(3, 'UTC')", numbers("q")),
    "text": ("String", texts),
    "word": ("LowCardinality(String)", words),
    "raw": ("String", raws),
    "bool": ("Bool", bools),
    "u16": ("UInt16", numbers("H")),
    "u32": ("UInt32", numbers("I")),
    "u64": ("UInt64", numbers("Q")),
    "u64?": ("Nullable(UInt64)", nullable_numbers("Q")),
    "i64?": ("Nullable(Int64)", nullable_numbers("q")),
    "amount?": ("Nullable(Decimal(38, 12))", nullable_amounts),
    "words": ("Array(String)", word_lists),
    "counters": ("Map(String, UInt64)", counters),
    "histogram": ("Map(UInt32, UInt64)", histograms),
}
"""Kind → type on the wire and encoder. The engine casts each to its column's type, or aggregate state."""


@cache
def _month(day: int) -> int:
    date = datetime.fromtimestamp(day * 86400, UTC)
    return date.year * 100 + date.month


def partition_by_day(time_ms: int) -> int:
    """Return the partition of a time in a table `PARTITION BY toDate(at)`: days since 1970."""
    return time_ms // DAY_MS


def partition_by_month(time_ms: int) -> int:
    """Return the partition of a time in a table `PARTITION BY toYYYYMM(…)`."""
    return _month(time_ms // DAY_MS)


def single_partition(time_ms: int) -> int:
    """Return the only partition of a table that is not partitioned."""
    return 0


@dataclass(frozen=True)
class Table:
    """One table of the sink."""

    name: str
    columns: tuple[Column, ...]
    """Of a row; the last is `off`."""
    partition: Callable[[int], int]
    partition_sql: str
    """The same in SQL."""

    @cached_property
    def wire_columns(self) -> tuple[Column, ...]:
        """The columns of a block: those of a row, then the rest of the key."""
        return self.columns + _KEY

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of a row's columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def word_places(self) -> dict[str, int]:
        """The columns of low cardinality, numbered in their order."""
        chosen = (column.name for column in self.columns if column.encode is words)
        return {name: place for place, name in enumerate(chosen)}

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The other columns."""
        return tuple(column.name for column in self.columns if column.encode is not words)


def _columns(spec: str) -> tuple[Column, ...]:
    columns = []
    for item in spec.split():
        name, kind = item.split(":")
        columns.append(Column(name, *_KINDS[kind]))
    return tuple(columns)


_KEY = _columns("log_id:word topic:word part:u16")


def _by_day(name: str, spec: str) -> Table:
    return Table(name, _columns(f"at:time {spec} off:u64"), partition_by_day, "toUInt32(toDate(at))")


def _by_month(name: str, spec: str) -> Table:
    columns = _columns(f"{spec} off:u64")
    return Table(name, columns, partition_by_month, f"toYYYYMM({columns[0].name})")


REQUESTS = _by_day(
    "requests",
    """request_id:text batch_id:text project:word network:word user:word agent:word method:word params:raw rpc_id:raw
    block_number:u64? block_tag:word outcome:word error_class:word reject_reason:word upstream:word tier:word
    n_attempts:u16 n_skipped_open:u16 cause:word short_circuited:bool beyond_head:bool escaped:bool duration_us:u32
    request_bytes:u32 response_bytes:u32 answer_kind:word answer_hash:text head_latest:u64? head_finalized:u64?
    config_hash:word event_id:text""",
)
ATTEMPTS = _by_day(
    "attempts",
    """attempt_id:text idx:u16 request_id:text project:word user:word network:word upstream:word vendor:word
    account:word tier:word kind:word cause:word method:word outcome:word error_class:word error_code:i64? status:u16
    is_empty:bool is_cancelled:bool is_duplicate:bool is_useless:bool is_wasted:bool start_us:u32 duration_us:u32
    request_bytes:u32 response_bytes:u32 n_batch:u16 units:amount? usd:amount? is_estimate:bool block_number:u64?
    head_latest:u64? blocks_behind:u64? event_id:text""",
)
SHADOW_DECISIONS = _by_day(
    "shadow_decisions",
    "request_id:text project:word network:word upstream:word method:word decision:word event_id:text",
)
COMPARISONS = _by_day(
    "comparisons",
    """request_id:text project:word user:word network:word method:word primary_upstream:word shadow_upstream:word
    outcome:word class:word classes:words finality:word settled:word suspect:word reason:word block_number:u64?
    is_emptyish:bool is_larger:bool is_control:bool primary_kind:word shadow_kind:word primary_hash:text
    shadow_hash:text primary_bytes:u32 shadow_bytes:u32 primary_error_class:word shadow_error_class:word
    primary_duration_us:u32 shadow_duration_us:u32 mask_version:word tolerance_version:word n_findings:u16
    n_masked:u32 params:raw head_latest:u64? head_finalized:u64? primary_head:u64? shadow_head:u64? config_hash:word
    event_id:text""",
)
FINDINGS = _by_day(
    "findings",
    """request_id:text idx:u16 network:word method:word shadow_upstream:word path:text generic_path:word n_paths:u32
    class:word primary_value:text shadow_value:text event_id:text""",
)
BODIES = _by_day("bodies", "hash:text n_bytes:u32 is_head_only:bool body:raw event_id:text")
HEADS = _by_day(
    "heads",
    """network:word upstream:word axis:word number:u64 hash:text parent_hash:text source:word is_outlier:bool
    event_id:text""",
)
REORGS = _by_day("reorgs", "network:word upstream:word number:u64 depth:u32 old_hash:text new_hash:text event_id:text")
BREAKER_TRANSITIONS = _by_day(
    "breaker_transitions",
    "network:word upstream:word from_state:word to_state:word reason:word scope:word counters:counters event_id:text",
)
DEAD_LETTERS = Table(
    "dead_letters",
    _columns("at:time event_at:time reason:word detail:text bytes:raw off:u64"),
    single_partition,
    "toUInt32(0)",
)
SPEND_HOURLY = _by_month(
    "spend_hourly",
    """hour:time project:word network:word vendor:word account:word upstream:word tier:word kind:word cause:word
    method:word n:u64 n_wasted:u64 n_unpriced:u64 n_unitless:u64 units:amount? usd:amount?""",
)
DIVERGENCE_MINUTELY = _by_month(
    "divergence_minutely",
    "minute:time network:word method:word shadow_upstream:word outcome:word class:word finality:word n:u64",
)
HEALTH_MINUTELY = _by_month(
    "health_minutely",
    "minute:time network:word upstream:word tier:word n:u64 n_failed:u64 n_empty:u64 durations:histogram",
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        REQUESTS, ATTEMPTS, SHADOW_DECISIONS, COMPARISONS, FINDINGS, BODIES, HEADS, REORGS, BREAKER_TRANSITIONS,
        DEAD_LETTERS, SPEND_HOURLY, DIVERGENCE_MINUTELY, HEALTH_MINUTELY,
    )
}  # fmt: skip
"""By name; a batch is stored in this order (any order would do)."""

EPOCHS_COLUMNS = _columns("log_id:word topic:word part:u16 epoch:u64 at:time")
PROGRESS_COLUMNS = _columns(
    "log_id:word topic:word part:u16 hour:time n:u64 next:u64 epoch:u64 log_end:u64 dropped:u64 at:time procs:counters"
)


def column_index(table: Table, name: str) -> int:
    """Return where a column stands in a row."""
    return next(i for i, column in enumerate(table.columns) if column.name == name)
