"""The embedded runner on real logs: when it stores, how it meets a log or an engine in trouble, how it ends."""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gnomon.config.model import Settings
from gnomon.events.log import Consumer, Writer
from ingest.engine import Engine
from ingest.errors import EngineAway, Fenced, OwnerLocked
from ingest.metrics import Metrics
from ingest.runner import Runner, locked
from ingest.settings import RunnerSettings, context
from tests.ingest.events import mixture
from tests.ingest.memory_engine import Fate, MemoryEngine

SETTINGS = RunnerSettings(missing_seconds=float("inf"))
CONTEXT = context(Settings())


class Clock:
    """Monotonic seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class World:
    """A runner over a folder of logs and an engine in memory."""

    def __init__(self, root: Path, fate: Callable[[], Fate] = lambda: "stored", engine: Engine | None = None) -> None:
        self.root = root
        self.engine = MemoryEngine(fate)
        self.clock = Clock()
        self.metrics = Metrics()
        self.runner = Runner(
            root, engine or self.engine, CONTEXT, settings=SETTINGS, metrics=self.metrics, clock=self.clock
        )
        self.writers: dict[str, Writer] = {}
        self.n_written: dict[str, int] = {}

    def write(self, n: int, worker: str = "0") -> None:
        """Append records to a worker's log."""
        if worker not in self.writers:
            self.writers[worker] = Writer(self.root / worker, segment_bytes=64 << 10, max_bytes=1 << 20)
        start = self.n_written.get(worker, 0)
        for record in mixture(n, start=start):
            assert self.writers[worker].append(record) >= 0
        self.n_written[worker] = start + n

    def turn(self, seconds: float = 0.0, times: int = 1) -> None:
        """Move the clock and go round."""
        for _ in range(times):
            self.clock.now += seconds
            self.runner.round()

    @property
    def n_stored(self) -> int:
        """Events whose row at home is stored."""
        home = ("requests", "comparisons", "heads", "reorgs", "breaker_transitions", "dead_letters")
        tables = self.engine.tables
        return sum(len(tables[name]) for name in home) + sum(1 for row in tables["attempts"] if row[1])

    def close(self) -> None:
        for writer in self.writers.values():
            writer.close()
        for feed in self.runner._feeds.values():
            feed.forget()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


def test_the_first_event_after_a_pause_is_stored_quickly(world: World) -> None:
    """A quarter of a second, so that a person at the live view does not wait."""
    world.write(1)
    world.turn()
    world.turn(SETTINGS.quick_flush_seconds - 0.01)
    assert world.n_stored == 0

    world.turn(0.01)
    assert world.n_stored == 1


def test_a_steady_stream_is_stored_in_batches(world: World) -> None:
    """An insert costs the same for one row and for a thousand."""
    world.write(1)
    world.turn(0, 1)
    world.turn(SETTINGS.quick_flush_seconds)
    world.write(1)
    world.turn()
    world.turn(SETTINGS.flush_seconds - 0.01)
    assert world.n_stored == 1

    world.turn(0.01)
    assert world.n_stored == 2


def test_a_full_batch_does_not_wait(tmp_path: Path) -> None:
    """Behind, the batches grow to their limit and follow each other."""
    world = World(tmp_path)
    world.runner._settings = RunnerSettings(max_events=10, missing_seconds=float("inf"))
    world.write(35)
    world.turn(0, 3)

    assert world.n_stored == 30
    world.close()


def test_the_log_is_let_go_only_after_progress(world: World) -> None:
    """What the consumer's position says is gone may be recycled."""
    world.write(20)
    world.turn()
    world.turn(SETTINGS.quick_flush_seconds)
    world.write(5)
    world.turn()
    world.turn(SETTINGS.flush_seconds)
    position = Consumer(world.root / "0", "ingest")

    assert (world.n_stored, position.get()) == (25, 20)
    world.turn(SETTINGS.progress_seconds)
    assert position.get() == 25
    assert max(row[5] for row in world.engine.progress) == 25
    position.close()


def test_new_workers_are_found(world: World) -> None:
    """Each has a log and a key of its own; other folders are none."""
    world.write(3, "0")
    (world.root / "notes").mkdir()
    world.turn(SETTINGS.scan_seconds)
    world.write(4, "1")
    world.turn(SETTINGS.scan_seconds, 3)

    assert world.n_stored == 7
    assert len(world.engine.epochs) == 2


def test_an_engine_that_goes_away_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One line when it goes, one when it is back; then everything is there once."""
    fates: list[Fate] = ["stored", "stored", "stored_unknown", *["lost"] * 5]  # type: ignore[list-item]
    queue = iter(fates)
    world = World(tmp_path, lambda: next(queue, "stored"))
    world.write(64)
    with caplog.at_level(logging.INFO, "gnomon.ingest"):
        world.turn(1.0, 60)

    assert world.n_stored == 64
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if "ClickHouse is away" in line]) >= 1
    assert any("ClickHouse is back" in line for line in lines)
    is_well, state = world.runner.health()
    assert is_well
    assert json.loads(state)["engine"] == "up"
    world.close()


def test_health_says_what_is_wrong(tmp_path: Path) -> None:
    """Away: 503, with the reason."""

    class Away(MemoryEngine):
        def rows(self, sql: str, parameters: object = None) -> list[list[str]]:
            raise EngineAway("no connection")

    world = World(tmp_path, engine=Away())
    world.write(1)
    world.turn(1.0, 2)
    is_well, state = world.runner.health()

    assert not is_well
    assert json.loads(state)["engine"] == "no connection"
    world.close()


def test_records_that_are_gone_are_counted_and_said(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Tables younger than the log: it goes on at the oldest record there, loudly."""
    world.write(40)
    consumer = Consumer(world.root / "0", "ingest")
    for _ in range(60):
        world.write(40)
        consumer.set(world.n_written["0"])
    consumer.close()
    with caplog.at_level(logging.INFO, "gnomon.ingest"):
        world.turn(1.0, 5)

    lost = int(world.metrics.get("gnomon_ingest_lost_events_total", ("0",)))
    assert lost > 0
    assert world.n_stored == world.n_written["0"] - lost
    assert any("events lost" in record.getMessage() for record in caplog.records)


def test_a_log_that_lost_its_end_stands_still_and_says_so(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The tables know more than the log: a named error, never silence; other logs go on."""
    world.write(5, "0")
    world.write(5, "1")
    first = Writer(world.root / "9")
    world.engine.progress.append((first.log_id.hex(), "log", 9, 0, 77, 77, 1, 0, 0, 0))
    first.close()
    with caplog.at_level(logging.ERROR, "gnomon.ingest"):
        world.turn(SETTINGS.failed_retry_seconds, 6)

    assert world.n_stored == 10
    is_well, state = world.runner.health()
    assert not is_well
    assert "above the end" in json.loads(state)["logs"]["9"]
    assert world.metrics.get("gnomon_ingest_log_failed", ("9",)) == 1
    assert len([r for r in caplog.records if "cannot be read" in r.getMessage()]) == 1


def test_what_lies_before_a_damage_is_stored(world: World) -> None:
    """Every record that is whole is in the tables once, however often the runner comes back to the damage."""
    world.write(400)
    second = sorted((world.root / "0").glob("seg-*"))[1]
    damaged = int(second.name.removeprefix("seg-"))
    with second.open("r+b") as file:
        file.seek(file.read().index(b'{"') + 20)
        file.write(b"\xff\xff\xff")
    world.turn(SETTINGS.failed_retry_seconds, 6)

    assert world.n_stored == damaged
    assert max(row[5] for row in world.engine.progress) == damaged
    assert f"damaged: record {damaged}" in json.loads(world.runner.health()[1])["logs"]["0"]


def test_a_fenced_owner_stops(world: World) -> None:
    """Somebody else has the key."""
    world.write(5)
    world.turn()
    key = next(iter(world.engine.epochs))
    world.engine.epochs[key] += 1 << 20

    with pytest.raises(Fenced):
        world.turn(1.0, 2)


def test_told_to_stop_it_stores_what_it_read(world: World) -> None:
    """And writes down how far, so that the next start has nothing to do again."""
    world.write(12)
    thread = threading.Thread(target=world.runner.run)
    thread.start()
    for _ in range(200):
        if world.runner._feeds and world.runner._feeds["0"]._records:
            break
        threading.Event().wait(0.02)
    world.runner.stop()
    thread.join(10)

    assert not thread.is_alive()
    assert world.n_stored == 12
    assert max(row[5] for row in world.engine.progress) == 12


def test_one_process_reads_the_logs(world: World) -> None:
    """A second one is told who has them."""
    with locked(world.root), pytest.raises(OwnerLocked, match="reads the logs"):
        World(world.root).runner.run()
