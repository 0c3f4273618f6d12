"""
The step: a batch of consecutive events becomes rows of every table.

`(batch, context) -> rows`, pure. Each event is at home in one table, where it has exactly one row with the event's own
time: that is what is counted when accepted and stored are reconciled.

    primary_response    requests            and attempts, shadow_decisions, bodies
    shadow_response     comparisons         and attempts, findings, bodies
    attempt             attempts
    head_update         heads
    reorg               reorgs
    breaker_transition  breaker_transitions
    poison              dead_letters

Masks, tolerances, prices and what is kept come from the context. When the configuration changes between two tries of
one batch, that batch may be mixed (comparisons by the old mask, findings by the new); never twice, never lost.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from gnomon.cost.charge import Charger
from gnomon.events.contract import BreakerTransition, HeadUpdate, InternalAttempt, Reorg
from gnomon.rpc.methods import lookup
from ingest import bodies
from ingest.asked import Asked, asked_of
from ingest.attempts import internal_attempts, request_attempts, shadow_attempts
from ingest.batch import Batch, Group, Poison, alone, without
from ingest.blocks import Block, Label, Rows, each
from ingest.comparisons import Alike, Policies, Verdict, compare
from ingest.reading import AnyRecord, Pair, Request
from ingest.tables import (
    BREAKER_TRANSITIONS,
    DEAD_LETTERS,
    HEADS,
    REORGS,
    REQUESTS,
    SHADOW_DECISIONS,
    TABLES,
    Table,
)

log = logging.getLogger("gnomon.ingest")


@dataclass(slots=True)
class Context:
    """What the step knows besides the events. Those who hold it see what it becomes (`ingest.reloading`)."""

    charger: Charger
    policies: Policies
    keep_bodies: Literal["diverged", "all", "none"] = "diverged"
    sample_identical_bodies: float = 0.0
    """Share of mirrored answers whose body is kept although nothing differs; 0 to 1, chosen by digest."""

    def become(self, other: "Context") -> None:
        """Go on with what another one knows."""
        self.charger, self.policies = other.charger, other.policies
        self.keep_bodies, self.sample_identical_bodies = other.keep_bodies, other.sample_identical_bodies


@dataclass(slots=True)
class Step:
    """Rows, and what was seen on the way."""

    rows: Rows
    verdicts: list[Verdict] = field(default_factory=list)
    """Of pairs that are worth a log line."""
    pairs: Counter[Alike] = field(default_factory=Counter)
    skipped: Counter[Label] = field(default_factory=Counter)
    """Decisions other than `mirrored`, by project, network, upstream, method (`_OTHER` if not known), decision."""
    poison: Sequence[Poison] = ()
    """What became dead letters."""
    newest_at_ms: int = 0
    n_repeated: int = 0


def rows_of(batch: Batch, context: Context, now_ms: int) -> Step:
    """
    Return the rows of a batch.

    Args:
        batch: decoded records of one log.
        context: prices, masks, what is kept.
        now_ms: stamps dead letters, whose partition does not depend on it.

    An event at which the step itself fails is a dead letter too (`step_failed`): one bad pair must not stop the rest.
    """
    try:
        return _rows_of(batch, context, now_ms)
    except Exception:
        return _rows_of(_without_failing(batch, context, now_ms), context, now_ms)


def _without_failing(batch: Batch, context: Context, now_ms: int) -> Batch:
    """Return the batch with each event as poison at which the step fails, trying one at a time."""
    for off, event in batch.events:
        try:
            _rows_of(alone(batch, off, event), context, now_ms)
        except Exception as error:
            log.exception("the step failed at offset=%d, put aside", off)
            batch = without(batch, off, f"{type(error).__name__}: {error}")
    return batch


def _rows_of(batch: Batch, context: Context, now_ms: int) -> Step:
    step = Step(
        Rows(batch.first, batch.next, hours=batch.hours, seen=batch.seen),
        poison=batch.poison,
        newest_at_ms=batch.newest_at_ms,
        n_repeated=batch.n_repeated,
    )
    blocks: list[Block] = []
    kept: list[bodies.Source] = []
    if group := batch.groups.get(Request):
        asked = asked_of(group.of["method"], group.of["params"])
        decisions = _decisions(group)
        step.skipped = _skipped(decisions)
        blocks += _requests(group, asked), decisions, request_attempts(group, asked, context.charger)
        if context.keep_bodies == "all":
            kept += bodies.of_requests(group)
        elif context.keep_bodies == "diverged" and context.sample_identical_bodies > 0:
            kept += bodies.of_requests(group, context.sample_identical_bodies)
    if group := batch.groups.get(Pair):
        asked = asked_of(group.of["method"], group.of["params"])
        compared = compare(group, asked, context.policies)
        step.verdicts, step.pairs = compared.verdicts, compared.counts
        blocks += compared.comparisons, compared.findings, shadow_attempts(group, asked, context.charger)
        if context.keep_bodies != "none":
            kept += bodies.of_pairs(group)
    if group := batch.groups.get(InternalAttempt):
        blocks.append(internal_attempts(group, context.charger))
    blocks += [_plain(table, group) for kind, table in _PLAIN.items() if (group := batch.groups.get(kind))]
    blocks += bodies.distinct(bodies.body_rows(kept)), _dead_letters(batch.poison, now_ms)
    step.rows.tables = _by_table(blocks)
    return step


_PLAIN: dict[type[AnyRecord], Table] = {HeadUpdate: HEADS, Reorg: REORGS, BreakerTransition: BREAKER_TRANSITIONS}


def joined(steps: Sequence[Step]) -> Step:
    """Return steps of batches that follow each other as one."""
    if len(steps) == 1:
        return steps[0]
    rows = Rows(steps[0].rows.first, steps[-1].rows.next)
    rows.tables = _by_table([block for step in steps for block in step.rows.tables.values()])
    rows.tables["bodies"] = bodies.distinct(rows.tables["bodies"])
    whole = Step(rows)
    poison: list[Poison] = []
    for step in steps:
        for hour, n in step.rows.hours.items():
            rows.hours[hour] = rows.hours.get(hour, 0) + n
        rows.seen.update(step.rows.seen)
        whole.verdicts += step.verdicts
        whole.pairs.update(step.pairs)
        whole.skipped.update(step.skipped)
        whole.newest_at_ms = max(whole.newest_at_ms, step.newest_at_ms)
        whole.n_repeated += step.n_repeated
        poison += step.poison
    whole.poison = poison
    return whole


def _by_table(blocks: Iterable[Block]) -> dict[str, Block]:
    """Return the blocks of each table as one."""
    found: dict[str, list[Block]] = {}
    for block in blocks:
        if block:
            found.setdefault(block.table.name, []).append(block)
    return {name: Block.joined(table, found.get(name, ())) for name, table in TABLES.items()}


def _requests(group: Group, asked: Sequence[Asked]) -> Block:
    request = group.of
    heads = [heads.network for heads in request["heads"]]
    columns = {
        **request,
        "at": [at // 1_000_000 for at in request["at"]],
        "params": [
            b"" if method.startswith(bodies.UNSTORED_PREFIX) else bytes(params)
            for method, params in zip(request["method"], request["params"], strict=True)
        ],
        "rpc_id": list(map(bytes, request["rpc_id"])),
        "block_number": [question.ref.number for question in asked],
        "block_tag": [question.ref.tag for question in asked],
        "n_attempts": group.n_calls,
        "answer_kind": [answer.kind for answer in request["answer"]],
        "answer_hash": [answer.digest for answer in request["answer"]],
        "head_latest": [head.latest for head in heads],
        "head_finalized": [head.finalized for head in heads],
        "off": group.offsets,
    }
    return Block(REQUESTS, columns)


def _decisions(group: Group) -> Block:
    request = group.of
    shadows: Sequence[Mapping[str, str]] = request["shadows"]
    counts = list(map(len, shadows))
    if not any(counts):
        return Block(SHADOW_DECISIONS, {})
    columns: dict[str, Sequence[Any]] = {
        **{name: each(request[name], counts) for name in ("request_id", "project", "network", "method", "event_id")},
        "at": [at // 1_000_000 for at in each(request["at"], counts)],
        "upstream": list(chain.from_iterable(shadows)),
        "decision": list(chain.from_iterable(decisions.values() for decisions in shadows)),
        "off": each(group.offsets, counts),
    }
    return Block(SHADOW_DECISIONS, columns)


def _skipped(decisions: Block) -> Counter[Label]:
    counts: Counter[Label] = Counter()
    for number, n in Counter(decisions.numbers).items():
        project, network, upstream, method, decision = decisions.labels[number]
        if decision != "mirrored":
            counts[(project, network, upstream, method if lookup(method).is_known else "_OTHER", decision)] += n
    return counts


def _plain(table: Table, group: Group) -> Block:
    """Return the rows of events whose members are called as the table's columns."""
    return Block(table, {**group.of, "at": [at // 1_000_000 for at in group.of["at"]], "off": group.offsets})


def _dead_letters(poison: Sequence[Poison], now_ms: int) -> Block:
    return Block.of_rows(
        DEAD_LETTERS, [(now_ms, one.event_at_ms, one.reason, one.detail, one.data, one.off) for one in poison]
    )
