"""
Mirrored calls that never ended: a killed proxy leaves a decision `mirrored` and no `shadow_response`.

Each such decision gets one comparison with outcome `missing` once its deadline and a minute have passed. The rows go
through a sink of their own key (log id, `missing`, part), with the decision's own offset and time: the sink's rule
makes them exact, and what the job has looked at is its progress. A verdict counts whether it is stored, not when: only
offsets are looked at below which every decision is old enough, while the log has been stored up to a time beyond.
"""

from collections.abc import Callable

from gnomon.rpc.blocks import BlockRef
from gnomon.rpc.finality import finality
from gnomon.rpc.methods import lookup
from ingest.blocks import Block, Rows
from ingest.engine import Engine, literal
from ingest.sink import Sink
from ingest.tables import COMPARISONS, DATABASE, HOUR_MS, Row

TOPIC = "missing"
GRACE_SECONDS = 60.0
"""After a shadow's longest timeout; by then its verdict is stored or will never be."""
MAX_OFFSETS = 500_000
"""Looked at in one go."""
_IDLE_OFFSETS = 50_000
"""Without a finding, progress is written down only when so many offsets have been looked at."""
_NULL = "\\N"


class MissingJob:
    """Finds the calls of one log that never ended. One thread uses it, with the connection of that log's sink."""

    def __init__(
        self, engine: Engine, log_id: str, topic: str, part: int, horizon_seconds: float, now_ms: Callable[[], int]
    ) -> None:
        """
        Args:
            engine: a connection with the writer's rights.
            log_id, topic, part: key of the log whose decisions are looked at.
            horizon_seconds: how old a decision must be.
            now_ms: the clock of progress rows.
        """
        self._engine = engine
        self._log_id, self._topic, self._part = log_id, topic, part
        self._horizon_ms = int(horizon_seconds * 1000)
        self._now_ms = now_ms
        self._sink = Sink(engine, log_id, TOPIC, part, now_ms=now_ms)
        self._is_owner = False

    def forget(self) -> None:
        """Take the key over again before the next run."""
        self._is_owner = False

    def run(self, stored_next: int, stored_until_ms: int) -> int:
        """
        Store a `missing` comparison for each call that never ended; return how many.

        Args:
            stored_next: every event of the log below it is stored.
            stored_until_ms: every event of the log up to this time is stored.

        Raises:
            EngineAway, EngineRefused, Fenced: see `ingest.sink`; `forget` before the next run.
        """
        if not self._is_owner:
            self._sink.take_over()
            self._is_owner = True
        start = self._sink.next
        end = self._old_until(start, min(stored_next, start + MAX_OFFSETS), stored_until_ms - self._horizon_ms)
        if end <= start:
            return 0
        rows = self._find(start, end)
        hour = self._now_ms() // HOUR_MS * HOUR_MS
        self._sink.store(Rows(start, end, {"comparisons": Block.of_rows(COMPARISONS, rows)}, {hour: 0}))
        if rows or end - self._sink.stored_next >= _IDLE_OFFSETS:
            self._sink.progress()
        return len(rows)

    @property
    def _where(self) -> str:
        return f"log_id = {literal(self._log_id)} AND topic = {literal(self._topic)} AND part = {self._part}"

    def _old_until(self, start: int, end: int, cutoff_ms: int) -> int:
        """Return the offset of the first decision in [start, end) that is not old enough; else `end`."""
        ((first,),) = self._engine.rows(
            f"SELECT minOrNull(off) FROM {DATABASE}.shadow_decisions WHERE {self._where} AND decision = 'mirrored' "
            f"AND off >= {start} AND off < {end} AND at >= fromUnixTimestamp64Milli({max(cutoff_ms, 0)})"
        )
        return end if first == _NULL else int(first)

    def _find(self, start: int, end: int) -> list[Row]:
        decisions = (
            "SELECT off, toUnixTimestamp64Milli(at) AS at_ms, request_id, project, network, upstream, method, event_id "
            f"FROM {DATABASE}.shadow_decisions WHERE {self._where} AND decision = 'mirrored' "
            f"AND off >= {start} AND off < {end}"
        )
        requests = (
            "SELECT off, user, upstream, answer_kind, answer_hash, error_class, duration_us, response_bytes, "
            "block_number, block_tag, head_latest, head_finalized, config_hash "
            f"FROM {DATABASE}.requests WHERE {self._where} AND off >= {start} AND off < {end}"
        )
        judged = (
            f"SELECT request_id, shadow_upstream FROM {DATABASE}.comparisons WHERE {self._where} AND off >= {start}"
        )
        found = self._engine.rows(
            "SELECT d.off, d.at_ms, d.request_id, d.project, d.network, d.upstream, d.method, d.event_id, r.user, "
            "r.upstream, r.answer_kind, r.answer_hash, r.error_class, r.duration_us, r.response_bytes, r.block_number, "
            "r.block_tag, r.head_latest, r.head_finalized, r.config_hash "
            f"FROM ({decisions}) AS d ANY LEFT JOIN ({requests}) AS r ON r.off = d.off "
            f"WHERE (d.request_id, d.upstream) NOT IN ({judged}) ORDER BY d.off, d.upstream"
        )
        return [_row(fields) for fields in found]


def _row(fields: list[str]) -> Row:
    """Return the row of `comparisons` of a call that never ended."""
    off, at_ms, request_id, project, network, shadow, method, event_id, user, primary, kind, digest = fields[:12]
    error_class, duration_us, n_bytes, block_number, block_tag, latest, finalized, config_hash = fields[12:]
    number = _number(block_number)
    head_latest, head_finalized = _number(latest), _number(finalized)
    values = {
        "at": int(at_ms),
        "request_id": request_id,
        "project": project,
        "user": user,
        "network": network,
        "method": method,
        "primary_upstream": primary,
        "shadow_upstream": shadow,
        "outcome": "missing",
        "class": "none",
        "classes": (),
        "finality": finality(lookup(method), BlockRef(number, block_tag), None, head_latest, head_finalized),
        "reason": "never_ended",
        "block_number": number,
        "is_emptyish": False,
        "is_larger": False,
        "is_control": False,
        "primary_kind": kind,
        "shadow_kind": "none",
        "primary_hash": digest,
        "primary_bytes": int(n_bytes),
        "primary_error_class": error_class,
        "primary_duration_us": int(duration_us),
        "params": b"",
        "head_latest": head_latest,
        "head_finalized": head_finalized,
        "config_hash": config_hash,
        "event_id": event_id,
        "off": int(off),
    }
    return tuple(values[c.name] if c.name in values else _EMPTY[c.type] for c in COMPARISONS.columns)


_EMPTY: dict[str, object] = {
    "String": "",
    "LowCardinality(String)": "",
    "UInt16": 0,
    "UInt32": 0,
    "Nullable(UInt64)": None,
}


def _number(text: str) -> int | None:
    return None if text == _NULL else int(text)
