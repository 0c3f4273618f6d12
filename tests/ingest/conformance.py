"""
What two runners must have in common: the image of the tables.

Same events in, same rows out, byte for byte, whatever log they came by. What must differ, and is left out of an image:

* `log_id`, `topic`, `part`, `off`: the place of an event in its log. In exchange `places` must be right: all rows of an
  event have one place, no other event has it, and it is where the event was put.
* `at` of `dead_letters`: when the record was met.
* how groups of the rollups are cut into rows: groups of one key are added up, as every question over them does.
* `bodies` is a set by day and hash: which of several events brought a body does not matter.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from ingest.tables import DAY_MS, TABLES, Row, Table, column_index
from tests.ingest.kafka.cluster import Cluster
from tests.ingest.memory_engine import MemoryEngine

Image = dict[str, Counter[str]]
Place = tuple[str, str, int, int]
"""Log id, topic, part, offset."""

_N_KEY = 4
_SOURCED = "topic != 'missing'"
"""Rows of the job for calls that never ended are of no event: they come with time."""


def image_of_memory(engine: MemoryEngine) -> Image:
    """Return the image of tables in memory."""
    out: Image = {}
    for name, table in TABLES.items():
        rows = [row[:-_N_KEY] for row in engine.tables[name]]
        if name.endswith("ly"):
            out[name] = Counter(map(repr, _added(table, rows)))
        elif name == "bodies":
            out[name] = Counter({repr((row[0] // DAY_MS, *row[1:-1])): 1 for row in rows})
        else:
            out[name] = Counter(repr(row[name == "dead_letters" :]) for row in rows)
    return out


def _added(table: Table, rows: Sequence[Row]) -> list[Row]:
    """Return one row per group: numbers are added, an amount that nobody knows adds nothing."""
    kinds = [column.type for column in table.columns[:-1]]
    groups: dict[Row, list[Any]] = {}
    for row in rows:
        pairs = list(zip(kinds, row, strict=True))
        key = tuple(v for kind, v in pairs if not _is_added(kind))
        amounts = [v for kind, v in pairs if _is_added(kind)]
        known = groups.get(key)
        groups[key] = amounts if known is None else [_plus(a, b) for a, b in zip(known, amounts, strict=True)]
    return [(key, [_plain(v) for v in values]) for key, values in groups.items()]


def _is_added(kind: str) -> bool:
    return kind.startswith(("UInt64", "Nullable(Decimal", "Map"))


def _plus(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return a if b is None else b
    if isinstance(a, Mapping):
        return Counter(a) + Counter(b)
    return a + b


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return sorted(value.items())
    return value.normalize() if isinstance(value, Decimal) else value


def image_of(cluster: Cluster) -> Image:
    """Return the image of the tables in ClickHouse."""
    out: Image = {}
    for name, table in TABLES.items():
        columns = [column for column in table.columns if column.name != "off"]
        if name.endswith("ly"):
            select = ", ".join(
                f"`{c.name}`" if not _is_added(c.type) else _sum(c.name, c.type) for c in columns
            )  # fmt: skip
            keys = ", ".join(f"`{c.name}`" for c in columns if not _is_added(c.type))
            sql = f"SELECT {select} FROM gnomon_core.{name} WHERE {_SOURCED} GROUP BY {keys}"
        elif name == "bodies":
            sql = "SELECT DISTINCT toDate(at), hash, n_bytes, is_head_only, body FROM gnomon_core.bodies"
        else:
            chosen = [f"`{c.name}`" for c in columns if (name, c.name) != ("dead_letters", "at")]
            sql = f"SELECT {', '.join(chosen)} FROM gnomon_core.{name} WHERE {_SOURCED}"
        out[name] = Counter(map(repr, cluster.rows(sql)))
    return out


def _sum(name: str, kind: str) -> str:
    return f"sumMap(`{name}`)" if kind.startswith("Map") else f"sum(`{name}`)"


def places_of_memory(engine: MemoryEngine) -> dict[str, set[Place]]:
    """Return event id → the places that rows of it have."""
    out: dict[str, set[Place]] = defaultdict(set)
    for name, rows in engine.tables.items():
        if name.endswith("ly") or name in ("dead_letters", "bodies"):
            continue
        at = column_index(TABLES[name], "event_id")
        for row in rows:
            off, log_id, topic, part = row[-_N_KEY:]
            out[row[at]].add((log_id, topic, part, off))
    return dict(out)


def places_of(cluster: Cluster) -> dict[str, set[Place]]:
    """Return event id → the places that rows of it have."""
    out: dict[str, set[Place]] = defaultdict(set)
    for name in TABLES:
        if name.endswith("ly") or name in ("dead_letters", "bodies"):
            continue
        for event_id, log_id, topic, part, off in cluster.rows(
            f"SELECT event_id, log_id, topic, part, off FROM gnomon_core.{name} WHERE {_SOURCED}"
        ):
            out[event_id].add((log_id, topic, int(part), int(off)))
    return dict(out)
