"""The exactly-once rule, against an engine in memory that loses, stores in part, and leaves outcomes unknown."""

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.config.model import Settings
from ingest.batch import decode
from ingest.blocks import Block, Rows
from ingest.errors import BlockTooLarge, EngineAway, Fenced
from ingest.rows import rows_of
from ingest.settings import context
from ingest.sink import MAX_PARTITIONS_PER_INSERT, Sink
from ingest.tables import TABLES, Row
from tests.ingest.events import mixture
from tests.ingest.memory_engine import Fate, MemoryEngine

CONTEXT = context(Settings())
HOURS = 3_600_000_000_000
N = 160
RECORDS = mixture(N, step_ns=HOURS // 2)
"""Over three days, so that batches straddle midnights."""
ROLLUPS = ("spend_hourly", "divergence_minutely", "health_minutely")


def rows(records: list[bytes], first: int, last: int) -> Rows:
    return rows_of(decode(first, records[first:last]), CONTEXT, 0).rows


def sink(engine: MemoryEngine, seed: int = 0) -> Sink:
    return Sink(engine, "0a" * 16, "log", 0, now_ms=lambda: 0, random_bits=lambda n: seed)


def stored(engine: MemoryEngine) -> dict[str, Counter[object]]:
    """Return what the tables hold: rows as they are, rollups with their groups merged, bodies as a set."""
    found: dict[str, Counter[object]] = {}
    for name, items in engine.tables.items():
        if name in ROLLUPS:
            found[name] = Counter()
            for row in items:
                found[name].update(_amounts(name, row))
        else:
            found[name] = Counter(map(repr, set(map(repr, items)) if name == "bodies" else items))
    return found


def _amounts(name: str, row: Row) -> Counter[object]:
    """Return a rollup row's sums by group, as counters add."""
    names = [column.name for column in TABLES[name].columns]
    n_dimensions = names.index("n")
    sums: Counter[object] = Counter()
    for column, value in zip(names[n_dimensions:-1], row[n_dimensions:], strict=False):
        for key, amount in value.items() if isinstance(value, dict) else [("", value or 0)]:
            sums[(row[:n_dimensions], column, key)] += amount
    return sums


def in_one_go() -> dict[str, Counter[object]]:
    engine = MemoryEngine()
    one = sink(engine)
    one.take_over()
    one.store(rows(RECORDS, 0, N))
    one.progress()
    return stored(engine)


EXPECTED = in_one_go()


def test_the_world_reaches_every_table() -> None:
    """A property over tables that stay empty would show nothing."""
    assert all(EXPECTED[name] for name in TABLES)


def run(engine: MemoryEngine, cuts: Iterator[int], every: int) -> None:
    """Store all records in batches of the given sizes, taking over again after each unknown outcome."""
    one, seed = sink(engine), 0
    is_owner, n = False, 0
    for _ in range(2000):
        try:
            if not is_owner:
                seed += 1
                one = sink(engine, seed)
                one.take_over()
                is_owner = True
            if one.next >= N:
                one.progress()
                return
            one.store(rows(RECORDS, one.next, min(one.next + next(cuts), N)))
            n += 1
            if n % every == 0:
                one.progress()
        except EngineAway:
            is_owner = False
    raise AssertionError("did not come to an end")


FATES = st.sampled_from(["stored", "stored", "stored", "lost", "stored_unknown", "torn"])


@given(st.lists(FATES, max_size=60), st.lists(st.integers(1, 70), min_size=1, max_size=8), st.integers(1, 4))
def test_any_failures_and_any_cuts_store_every_row_once(fates: list[Fate], sizes: list[int], every: int) -> None:
    """Lost, stored without an answer, stored in some partitions: the replay adds exactly the rest."""
    queue = iter(fates)
    engine = MemoryEngine(lambda: next(queue, "stored"))
    lengths = iter(sizes * 2000)

    run(engine, lengths, every)

    assert stored(engine) == EXPECTED


@given(st.lists(st.integers(1, 70), min_size=1, max_size=8), st.integers(0, 20))
def test_a_paused_owner_that_goes_on_stores_nothing(sizes: list[int], pause_after: int) -> None:
    """The fence refuses it at its next insert, wherever in a batch it stood."""
    engine = MemoryEngine()
    old = sink(engine, 1)
    old.take_over()
    rest = iter(sizes * 2000)
    for _ in range(pause_after):
        if old.next < N:
            old.store(rows(RECORDS, old.next, min(old.next + next(rest), N)))
    begun_at = old.next

    new = sink(engine, 2)
    new.take_over()
    if begun_at < N:
        with pytest.raises(Fenced):
            old.store(rows(RECORDS, begun_at, N))
    old.skip(N + 1)
    with pytest.raises(Fenced):
        old.progress()
    while new.next < N:
        new.store(rows(RECORDS, new.next, min(new.next + next(rest), N)))
    new.progress()

    assert stored(engine) == EXPECTED


def test_progress_counts_every_record_once_per_hour() -> None:
    """`n` is written with `next` in one block, so it adds up whatever was replayed."""
    fates: list[Fate] = ["stored", "stored", "lost", "stored", "torn", "stored", "stored_unknown", "lost"] * 4
    queue = iter(fates)
    engine = MemoryEngine(lambda: next(queue, "stored"))

    run(engine, iter([7] * 2000), 3)

    assert sum(row[4] for row in engine.progress) == N
    hours = decode(0, RECORDS).hours
    assert hours == {hour: sum(row[4] for row in engine.progress if row[3] == hour) for hour in hours}


def test_keys_do_not_see_each_other() -> None:
    """Two logs, two topics, two partitions with the same offsets: each is stored whole."""
    engine = MemoryEngine()
    for log_id, topic, part in (("aa", "log", 0), ("bb", "log", 0), ("aa", "x", 0), ("aa", "log", 1)):
        one = Sink(engine, log_id, topic, part)
        assert one.take_over() == 0
        one.store(rows(RECORDS, 0, N))
        one.progress()

    n_requests = sum(EXPECTED["requests"].values())
    assert len(engine.tables["requests"]) == 4 * n_requests


def test_an_insert_touches_a_bounded_number_of_partitions() -> None:
    """ClickHouse refuses more than 100 at once; a log of 200 days' worth of clock jumps is stored all the same."""
    engine = MemoryEngine()
    one = sink(engine)
    one.take_over()
    records = mixture(200, step_ns=24 * HOURS)
    one.store(rows(records, 0, 200))

    assert max(engine.partitions_per_insert) == MAX_PARTITIONS_PER_INSERT
    assert len(engine.tables["requests"]) == len(rows(records, 0, 200).tables["requests"])


def test_a_batch_must_begin_where_the_last_one_ended() -> None:
    """A gap would be hidden for ever by the floors."""
    one = sink(MemoryEngine())
    one.take_over()

    with pytest.raises(ValueError, match="0 is due"):
        one.store(rows(RECORDS, 1, 2))


def test_a_batch_that_does_not_fit_one_block_is_refused_whole() -> None:
    """Several blocks are several parts, and their death is silent loss: the caller cuts the batch."""
    engine = MemoryEngine()
    one = sink(engine)
    one.take_over()
    batch = rows(RECORDS, 0, N)
    requests = batch.tables["requests"]
    batch.tables["requests"] = Block.joined(requests.table, [requests] * 20_000)

    with pytest.raises(BlockTooLarge):
        one.store(batch)
    assert not any(engine.tables.values())


def test_nothing_runs_before_taking_over() -> None:
    """Without an epoch there is no fence."""
    with pytest.raises(RuntimeError, match="take_over"):
        sink(MemoryEngine()).store(rows(RECORDS, 0, 5))


def test_epochs_grow_even_when_the_random_part_does_not() -> None:
    """The counter stands above the random bits."""
    engine = MemoryEngine()
    epochs = []
    for seed in (5, 3, 0, 1):
        sink(engine, seed).take_over()
        epochs.append(next(iter(engine.epochs.values())))

    assert epochs == sorted(set(epochs))


def test_going_on_behind_lost_records_is_written_down() -> None:
    """`skip` moves `next`, so that the loss is not met again at each start."""
    engine = MemoryEngine()
    one = sink(engine)
    one.take_over()
    one.skip(40)
    one.progress()

    assert sink(engine, 1).take_over() == 40
    with pytest.raises(ValueError, match="below"):
        one.skip(39)
