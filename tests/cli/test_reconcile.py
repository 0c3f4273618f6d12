"""`gnomon reconcile` as a user runs it: the counts, what is wrong in words, and the exit status."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from gnomon.cli import main
from gnomon.cli.reconcile import faults, on_their_way
from gnomon.config.model import Settings
from gnomon.events import codec
from ingest.batch import decode
from ingest.rows import rows_of
from ingest.settings import context
from ingest.sink import Sink
from tests.ingest.engine_process import EngineProcess, migrated_engine
from tests.ingest.events import AT, primary

HOUR = {"hour": "h", "accepted": 10, "shipped": 10, "stored": 9, "distinct_stored": 9, "dead_lettered": 1}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"stored": 8, "distinct_stored": 8}, ["lost: 1 of 10 events of hour h"]),
        ({"stored": 11, "distinct_stored": 11}, ["doubled: 2 more rows than events of hour h"]),
        ({"stored": 10}, ["doubled: 1 of 10 events of hour h"]),
        ({"distinct_stored": 8}, ["lost: 1 of 10 events of hour h", "doubled: 1 of 9 events of hour h"]),
        ({"accepted": 12}, []),
    ],
)
def test_what_is_a_fault(change: dict[str, object], expected: list[str]) -> None:
    """Fewer rows than records, or more; what is on its way is none."""
    assert faults({**HOUR, **change}) == expected


@pytest.mark.parametrize(("minute", "n"), [(59, 0), (4, 0), (6, 1)])
def test_rows_that_are_not_written_down_yet_are_no_fault(minute: int, n: int) -> None:
    """While events come in the running hour has rows before their count; a row that is there twice is a fault."""
    now = datetime(2026, 12, 1, 8 if minute == 59 else 9, minute, tzinfo=UTC)
    hour = {**HOUR, "hour": "2026-12-01 08:00:00.000", "stored": 11, "distinct_stored": 11}

    assert len(faults(hour, now)) == n
    assert len(faults({**hour, "distinct_stored": 9}, now)) == 1


def test_what_is_on_its_way_is_named() -> None:
    """Accepted and not yet read."""
    assert on_their_way({**HOUR, "accepted": 12}) == ["on their way: 2 events, last seen in hour h"]
    assert on_their_way(HOUR) == []


@pytest.fixture
def clickhouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    with migrated_engine(tmp_path_factory.mktemp("engine")) as process:
        yield process


@pytest.mark.clickhouse
def test_reconcile_says_what_is_wrong(clickhouse: EngineProcess, capsys: pytest.CaptureFixture[str]) -> None:
    """All is well first; then a number is missing; then a row is there twice."""
    engine = clickhouse.connect()
    sink = Sink(engine, "0" * 32, "log", 0)
    sink.take_over()
    sent = [codec.encode(primary(n, event_id=f"00000000000000aa:{n}")) for n in (0, 1, 2, 6)]
    where = ["--config", str(clickhouse.config), "--from", "2026-09-21T00:00:00Z", "--to", "2026-09-22T00:00:00Z"]

    def store(first: int, records: list[bytes]) -> None:
        sink.store(rows_of(decode(first, records), context(Settings()), AT // 10**6).rows)
        sink.progress()

    store(0, sent[:3])
    assert main(["reconcile", *where, "--format", "json"]) == 0
    answer = capsys.readouterr()
    assert json.loads(answer.out) == [
        {"hour": "2026-09-21 14:00:00.000", "accepted": 3, "shipped": 3, "stored": 3, "distinct_stored": 3,
         "dead_lettered": 0}
    ]  # fmt: skip
    assert answer.err == ""

    store(3, sent[3:])
    assert main(["reconcile", *where]) == 1
    answer = capsys.readouterr()
    assert "accepted" in answer.out
    assert "never came: 3 events of process 00000000000000aa, numbers 3 to 5" in answer.err

    engine.command("INSERT INTO gnomon_core.requests SELECT * FROM gnomon_core.requests WHERE off = 1")
    assert main(["reconcile", *where]) == 1
    assert "doubled: 1 of 5 events" in capsys.readouterr().err
