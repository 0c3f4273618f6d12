"""History priced again on the real engine: as if stored with the books of now, whatever happens meanwhile."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest

from ingest.batch import decode
from ingest.engine import Engine
from ingest.errors import Fenced
from ingest.repricing import changing
from ingest.repricing import run as run_module
from ingest.repricing.calls import Differences, Keys, paid_calls
from ingest.repricing.run import FENCE, Outcome, Progress, Repricing, RepricingError
from ingest.rows import rows_of
from ingest.sink import Sink, claim
from tests.ingest.engine_process import EngineProcess, migrated_engine
from tests.ingest.repricing.world import (
    BATCH,
    BEGIN,
    DAYS,
    END,
    KEYS,
    NEW,
    OLD,
    charger,
    charges_of,
    context,
    events,
    fill,
    store,
    stored_charges,
    stored_sums,
    sums_of,
)

pytestmark = [pytest.mark.clickhouse, pytest.mark.timeout(240)]

RECORDS = {key: events(700, seed) for seed, key in enumerate(KEYS)}
ALL = [record for key in KEYS for record in RECORDS[key]]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    with migrated_engine(tmp_path_factory.mktemp("engine")) as process:
        yield process


@pytest.fixture(autouse=True)
def _a_change_for_each_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them to die between."""
    monkeypatch.setattr(run_module, "DAYS_PER_CHANGE", 1)


@pytest.fixture
def engine(process: EngineProcess) -> Engine:
    """A store whose calls are charged by the old books."""
    engine = process.connect()
    for table in ("attempts", "spend_hourly", "sink_progress", "repricings", "requests", "health_minutely"):
        engine.command(f"TRUNCATE TABLE gnomon_core.{table}")
    for key in KEYS:
        fill(engine, key, RECORDS[key], OLD)
    return engine


def run(engine: Engine, books: tuple[str, ...] = NEW, **more: object) -> Outcome:
    return Repricing(engine, charger(books), BEGIN, END, **more).run()  # type: ignore[arg-type]


def differs(engine: Engine, books: tuple[str, ...] = NEW) -> bool:
    return any(d.is_one for d in Repricing(engine, charger(books), BEGIN, END).look().differences)


def assert_charged_by(engine: Engine, books: tuple[str, ...], records: list[bytes] = ALL) -> None:
    """Each call, and each sum of the rollup, to the last decimal."""
    assert stored_charges(engine) == charges_of(records, books)
    assert stored_sums(engine) == sums_of(records, books)
    assert not differs(engine, books)


def test_a_look_writes_nothing(engine: Engine) -> None:
    """The difference is that of the two bills; the books that charged it leave none."""
    outcome = Repricing(engine, charger(NEW), None, END).look()
    before, after = charges_of(ALL, OLD), charges_of(ALL, NEW)
    paid = [key for key in before if key[2] not in ("p1", "p2")]

    assert outcome.n_days == DAYS
    assert outcome.run == 0
    assert sum(d.n for d in outcome.differences) == len(paid)
    assert sum(d.n_changed for d in outcome.differences) == sum(before[key] != after[key] for key in paid)
    for side, bill in (("before", before), ("after", after)):
        wanted = sum(Decimal(bill[key][1]) for key in paid if bill[key][1] != "\\N")
        assert Decimal(sum(getattr(d, f"usd_{side}") for d in outcome.differences)).scaleb(-12) == wanted
        n = sum(bill[key][1] == "\\N" for key in paid)
        assert sum(getattr(d, f"n_unpriced_{side}") for d in outcome.differences) == n
    assert_charged_by(engine, OLD)


def test_calls_and_rollups_are_those_of_the_new_books(engine: Engine) -> None:
    """Units, money, estimates, waste, what is unpriced; over distances, dates, batches, pushes by the byte."""
    told: list[Progress] = []
    outcome = run(engine, report=told.append)

    assert_charged_by(engine, NEW)
    assert (outcome.n_late, outcome.n_left, outcome.n_days) == (0, 0, DAYS)
    assert {(p.n_days_done, p.n_days) for p in told} >= {(n, DAYS) for n in range(DAYS)}
    assert any(d.vendor == "acme" and d.n_unpriced_after == d.n for d in outcome.differences)


def test_all_days_in_one_change(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is done by default: one change for the days of more than a year, killed before its sums are aligned too."""
    monkeypatch.undo()
    assert run_module.DAYS_PER_CHANGE > 365
    steps: list[str] = []

    def die(step: str) -> None:
        steps.append(step)
        if step == "align":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(engine, at_step=die)
    assert steps.count("change") == 1
    assert not differs(engine)

    outcome = run(engine, at_step=steps.append)

    assert steps.count("change") == 1
    assert outcome.n_days == DAYS
    assert_charged_by(engine, NEW)


def test_what_was_charged_before_is_kept(engine: Engine) -> None:
    """Each call has the price it was stored with, and each run its number, time and books; also after two runs."""
    first, second = run(engine), run(engine, OLD)
    rows = engine.rows(
        "SELECT countIf(usd_charged IS DISTINCT FROM usd OR units_charged IS DISTINCT FROM units), "
        "countIf(repricing > 0), max(repricing) FROM gnomon.attempts"
    )
    n_both = engine.rows("SELECT countIf(length(former_prices) = 2) FROM gnomon_core.attempts WHERE repricing > 0")
    runs = engine.rows("SELECT run, n_changed, usd_after, isNotNull(done_at), books['alchemy'], books['acme'] "
                       "FROM gnomon.repricings ORDER BY run")  # fmt: skip

    assert_charged_by(engine, OLD)
    n_changed = sum(d.n_changed for d in first.differences)
    assert rows == [["0", str(n_changed), str(second.run)]]
    assert n_both == [[str(n_changed)]]
    assert [row[0] for row in runs] == [str(first.run), str(second.run)]
    assert [int(row[1]) for row in runs] == [n_changed, n_changed]
    usd_after = sum(d.usd_after for d in second.differences)
    assert Decimal(runs[1][2]).scaleb(12) == usd_after
    assert [row[3] for row in runs] == ["1", "1"]
    assert "0.77 USD a million units" in runs[0][4]
    assert "alchemy.yaml" in runs[1][4]
    assert "0.1234567 USD a million units" in runs[1][5]


def test_a_part_of_history(engine: Engine) -> None:
    """Calls of the range and no other, within the day too; the rollup agrees with both."""
    begin, end = BEGIN + timedelta(hours=30, minutes=10), BEGIN + timedelta(hours=50)
    Repricing(engine, charger(NEW), begin, end).run()
    bill, old, new = stored_charges(engine), charges_of(ALL, OLD), charges_of(ALL, NEW)
    within = {
        (row[0], int(row[1]), row[2])
        for row in engine.rows(
            f"SELECT event_id, idx, upstream FROM gnomon_core.attempts WHERE {paid_calls(begin, end)}"
        )
    }
    hourly = engine.rows("SELECT sum(usd), sum(n_wasted), sum(n_unpriced), sum(n) FROM gnomon.spend_hourly")
    calls = engine.rows("SELECT sum(usd), countIf(is_wasted), countIf(isNull(usd)), count() FROM gnomon_core.attempts")

    assert bill == {key: (new if key in within else old)[key] for key in old}
    assert hourly == calls
    assert any(new[key] != old[key] for key in within)


@pytest.mark.parametrize("step", [2, 4, 5, 7, 9])
def test_a_run_that_is_killed_is_run_again(process: EngineProcess, engine: Engine, step: int) -> None:
    """Wherever it died: no call changed twice, no sum moved twice, and nothing is left out."""
    arguments = [process.url, *process.credentials(), str(step)]
    died = subprocess.run([sys.executable, "-m", "tests.ingest.repricing.dying", *arguments], timeout=120)
    assert died.returncode == -9
    run(engine)

    assert_charged_by(engine, NEW)
    assert engine.rows("SELECT count() FROM gnomon.repricings WHERE done_at IS NULL") == [["0"]]
    assert engine.rows("SELECT max(length(former_prices)) FROM gnomon_core.attempts") == [["1"]]


def test_a_run_of_other_days_finishes_what_a_killed_one_left(process: EngineProcess, engine: Engine) -> None:
    """The rollup of the days that were changed and not aligned, whatever is asked for now."""
    steps: list[str] = []

    def die(step: str) -> None:
        steps.append(step)
        if step == "align":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(engine, at_step=die)
    changed = engine.rows("SELECT sum(usd) FROM gnomon_core.attempts")
    assert engine.rows("SELECT sum(usd) FROM gnomon.spend_hourly") != changed

    Repricing(engine, charger(NEW), END - timedelta(minutes=1), END).run()
    assert engine.rows("SELECT sum(usd) FROM gnomon.spend_hourly") == engine.rows(
        "SELECT sum(usd) FROM gnomon_core.attempts"
    )


def test_an_engine_that_dies_meanwhile_is_waited_for(process: EngineProcess, engine: Engine) -> None:
    """It finishes what was asked of it; the run goes on where it was."""
    deaths = iter([3, 5, 8])
    n, due = 0, next(deaths)

    def kill(_: str) -> None:
        nonlocal n, due
        n += 1
        if n == due:
            due = next(deaths, -1)
            process.kill()
            process.start()

    outcome = run(engine, at_step=kill)

    assert n > 8
    assert outcome.n_left == 0
    assert_charged_by(engine, NEW)


def test_calls_that_come_meanwhile_are_neither_lost_nor_charged_twice(engine: Engine) -> None:
    """The sink goes on, by the new books: between reading, changing and aligning, and with half a batch stored."""
    more = {key: [*RECORDS[key], *events(600, seed + 50)] for seed, key in enumerate(KEYS)}
    sinks = [Sink(engine, *key) for key in KEYS]
    for sink in sinks:
        sink.take_over()
    torn: list[str] = []

    def go_on(step: str) -> None:
        for sink in sinks:
            records = more[(sink.log_id, sink.topic, sink.part)]
            if sink.next >= len(records):
                continue
            if step == "align" and not torn:
                # Killed between the tables: the calls are there, the rollup lacks them until the next life.
                torn.append(step)
                sink._after_insert = _die
                with pytest.raises(KeyboardInterrupt):
                    store(sink, records, NEW, min(sink.next + BATCH // 10, len(records)))
                continue
            if sink._after_insert is _die:
                sink._after_insert = lambda table: None
                sink.take_over()
            store(sink, records, NEW, min(sink.next + BATCH // 10, len(records)))

    run(engine, at_step=go_on)
    for sink in sinks:
        sink._after_insert = lambda table: None
        sink.take_over()
        store(sink, more[(sink.log_id, sink.topic, sink.part)], NEW)

    assert torn
    assert_charged_by(engine, NEW, [record for key in KEYS for record in more[key]])


def _die(table: str) -> None:
    if table == "attempts":
        raise KeyboardInterrupt


def test_processors_with_older_books_are_told_of(engine: Engine) -> None:
    """What they stored meanwhile is priced again too, and the run says how many calls that were."""
    more = [*RECORDS[KEYS[0]], *events(600, 77)]
    sink = Sink(engine, *KEYS[0])
    sink.take_over()
    outcome = run(engine, at_step=lambda step: store(sink, more, OLD) if step == "align" else None)

    assert outcome.n_late > 0
    assert_charged_by(engine, NEW, [*more, *RECORDS[KEYS[1]]])


def test_a_batch_torn_by_a_change_of_books_is_put_right(engine: Engine) -> None:
    """Its calls were stored by the old books, then the sink died, and the next life's rollup has the new ones."""
    more = [*RECORDS[KEYS[0]], *events(300, 99)]
    first = len(RECORDS[KEYS[0]])
    sink = Sink(engine, *KEYS[0], after_insert=_die)
    sink.take_over()
    with pytest.raises(KeyboardInterrupt):
        sink.store(rows_of(decode(first, more[first:]), context(OLD), 0).rows)
    fill(engine, KEYS[0], more, NEW)
    hourly = engine.rows("SELECT sum(usd) FROM gnomon.spend_hourly")
    assert hourly != engine.rows("SELECT sum(usd) FROM gnomon_core.attempts")
    run(engine)

    assert_charged_by(engine, NEW, [*more, *RECORDS[KEYS[1]]])


def test_of_two_runs_the_later_one_counts(process: EngineProcess, engine: Engine) -> None:
    """The earlier stops as soon as it notices, and what it still sends changes nothing."""
    begun: list[Outcome] = []

    def begin_another(step: str) -> None:
        if step == "wait" and not begun:
            begun.append(run(process.connect(), OLD))

    with pytest.raises(Fenced):
        run(engine, at_step=begin_another)

    assert_charged_by(engine, OLD)


def test_a_change_that_arrives_late_changes_nothing(engine: Engine) -> None:
    """Sent by a killed run, run by the engine after the next one has begun."""
    mark = claim(engine, FENCE)
    where = paid_calls(BEGIN, END)
    read = Repricing(engine, charger(NEW), BEGIN, END)._read([BEGIN.date()], 0, 1, Differences())
    engine.command(changing.PRICES_DDL)
    engine.insert(changing.PRICES_TABLE, changing.PRICES_COLUMNS, changing.columns(read.prices), mark)
    claim(engine, FENCE)
    late = changing.statement(read.keys, where, 1, mark).replace("mutations_sync = 0", "mutations_sync = 2")
    engine.command(late)
    assert stored_charges(engine) == charges_of(ALL, OLD)
    engine.command(late.replace(f"= {mark.epoch}", f"> {mark.epoch}"))
    assert stored_charges(engine) != charges_of(ALL, OLD), "nothing but the epoch held it"


def test_sums_of_calls_that_are_not_kept_stay(engine: Engine) -> None:
    """A group that has lost a call keeps its sums, and the run says so."""
    group = "log_id = '{}' AND upstream = '{}' AND kind = '{}' AND cause = '{}' AND method = '{}'"
    ((hour, *members, n, usd),) = engine.rows(
        "SELECT toUnixTimestamp(hour) AS h, log_id, upstream, kind, cause, method, sum(n) AS calls, sum(usd) AS paid "
        "FROM gnomon_core.spend_hourly WHERE vendor = 'alchemy' GROUP BY ALL HAVING calls > 1 AND paid > 0 "
        "ORDER BY calls DESC, paid DESC LIMIT 1"
    )
    of_it = f"{group.format(*members)} AND toUnixTimestamp(toStartOfHour({{}})) = {hour}"
    ((event,),) = engine.rows(f"SELECT any(event_id) FROM gnomon_core.attempts WHERE {of_it.format('at')}")
    engine.command(f"ALTER TABLE gnomon_core.attempts DELETE WHERE event_id = '{event}' SETTINGS mutations_sync = 2")
    outcome = run(engine)
    after = engine.rows(f"SELECT sum(n), sum(usd) FROM gnomon_core.spend_hourly WHERE {of_it.format('hour')}")

    assert outcome.n_left >= 1
    assert after == [[n, usd]]


def test_not_while_all_tables_are_built_anew(engine: Engine) -> None:
    """`gnomon rebuild` exchanges the tables under it."""
    engine.command("CREATE DATABASE gnomon_rebuild")
    try:
        with pytest.raises(RepricingError, match="gnomon rebuild"):
            run(engine)
    finally:
        engine.command("DROP DATABASE gnomon_rebuild")
    assert_charged_by(engine, OLD)


def test_hashes_that_collide_are_made_anew(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kinds of calls under one hash would get one price."""
    real = Keys.of

    def colliding(charger: object, salt: int = 0) -> Keys:
        keys = real(charger, salt)  # type: ignore[arg-type]
        return keys if salt & 255 > 1 else Keys("toUInt64(7)", keys.n_bytes, keys.behind_slot, keys.date_slot)

    monkeypatch.setattr(Keys, "of", colliding)
    run(engine)
    monkeypatch.undo()

    assert_charged_by(engine, NEW)
