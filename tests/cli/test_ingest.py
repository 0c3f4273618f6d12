"""`gnomon migrate` and `gnomon ingest` as a user runs them, beside the embedded ClickHouse."""

import http.client
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gnomon.cli import main
from gnomon.events.log import Consumer, Writer
from gnomon.process import PARENT_VARIABLE
from tests.ingest.engine_process import GNOMON, EngineProcess
from tests.ingest.events import mixture

pytestmark = [pytest.mark.clickhouse, pytest.mark.timeout(180)]


@pytest.fixture
def clickhouse(tmp_path: Path) -> Iterator[EngineProcess]:
    process = EngineProcess(tmp_path)
    process.start()
    yield process
    process.stop()


class Ingest:
    """`gnomon ingest` over a data folder."""

    def __init__(self, clickhouse: EngineProcess) -> None:
        self._file = (clickhouse.folder / "ingest.log").open("a+")
        self.process = subprocess.Popen(
            [*GNOMON, "ingest", "--config", str(clickhouse.config), "--data", str(clickhouse.folder)],
            stderr=self._file,
            env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
        )

    def lines(self) -> str:
        self._file.flush()
        self._file.seek(0)
        return self._file.read()

    def until(self, pattern: str, seconds: float = 30.0) -> "re.Match[str]":
        """Wait for a line."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            match = re.search(pattern, self.lines())
            if match:
                return match
            time.sleep(0.05)
        raise AssertionError(f"no {pattern!r} in: {self.lines()}")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(30)
        self._file.close()
        return code


def until(clickhouse: EngineProcess, sql: str, expected: str, seconds: float = 30.0) -> str:
    """Ask until the first value is as expected; return the last one seen."""
    deadline = time.monotonic() + seconds
    seen = ""
    engine = clickhouse.connect()
    while time.monotonic() < deadline:
        seen = engine.rows(sql)[0][0]
        if seen == expected:
            break
        time.sleep(0.1)
    return seen


N = 640
HOME = "SELECT sum(stored) + sum(dead_lettered) FROM gnomon.reconciliation"


def test_events_reach_the_tables_and_sigterm_ends_in_peace(clickhouse: EngineProcess) -> None:
    """It waits for the schema, stores what is there and what comes, finishes its batch and exits 0."""
    ingest = Ingest(clickhouse)
    ingest.until("waiting for the schema: .*gnomon migrate")
    clickhouse.migrate()
    port = int(ingest.until(r"health=http://127.0.0.1:(\d+)/healthz")[1])
    writer = Writer(clickhouse.folder / "events" / "0")
    for record in mixture(N):
        writer.append(record)
    assert until(clickhouse, HOME, str(N)) == str(N)

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", "/metrics")
    metrics = connection.getresponse().read().decode()
    connection.close()
    assert f"gnomon_ingest_events_total {N}\n" in metrics

    for record in mixture(10, start=N):
        writer.append(record)
    assert ingest.end() == 0
    writer.close()
    consumer = Consumer(clickhouse.folder / "events" / "0", "ingest")
    stored = int(clickhouse.connect().rows("SELECT max(next) FROM gnomon_core.sink_progress")[0][0])
    assert consumer.get() == stored >= N
    consumer.close()

    again = Ingest(clickhouse)
    assert until(clickhouse, HOME, str(N + 10)) == str(N + 10)
    assert again.end(signal.SIGINT) == 0


def test_a_clickhouse_that_dies_is_waited_for(clickhouse: EngineProcess) -> None:
    """Events go on into the log meanwhile; afterwards each is stored once."""
    clickhouse.migrate()
    ingest = Ingest(clickhouse)
    writer = Writer(clickhouse.folder / "events" / "0")
    for record in mixture(N):
        writer.append(record)
    assert until(clickhouse, HOME, str(N)) == str(N)

    clickhouse.kill()
    for record in mixture(N, start=N):
        writer.append(record)
    ingest.until("ClickHouse is away")
    clickhouse.start()
    ingest.until("ClickHouse is back")

    assert until(clickhouse, HOME, str(2 * N)) == str(2 * N)
    assert until(clickhouse, "SELECT sum(stored) - sum(distinct_stored) FROM gnomon.reconciliation", "0") == "0"
    assert ingest.end() == 0
    writer.close()


def test_migrate_says_what_it_would_do_and_does_it(
    clickhouse: EngineProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dry run changes nothing; the run does; a second run has nothing to do."""
    where = ["--config", str(clickhouse.config), "--data", str(clickhouse.folder)]
    assert main(["migrate", "--dry-run", *where]) == 0
    foretold = capsys.readouterr().out
    assert "CREATE TABLE IF NOT EXISTS gnomon_core.requests" in foretold
    assert clickhouse.connect().rows("SELECT count() FROM system.tables WHERE database LIKE 'gnomon%'") == [["0"]]

    assert main(["migrate", *where]) == 0
    assert re.search(r"schema version (\d+), \1 migrations run", capsys.readouterr().out)
    assert main(["migrate", *where]) == 0
    assert ", 0 migrations run" in capsys.readouterr().out


def test_migrate_without_the_writers_credentials_says_what_to_give(
    clickhouse: EngineProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another data folder than that of the ClickHouse at work."""
    status = main(["migrate", "--config", str(clickhouse.config), "--data", str(tmp_path / "elsewhere")])

    assert status == 2
    assert "give the --data of the ClickHouse" in capsys.readouterr().err
