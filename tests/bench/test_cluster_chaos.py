"""
The whole cluster under faults, in its short form: what clients were told is stored once and judged as the script knows.

The long form is `python -m bench cluster-chaos`.
"""

import json
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.cluster_chaos import run as running
from bench.cluster_chaos import script
from bench.cluster_chaos.cluster import Cluster, back_to_midnight
from bench.cluster_chaos.counting import Count, count
from bench.cluster_chaos.faults import FAULTS, INSERTS, plan
from bench.cluster_chaos.run import Manner, run
from gnomon.compare.cases import judge_case, read_case

SHORT = Manner(seconds=0.5, pause=(0.3, 1.0), per_second=100.0, is_patient=False)
CHOSEN = [
    "worker killed", "worker paused", "rebalance", "proxy killed", "proxy stopped", "broker killed",
    "broker paused, shipper killed", "clickhouse killed", "clickhouse away", "killed between inserts",
]  # fmt: skip


@pytest.mark.kafka
@pytest.mark.clickhouse
@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_whatever_is_killed_paused_or_away_nothing_is_lost_doubled_or_misjudged(
    java: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real processes, load, midnight, late inserts, ten faults; and the count sees what is spoilt by hand."""
    spoilt: list[Count] = []

    def count_twice(cluster: Cluster, *args: object, is_patient: bool) -> Count:
        first = count(cluster, *args, is_patient=is_patient)  # type: ignore[arg-type]
        cluster.command("INSERT INTO gnomon_core.comparisons SELECT * FROM gnomon_core.comparisons LIMIT 1")
        cluster.command(
            "DELETE FROM gnomon_core.requests WHERE event_id = "
            "(SELECT min(event_id) FROM gnomon_core.requests WHERE outcome = 'result')"
        )
        spoilt.append(count(cluster, *args, is_patient=is_patient))  # type: ignore[arg-type]
        return first

    monkeypatch.setattr(running, "count", count_twice)
    started = time.monotonic()
    outcome = run(
        tmp_path, plan(CHOSEN, 1, seed=1), SHORT, lambda line: print(f"[{time.monotonic() - started:.0f} s] {line}")
    )
    print(outcome.line())

    assert (outcome.count.lost, outcome.count.doubled, outcome.count.wrong) == (Counter(), Counter(), [])
    assert outcome.unexpected == Counter()
    assert outcome.count.facts["days"] == 2
    assert outcome.count.facts["answered"] > 1000
    assert outcome.count.facts["poison"] > 3
    assert {"verdicts mismatch", "verdicts identical_masked", "verdicts error", "verdicts missing"} <= set(
        outcome.count.facts
    )
    assert spoilt[0].lost["answered questions"] + spoilt[0].lost["questions without an answer"] == 1
    assert spoilt[0].lost["rows of requests"] == 1
    assert spoilt[0].doubled["verdicts"] == 1
    assert spoilt[0].doubled["rows of comparisons"] == 1
    assert any("lost" in line for line in spoilt[0].wrong)


def test_each_fault_comes_as_often_as_asked_for() -> None:
    """In an order that the seed decides; a worker can be killed behind every table of a batch."""
    chosen = plan(list(FAULTS), 3, seed=7)

    assert Counter(chosen) == dict.fromkeys(FAULTS, 3)
    assert chosen == plan(list(FAULTS), 3, seed=7) != plan(list(FAULTS), 3, seed=8)
    assert set(CHOSEN) <= set(FAULTS)
    assert {"requests", "spend_hourly", "sink_progress"} <= set(INSERTS)


@pytest.mark.parametrize(
    ("now", "seconds", "expected"),
    [
        pytest.param("2026-12-01T10:00:00", 60.0, -36_060.0, id="the last midnight"),
        pytest.param("2026-12-01T23:59:30", 20.0, -86_390.0 + 0.0, id="just before one"),
        pytest.param("2026-12-01T23:59:30", 60.0, -30.0, id="not more than a day"),
        pytest.param("2026-12-01T00:00:00", 0.0, 0.0, id="now"),
    ],
)
def test_midnight_comes_when_it_is_wanted(now: str, seconds: float, expected: float) -> None:
    """The clock is set back, never ahead, and by less than a day."""
    at = datetime.fromisoformat(now).replace(tzinfo=UTC).timestamp()

    assert back_to_midnight(at, seconds) == pytest.approx(expected)
    assert (at + back_to_midnight(at, seconds) + seconds) % 86_400 == pytest.approx(0)


@pytest.mark.parametrize("name", list(script.VERDICTS))
def test_the_script_knows_what_a_pair_is(name: script.Kind) -> None:
    """The verdict that it expects is that of the comparison, on its own answers."""
    n = next(n for n in range(1, 100) if script.kind(n) == name)
    members = script.mirrored(n)
    if members is None:
        assert script.VERDICTS[name] == ("missing", "none")
        return
    line = {
        **{key: value for key, value in script.question(n).items() if key in ("method", "params")},
        "network": f"evm:{script.CHAIN}",
        "primary_raw": script.answer(n, {"result": script.served(n)}).decode(),
        "shadow_raw": script.answer(n, members).decode(),
        "head": {"latest": script.HEAD, "finalized": script.FINALIZED},
        "ignore_fields": [script.MASKED],
    }
    verdict = judge_case(read_case(json.dumps(line).encode()))

    assert (verdict.outcome, verdict.class_) == script.VERDICTS[name]
