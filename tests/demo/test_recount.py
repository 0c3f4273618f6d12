"""
The views against a recount of the events of a run, in plain Python: nothing of the processors is used here.

The events are read as JSON from the log that the proxy wrote, defaults filled in by hand, prices by the book's text.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import pytest
import yaml

from gnomon.events.log import Reader
from ingest.engine import Engine
from tests.ingest.engine_process import EngineProcess
from tests.services import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.clickhouse, pytest.mark.timeout(180)]

Facts = dict[str, Any]
ATTEMPT: Facts = {"tier": "primary", "kind": "client", "vendor": "", "cause": "", "outcome": "result"}
ATTEMPT |= {"error_class": "", "status": 0, "is_empty": False, "is_cancelled": False, "response_bytes": 0}


@dataclass(frozen=True)
class Run:
    """A demonstration that is over: its events, and the tables that were made from them."""

    events: list[Facts]
    engine: Engine

    def of(self, kind: str) -> list[Facts]:
        return [event for event in self.events if event["type"] == kind]

    def attempts(self) -> Iterator[Facts]:
        """Every call, with the members that the wire leaves out."""
        for event in self.events:
            method = event.get("method", "")
            for attempt in [*event.get("attempts", ()), *([event["attempt"]] if "attempt" in event else ())]:
                yield {**ATTEMPT, **attempt, "method": attempt.get("method", "") or method}

    def counts(self, columns: str, view: str) -> Counter[tuple[str, ...]]:
        """Return how often each combination of the columns stands in a view."""
        rows = self.engine.rows(f"SELECT {columns}, count() FROM gnomon.{view} GROUP BY ALL")
        return Counter({tuple(row[:-1]): int(row[-1]) for row in rows})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("recount")
    gnomon = [sys.executable, "-c", "import sys; from gnomon.cli import main; sys.exit(main())"]
    command = [*gnomon, "demo", "--simulated", "--seconds", "10", "--data", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    reader = Reader(folder / "events" / "0", 0)
    events: list[Facts] = []
    while records := reader.read()[1]:
        events += map(json.loads, records)
    reader.close()
    clickhouse = EngineProcess(folder)
    clickhouse.start()
    yield Run(events, clickhouse.connect())
    clickhouse.stop()


def prices() -> tuple[Decimal, Facts]:
    """Return USD for a million units, and the book, of the vendor that the demonstration pays."""
    text = (ROOT / "gnomon" / "cost" / "books" / "alchemy.yaml").read_text("utf-8")
    book = yaml.load(text, Loader=yaml.BaseLoader)  # texts only: no number is rounded
    return Decimal(book["usd_per_million_units"]), book


def usd(attempt: Facts) -> Decimal:
    if attempt["vendor"] == "":
        return Decimal(0)
    assert attempt["vendor"] == "alchemy"
    million, book = prices()
    free = attempt["error_class"] == "method_not_found" or attempt["status"] in (403, 429)
    units = Decimal(0) if free else Decimal(book["methods"].get(attempt["method"], book["default_units"]))
    return (units * million / 10**6).quantize(Decimal("1e-12"), ROUND_HALF_EVEN)


def test_every_event_is_stored_once(run: Run) -> None:
    """accepted = shipped = stored = distinct, and as many as there are in the log."""
    ((*sums,),) = run.engine.rows(
        "SELECT sum(accepted), sum(shipped), sum(stored), sum(distinct_stored), sum(dead_lettered) "
        "FROM gnomon.reconciliation"
    )

    assert [*map(int, sums)] == [len(run.events)] * 4 + [0]
    assert len({event["event_id"] for event in run.events}) == len(run.events) > 500


def test_requests_are_those_of_the_log(run: Run) -> None:
    """By id, and by everything that says how they were answered."""
    requests = run.of("primary_response")
    columns = ("method", "outcome", "error_class", "upstream", "tier", "cause")
    default = {"outcome": "result"}
    expected = Counter(
        (*(event.get(c, default.get(c, "")) for c in columns), str(len(event.get("attempts", ()))))
        for event in requests
    )

    assert run.counts(f"{', '.join(columns)}, n_attempts", "requests") == expected
    stored = run.engine.rows("SELECT request_id, duration_us, response_bytes FROM gnomon.requests ORDER BY request_id")
    assert stored == sorted(
        [e["request_id"], str(e.get("duration_us", 0)), str(e.get("response_bytes", 0))] for e in requests
    )


def test_calls_are_those_of_the_log(run: Run) -> None:
    """Clients' calls, mirrored ones and our own."""
    columns = ("upstream", "vendor", "tier", "kind", "cause", "method", "outcome", "error_class")
    flags = ("is_empty", "is_cancelled")
    expected = Counter((*(a[c] for c in columns), *(str(int(a[c])) for c in flags)) for a in run.attempts())

    assert run.counts(", ".join([*columns, *(f"toUInt8({c})" for c in flags)]), "attempts") == expected
    assert {"client", "shadow", "head_poll"} <= {kind for _, _, _, kind, *_ in expected}


@pytest.mark.parametrize("view", ["attempts", "spend_hourly"])
def test_money_is_right_to_the_last_digit(run: Run, view: str) -> None:
    """Each call is rounded, then summed, by kind and cause of leaving the primary; the rollup says the same."""
    expected: dict[tuple[str, str, str], Decimal] = {}
    calls: Counter[tuple[str, str, str]] = Counter()
    for attempt in run.attempts():
        key = (attempt["upstream"], attempt["kind"], attempt["cause"])
        expected[key] = expected.get(key, Decimal(0)) + usd(attempt)
        calls[key] += 1
    n = "count()" if view == "attempts" else "sum(n)"
    rows = run.engine.rows(f"SELECT upstream, kind, cause, sum(usd), {n} FROM gnomon.{view} GROUP BY ALL")

    assert {(u, k, c): Decimal(amount) for u, k, c, amount, _ in rows} == expected
    assert {(u, k, c): int(count) for u, k, c, _, count in rows} == calls
    assert any(cause == "empty_at_head" and amount > 0 for (_, _, cause), amount in expected.items())


def test_each_mirrored_call_has_its_verdict(run: Run) -> None:
    """Equal bytes are identical, no answer is missing, and only different bytes can be a mismatch."""
    expected: Counter[tuple[str, ...]] = Counter()
    for event in run.of("shadow_response"):
        primary, shadow = event["primary"], event["shadow"]
        is_equal = primary.get("digest", "") == shadow.get("digest", "") != ""
        expected[event["method"], "equal" if is_equal else "differs" if shadow.get("digest") else "missing"] += 1
    found: Counter[tuple[str, ...]] = Counter()
    for (method, outcome, is_equal), n in run.counts(
        "method, outcome, toUInt8(primary_hash = shadow_hash)", "comparisons"
    ).items():
        found[method, {"missing": "missing"}.get(outcome, "equal" if is_equal == "1" else "differs")] += n
        if outcome in ("mismatch", "tolerated", "identical_masked", "error"):
            assert is_equal == "0"

    assert found == expected
    assert run.engine.rows("SELECT count(), uniqExact(request_id, shadow_upstream) FROM gnomon.comparisons") == [
        [str(expected.total())] * 2
    ]
    verdicts = "method, outcome, class, finality"
    rolled = run.engine.rows(f"SELECT {verdicts}, sum(n) FROM gnomon.divergence_minutely GROUP BY ALL")
    assert {tuple(row[:-1]): int(row[-1]) for row in rolled} == run.counts(verdicts, "comparisons")


def test_findings_are_those_of_the_verdicts(run: Run) -> None:
    """As many paths as the verdict says, and a difference is never without one."""
    ((wrong, mismatches),) = run.engine.rows(
        "SELECT countIf(c.n_findings != f.n OR (c.outcome = 'mismatch' AND f.n = 0)), countIf(c.outcome = 'mismatch') "
        "FROM gnomon.comparisons AS c LEFT JOIN (SELECT request_id, shadow_upstream, count() AS n FROM gnomon.findings "
        "GROUP BY ALL) AS f ON f.request_id = c.request_id AND f.shadow_upstream = c.shadow_upstream"
    )

    assert int(wrong) == 0
    assert int(mismatches) > 0


def test_decisions_heads_and_reorgs_are_those_of_the_log(run: Run) -> None:
    """One row each."""
    decisions = Counter(d for e in run.of("primary_response") for d in e.get("shadows", {}).items())
    heads = Counter((e["upstream"], e["axis"], str(e["number"])) for e in run.of("head_update"))

    assert run.counts("upstream, decision", "shadow_decisions") == decisions
    assert run.counts("upstream, axis, number", "heads") == heads
    assert run.counts("upstream", "reorgs").total() == len(run.of("reorg"))
    assert run.counts("upstream", "breaker_transitions").total() == len(run.of("breaker_transition"))
