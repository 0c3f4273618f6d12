"""
What was lost, doubled or judged wrongly, by three counts that know nothing of each other.

    questions   what clients were told and upstreams were asked, beside the rows with that question's number; the
                verdict of each pair beside the script's
    events      what the proxy's log accepted, beside what is on the topics, beside the rows of each event in each
                table, which the steps make of the topics' records in one go
    reconcile   `gnomon reconcile`

An answered question has exactly one row; one without an answer at most one. Of a pair whose proxy was killed before it
was complete the verdict may be `missing`.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from bench.cluster_chaos import script
from bench.cluster_chaos.clients import Clients
from bench.cluster_chaos.cluster import Cluster
from bench.cluster_chaos.poison import Poisoner
from bench.cluster_chaos.upstreams import Calls
from gnomon.config.load import load
from ingest.batch import decode
from ingest.rows import rows_of
from ingest.settings import context
from ingest.tables import TABLES, column_index
from proxy.shipper.cluster import SENT
from tests.proxy.shipper.shipping import stored as on_topics

K = TypeVar("K")
ROLLUPS: Mapping[str, str] = {
    "spend_hourly": "attempts",
    "divergence_minutely": "comparisons",
    "health_minutely": "attempts",
}
COUNTED = [name for name in TABLES if name not in (*ROLLUPS, "bodies", "dead_letters")]
"""Each row of these has its event's id."""
KILL_SECONDS = script.SHADOW_TIMEOUT_SECONDS + 2.0
"""So long after its answer a pair may still be incomplete."""
BATCH = 5_000


@dataclass(slots=True)
class Count:
    """The outcome; all of `lost`, `doubled`, `wrong` must be 0."""

    lost: Counter[str] = field(default_factory=Counter)
    doubled: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """Verdicts, answers, and what `reconcile` says."""
    facts: dict[str, int] = field(default_factory=dict)

    @property
    def is_exact(self) -> bool:
        """Whether all is there once, and right."""
        return not (self.lost.total() or self.doubled.total() or self.wrong)

    def compare(self, what: str, wanted: Mapping[K, int], found: Mapping[K, int]) -> None:
        """Add what is missing and what is too much."""
        wanted_counter, found_counter = Counter(wanted), Counter(found)
        if n := (wanted_counter - found_counter).total():
            self.lost[what] += n
        if n := (found_counter - wanted_counter).total():
            self.doubled[what] += n


def count(cluster: Cluster, clients: Clients, calls: Calls, poisoner: Poisoner, *, is_patient: bool) -> Count:
    """
    Compare everything; all that was accepted is stored.

    Args:
        is_patient: calls that a killed proxy left without an end have their verdict; else they may have none.
    """
    done = Count()
    _questions(done, cluster, clients, calls)
    _verdicts(done, cluster, clients, is_patient=is_patient)
    _events(done, cluster, poisoner)
    _reconcile(done, cluster)
    return done


def _rows_by_question(cluster: Cluster, sql: str) -> Counter[int]:
    return Counter({int(n): int(found) for n, found in cluster.rows(sql)})


def _is_near_a_kill(cluster: Cluster, clients: Clients, n: int) -> bool:
    told = clients.told[n]
    end = (told.answered_at or told.asked_at) + KILL_SECONDS
    return any(told.asked_at <= at <= end for at in cluster.kills)


def _questions(done: Count, cluster: Cluster, clients: Clients, calls: Calls) -> None:
    """Rows of requests and calls by question, against clients and upstreams."""
    answered = {n for n, told in clients.told.items() if told.answered_at is not None}
    found = _rows_by_question(
        cluster, "SELECT block_number, count() FROM gnomon_core.requests WHERE outcome = 'result' GROUP BY 1"
    )
    done.wrong += clients.wrong[:20]
    done.compare("answered questions", dict.fromkeys(answered, 1), {n: m for n, m in found.items() if n in answered})
    others = {n: min(m, 1) for n, m in found.items() if n in clients.told and n not in answered}
    done.compare("questions without an answer", others, {n: m for n, m in found.items() if n not in answered})
    shown: Counter[tuple[str, int]] = Counter()
    for upstream, n, m in cluster.rows(
        "SELECT upstream, block_number, count() FROM gnomon_core.attempts "
        "WHERE request_bytes > 0 AND kind NOT IN ('head_poll', 'chain_check', 'subscription') GROUP BY 1, 2"
    ):
        shown[upstream, int(n)] = int(m)
    taken = calls.by_question
    done.compare("calls", {}, shown - taken)
    owed = {key: m for key, m in taken.items() if key[1] in answered and not _is_near_a_kill(cluster, clients, key[1])}
    done.compare("calls", owed, {key: min(shown[key], m) for key, m in owed.items()})
    done.facts |= {
        "asked": len(clients.told), "answered": len(answered), "errors": clients.n_errors,
        "nobody listened": clients.n_refused, "calls taken": taken.total(), "calls stored": shown.total(),
    }  # fmt: skip


def _verdicts(done: Count, cluster: Cluster, clients: Clients, *, is_patient: bool) -> None:
    """The verdict of each pair, against the script; and who has no pair, by the decision that says so."""
    found: dict[int, list[tuple[str, str, str, str]]] = {}
    for number, *verdict in cluster.rows(
        "SELECT block_number, outcome, class, finality, reason FROM gnomon_core.comparisons ORDER BY at"
    ):
        outcome, kind, finality, reason = verdict
        found.setdefault(int(number), []).append((outcome, kind, finality, reason))
    decisions = {
        int(number): decision
        for number, decision in cluster.rows(
            "SELECT r.block_number, d.decision FROM gnomon_core.shadow_decisions AS d "
            "INNER JOIN gnomon_core.requests AS r ON r.request_id = d.request_id"
        )
    }
    tally: Counter[str] = Counter()
    for n, told in clients.told.items():
        verdicts = found.pop(n, [])
        wanted = script.VERDICTS[script.kind(n)]
        is_answered, is_near = told.answered_at is not None, _is_near_a_kill(cluster, clients, n)
        decision = decisions.get(n)
        if len(verdicts) > 1:
            done.doubled["verdicts"] += len(verdicts) - 1
        elif verdicts and decision is None and is_answered:
            done.lost["decisions"] += 1
        elif not verdicts and is_answered and decision in (None, "mirrored") and (is_patient or not is_near):
            done.lost["verdicts"] += 1
        if decision not in (None, "mirrored"):
            tally["not mirrored"] += 1
        for outcome, kind, finality, reason in verdicts:
            if reason == "never_ended" and is_near:
                tally["verdicts never ended"] += 1
            elif (outcome, kind) == wanted:
                tally[f"verdicts {outcome}"] += 1
            elif finality != "finalized" and (outcome, kind) == script.BEFORE_HEADS.get(script.kind(n)):
                tally["verdicts before heads were known"] += 1
            elif is_answered:
                done.wrong.append(
                    f"question {n} ({script.kind(n)}): {outcome}, {kind}, {finality} {reason}; {wanted} is right"
                )
    done.compare("verdicts of nobody's questions", {}, dict.fromkeys(found, 1))
    done.facts |= {"verdicts never ended": 0, **tally}


def _events(done: Count, cluster: Cluster, poisoner: Poisoner) -> None:
    """The log, the topics and the rows, event by event."""
    log = cluster.log
    topics = asyncio.run(on_topics(cluster.broker.address, ""))
    n_records, first_ones, dead = 0, [], []
    events: set[tuple[str, int]] = set()
    for (topic, _), place in topics.items():
        if topic not in SENT:
            continue
        fresh, poison, n = _first_occurrences(value for _, value in place)
        n_records += n
        first_ones += fresh
        dead += poison
        events.update(proc_and_number(value) for value in fresh)
    done.compare("events between log and topics", {"": log.accepted}, {"": len(first_ones)})
    if len(events) != len(first_ones):
        done.doubled["events in two partitions"] += len(first_ones) - len(events)
    if log.dropped:
        done.lost["events that a full log refused"] += log.dropped
    wanted = _expected(cluster, first_ones)
    for name in COUNTED:
        rows = cluster.rows(f"SELECT event_id, count() FROM gnomon_core.{name} WHERE topic != 'missing' GROUP BY 1")
        done.compare(f"rows of {name}", wanted[name], {event: int(n) for event, n in rows})
    letters = Counter(
        {bytes.fromhex(text): int(n) for text, n in cluster.rows(
            "SELECT lower(hex(bytes)), count() FROM gnomon_core.dead_letters GROUP BY 1")}
    )  # fmt: skip
    maybe = {record: min(letters[record], 1) for record in poisoner.unknown}
    done.compare("dead letters", {**dict.fromkeys(poisoner.acknowledged, 1), **maybe}, letters)
    for rollup, source in ROLLUPS.items():
        where = "kind NOT IN ('head_poll', 'chain_check')" if rollup == "health_minutely" else "topic != 'missing'"
        # The rollup of verdicts has those that never ended too: they go through the same sink.
        where = "1" if rollup == "divergence_minutely" else where
        ((grouped,),) = cluster.rows(f"SELECT sum(n) FROM gnomon_core.{rollup}")
        ((single,),) = cluster.rows(f"SELECT count() FROM gnomon_core.{source} WHERE {where}")
        done.compare(f"rows grouped in {rollup}", {"": int(single)}, {"": int(grouped)})
    money = "SELECT sum(usd), sum(units) FROM gnomon_core."
    if cluster.rows(money + "spend_hourly") != cluster.rows(money + "attempts"):
        done.wrong.append("money: the sum of spend_hourly is not that of attempts")
    ((days,),) = cluster.rows("SELECT uniqExact(toDate(at)) FROM gnomon_core.requests")
    done.facts |= {
        "events": len(first_ones), "records": n_records, "sent again": n_records - len(first_ones) - len(dead),
        "poison": len(poisoner.acknowledged), "rows": sum(sum(rows.values()) for rows in wanted.values()),
        "days": int(days),
    }  # fmt: skip


def proc_and_number(record: bytes) -> tuple[str, int]:
    """Return which process numbered an event how."""
    start = record.index(b'"event_id":"') + 12
    proc, _, number = record[start : record.index(b'"', start)].decode().partition(":")
    return proc, int(number)


def _first_occurrences(values: Iterable[bytes]) -> tuple[list[bytes], list[bytes], int]:
    """Return a partition's events without what was sent again, its poison, and how many records it has."""
    seen: set[tuple[str, int]] = set()
    fresh, poison, n = [], [], 0
    for value in values:
        n += 1
        if value.startswith(b"poison"):
            poison.append(value)
        elif (event := proc_and_number(value)) not in seen:
            seen.add(event)
            fresh.append(value)
    return fresh, poison, n


def _expected(cluster: Cluster, records: list[bytes]) -> dict[str, Counter[str]]:
    """Return per table how many rows each event has, from the steps alone."""
    steps = context(load(cluster.config, environment={}))
    wanted: dict[str, Counter[str]] = {name: Counter() for name in COUNTED}
    for start in range(0, len(records), BATCH):
        made = rows_of(decode(0, records[start : start + BATCH]), steps, 0).rows.tables
        for name in COUNTED:
            at = column_index(TABLES[name], "event_id")
            wanted[name].update(row[at] for row in made.get(name, ()))
    return wanted


def _reconcile(done: Count, cluster: Cluster) -> None:
    ran = cluster.gnomon("reconcile", "--from", "now-49h", "--to", "now", "--format", "csv")
    if ran.returncode:
        done.wrong += [f"reconcile: {line}" for line in (ran.stderr or ran.stdout).splitlines()[:10]]
