"""`gnomon dead-letters` as a user runs it."""

import json

import pytest

from gnomon.cli import main
from gnomon.config.model import Settings
from ingest.batch import decode, without
from ingest.rows import rows_of
from ingest.settings import context
from ingest.sink import Sink
from tests.ingest.conftest import clickhouse, engine_process
from tests.ingest.engine_process import EngineProcess
from tests.ingest.events import AT, primary, records

__all__ = ["clickhouse", "engine_process"]

pytestmark = pytest.mark.clickhouse


@pytest.fixture
def where(clickhouse: EngineProcess) -> list[str]:
    """Where a ClickHouse is that has two dead letters: one can be stored by now, one is no event."""
    sink = Sink(clickhouse.connect(), "0" * 32, "t.gnomon.responses.v1", 4)
    sink.take_over()
    batch = without(decode(0, [*records([primary(1), primary(2)]), b"\xff no event"]), 1, "a bug")
    sink.store(rows_of(batch, context(Settings()), AT // 10**6).rows)
    sink.progress()
    return ["--config", str(clickhouse.config), "--format", "json"]


def test_they_are_listed_and_tried_again(
    clickhouse: EngineProcess, where: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 1 while one stays; the summary is a message, the rows are the result."""
    span = ["--from", "2026-01-01T00:00:00Z", "--to", "2027-01-01T00:00:00Z"]

    def listed(*more: str) -> list[tuple[object, ...]]:
        assert main(["dead-letters", "list", *where, *span, *more]) == 0
        rows = json.loads(capsys.readouterr().out)
        return sorted((r["topic"], r["partition"], r["offset"], r["reason"], r["n_bytes"]) for r in rows)

    two = listed()
    assert [(row[2], row[3]) for row in two] == [(1, "step_failed"), (2, "no_event")]
    assert two[1] == ("t.gnomon.responses.v1", 4, 2, "no_event", 10)
    assert listed("--reason", "no_event") == two[1:]
    again = ["dead-letters", "retry", *where, "--data", str(clickhouse.folder)]
    assert main([*again, "--all", "--dry-run"]) == 1
    captured = capsys.readouterr()
    assert [(r["offset"], r["outcome"]) for r in json.loads(captured.out)] == [(1, "stored"), (2, "poison")]
    assert captured.err == "gnomon dead-letters: 1 would be stored, 1 stay, 0 wait\n"
    assert listed() == two
    assert main([*again, "--topic", "t.gnomon.responses.v1", "--partition", "4", "--offset", "1"]) == 0
    assert "1 stored, 0 stay" in capsys.readouterr().err
    assert listed() == two[1:]
    assert main(["reconcile", *where, *span]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [sum(row[stage] for row in rows) for stage in ("shipped", "stored", "dead_lettered")] == [3, 2, 1]


def test_a_retry_of_nothing_in_particular_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """All of them only by name."""
    assert main(["dead-letters", "retry"]) == 2
    assert "--all" in capsys.readouterr().err
