"""
The exactly-once rule on the real engine: owners are killed and paused, the engine is killed, all in a loop.

What the tables hold at the end is compared with the steps run in one go, which share no code with the sink.
"""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gnomon.config.model import Settings
from gnomon.events.log import Writer
from ingest.batch import decode
from ingest.engine import Engine
from ingest.errors import EngineAway
from ingest.rows import rows_of
from ingest.settings import context
from ingest.tables import TABLES
from tests.ingest.engine_process import EngineProcess
from tests.ingest.events import mixture
from tests.ingest.owner import FENCED

pytestmark = [pytest.mark.clickhouse, pytest.mark.timeout(900)]

DAYS_NS = 5 * 86_400 * 10**9
"""The records lie over five days, however many they are."""
EVENT_TABLES = [name for name in TABLES if not name.endswith("ly") and name != "bodies"]


@pytest.fixture
def clickhouse(tmp_path: Path) -> Iterator[EngineProcess]:
    process = EngineProcess(tmp_path)
    process.start()
    try:
        process.migrate()
        yield process
    finally:
        process.stop()


def write_log(folder: Path, n: int) -> str:
    path = str(folder / "events" / "0")
    writer = Writer(path)
    for record in mixture(n, step_ns=DAYS_NS // n):
        writer.append(record)
    writer.close()
    return path


class Owners:
    """Children that store the log, one after the other."""

    def __init__(self, clickhouse: EngineProcess, log: str, n: int) -> None:
        self._arguments = [clickhouse.url, *clickhouse.credentials(), log]
        self._n = n
        self._seed = 0

    def start(self) -> "subprocess.Popen[bytes]":
        self._seed += 1
        return subprocess.Popen(
            [sys.executable, "-m", "tests.ingest.owner", *self._arguments, str(self._seed), str(self._n)]
        )


def run(clickhouse: EngineProcess, owners: Owners, n_kills: int, chance: random.Random) -> Counter[str]:
    """Do harm until the log is stored; return what was done how often."""
    done: Counter[str] = Counter()
    owner = owners.start()
    paused: list[subprocess.Popen[bytes]] = []
    deadline = time.monotonic() + 800
    while time.monotonic() < deadline:
        time.sleep(chance.uniform(0.5, 1.6))
        if owner.poll() is not None and owner.returncode == 0:
            break
        if owner.poll() is not None:
            done[f"exit {owner.returncode}"] += 1
            owner = owners.start()
            continue
        if sum(done.values()) >= n_kills:
            continue
        match chance.choice(["kill", "kill", "pause", "engine"]):
            case "kill":
                owner.kill()
                owner.wait()
                done["owner killed"] += 1
                owner = owners.start()
            case "pause":
                owner.send_signal(signal.SIGSTOP)
                paused.append(owner)
                owner = owners.start()
                time.sleep(chance.uniform(1.0, 2.0))
                paused[-1].send_signal(signal.SIGCONT)
                done["owner paused"] += 1
            case _:
                clickhouse.kill()
                clickhouse.start()
                done["engine killed"] += 1
    else:
        raise AssertionError(f"the log was not stored in time: {done}")
    for old in paused:
        assert old.wait(60) in (0, FENCED)
        done[f"paused owner ended with {old.returncode}"] += 1
    return done


def expected(n: int) -> dict[str, Counter[tuple[str, str]]]:
    """Return per table how many rows each event has on each day, from the steps alone."""
    step = rows_of(decode(0, mixture(n, step_ns=DAYS_NS // n)), context(Settings()), 0)
    return {
        name: Counter((str(TABLES[name].partition(row[0])), str(row[-1])) for row in step.rows.tables[name])
        for name in EVENT_TABLES
    }


def stored(engine: Engine) -> dict[str, Counter[tuple[str, str]]]:
    return {
        name: Counter(
            {
                (partition, off): int(n)
                for partition, off, n in engine.rows(
                    f"SELECT {TABLES[name].partition_sql} AS p, off, count() FROM gnomon_core.{name} GROUP BY p, off"
                )
            }
        )
        for name in EVENT_TABLES
    }


@pytest.mark.parametrize(
    ("n_events", "n_kills", "seed"), [(12_000, 16, 1), pytest.param(150_000, 200, 2, marks=pytest.mark.deep)]
)
def test_whatever_dies_or_pauses_every_row_is_there_once(
    clickhouse: EngineProcess, tmp_path: Path, n_events: int, n_kills: int, seed: int
) -> None:
    """Rows by day and offset, rollups and money equal those of the steps in one go."""
    owners = Owners(clickhouse, write_log(tmp_path, n_events), n_events)
    done = run(clickhouse, owners, n_kills, random.Random(seed))
    engine = clickhouse.connect()

    assert expected(n_events) == stored(engine), done
    assert engine.rows("SELECT sum(n), max(next) FROM gnomon_core.sink_progress") == [[str(n_events)] * 2]
    for rollup, source, where in (
        ("spend_hourly", "attempts", "1"),
        ("divergence_minutely", "comparisons", "1"),
        ("health_minutely", "attempts", "kind NOT IN ('head_poll')"),
    ):
        ((n,),) = engine.rows(f"SELECT sum(n) FROM gnomon_core.{rollup}")
        assert [[n]] == engine.rows(f"SELECT count() FROM gnomon_core.{source} WHERE {where}"), done
    assert engine.rows("SELECT sum(usd), sum(units) FROM gnomon_core.spend_hourly") == engine.rows(
        "SELECT sum(usd), sum(units) FROM gnomon_core.attempts"
    )
    ((differing, bodies),) = engine.rows(
        "SELECT (SELECT uniqExactArray([primary_hash, shadow_hash]) FROM gnomon.comparisons "
        "WHERE outcome = 'mismatch'), (SELECT uniqExact(hash) FROM gnomon.bodies)"
    )
    assert differing == bodies
    print(dict(done))


def test_an_engine_that_is_not_there_is_away_and_not_unknown(clickhouse: EngineProcess) -> None:
    """A refused connection means that nothing was sent."""
    engine = clickhouse.connect()
    engine.rows("SELECT 1")
    clickhouse.kill()
    engine.close()

    with pytest.raises(EngineAway, match="no connection"):
        engine.rows("SELECT 1")
    clickhouse.start()
    assert engine.rows("SELECT 1") == [["1"]]
