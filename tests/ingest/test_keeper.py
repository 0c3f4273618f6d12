"""The keeper of a key: repetitions are left out whoever reads, and one record that cannot be stored stops nobody."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gnomon.config.model import Settings
from gnomon.events import codec
from ingest.errors import UnknownOutcome
from ingest.keeper import Keeper
from ingest.metrics import Metrics
from ingest.settings import context
from ingest.tables import TABLES
from tests.ingest.events import AT, mixture, primary
from tests.ingest.memory_engine import Fate, MemoryEngine

CONTEXT = context(Settings())
KEY = ("aa" * 16, "gnomon.responses.v1", 3)


def keeper(engine: MemoryEngine) -> Keeper:
    return Keeper(
        engine, CONTEXT, Metrics(), KEY, name="r/3", missing_horizon_seconds=None, has_repetitions=True,
        now_ms=lambda: AT // 1_000_000,
    )  # fmt: skip


def event(proc: int, number: int) -> bytes:
    return codec.encode(primary(number, event_id=f"{proc:016x}:{number}", request_id=f"{proc}-{number}"))


def ids(engine: MemoryEngine) -> list[str]:
    return [row[1] for row in engine.tables["requests"]]


def test_an_event_that_its_shipper_sends_again_is_stored_once() -> None:
    """Two processes in one partition, one of whose shippers begins again a few events back."""
    engine = MemoryEngine()
    one = keeper(engine)
    one.take_over()
    done = one.store([event(1, 0), event(2, 5), event(1, 2), event(1, 0), event(1, 2), event(1, 7), event(2, 6)])

    assert ids(engine) == ["1-0", "2-5", "1-2", "1-7", "2-6"]
    assert (done.n_events, done.n_repeated) == (7, 2)


def test_poison_that_is_sent_again_is_one_dead_letter() -> None:
    """A record that is no event may still say its number."""
    engine = MemoryEngine()
    one = keeper(engine)
    one.take_over()
    poison = b'{"event_id":"%016x:4","v":99,"type":"from the future"}' % 1
    one.store([event(1, 3), poison, event(1, 3), poison, b"no event at all", b"no event at all"])

    assert [row[2] for row in engine.tables["dead_letters"]] == ["unknown_version", "no_event", "no_event"]


@given(st.data(), st.integers(0, 2**32))
@example(None, 0)
def test_repetitions_are_the_same_ones_wherever_owners_change(data: st.DataObject | None, seed: int) -> None:
    """A shipper that begins again, owners that lose inserts and others that take over: every event once."""
    draw: Callable[[int, int], int] = (lambda low, high: low) if data is None else (
        lambda low, high: data.draw(st.integers(low, high))
    )  # fmt: skip
    sent: list[bytes] = []
    at = {1: 0, 2: 0}
    for _ in range(12):
        proc = draw(1, 2)
        begin = max(at[proc] - draw(0, 3), 0)
        end = at[proc] + draw(0, 3)
        sent += [event(proc, number) for number in range(begin, end)]
        at[proc] = max(end, at[proc])
    fates: list[Fate] = ["stored", "stored", "stored", "lost", "stored_unknown", "torn"]
    engine = MemoryEngine(lambda: fates[draw(0, 5)] if data else "stored")
    owner = keeper(engine)
    start, is_owner = 0, False
    for _ in range(400):
        try:
            if not is_owner:
                owner = keeper(engine)
                start, is_owner = owner.take_over(), True
            if start >= len(sent):
                break
            size = draw(1, 6)
            owner.store(sent[start : start + size])
            start += size
            if draw(0, 1) or start >= len(sent):
                owner.sink.progress()
        except UnknownOutcome:
            is_owner = False
    else:
        return

    assert sorted(ids(engine)) == sorted(f"{proc}-{n}" for proc in at for n in range(at[proc]))


def refuses_event(name: str) -> Callable[[str, Sequence[Sequence[Any]]], bool]:
    column = next(i for i, c in enumerate(TABLES["requests"].columns) if c.name == "request_id")
    return lambda table, values: table == "requests" and name in values[column]


@pytest.mark.parametrize("place", [0, 1, 37, 98, 99])
def test_a_record_that_clickhouse_refuses_is_found_and_put_aside(place: int) -> None:
    """Its neighbours are stored; the dead letter has its bytes and the reason."""
    engine = MemoryEngine(refuses=refuses_event(f"1-{place}"))
    one = keeper(engine)
    sent = [event(1, number) for number in range(100)]
    n_refused = 0
    start = one.take_over()
    while start < len(sent):
        try:
            one.store(sent[start:])
        except UnknownOutcome:
            n_refused += 1
        start = one.take_over() if one.sink.next == start else one.sink.next
        one.sink.progress()

    assert sorted(ids(engine)) == sorted(f"1-{n}" for n in range(100) if n != place)
    assert [(row[2], row[4], row[5]) for row in engine.tables["dead_letters"]] == [("refused", sent[place], place)]
    assert n_refused <= 10


def test_a_value_that_its_column_cannot_hold_is_found_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder fails before anything is sent; half of the tables may have the batch by then."""
    from ingest import batch

    monkeypatch.setattr(batch, "out_of_range", lambda kind, group: "")
    engine = MemoryEngine()
    one = keeper(engine)
    sent = [event(1, n) for n in range(20)]
    sent[7] = codec.encode(primary(7, event_id=f"{1:016x}:7", duration_us=1 << 40))
    start = one.take_over()
    for _ in range(20):
        try:
            one.store(sent[start:])
            break
        except UnknownOutcome:
            start = one.take_over()

    assert len(ids(engine)) == 19
    assert [(row[2], row[5]) for row in engine.tables["dead_letters"]] == [("refused", 7)]


def test_after_the_search_batches_are_whole_again() -> None:
    """The limit doubles with each batch that is stored until it is none."""
    engine = MemoryEngine(refuses=refuses_event("1-3"))
    one = keeper(engine)
    sent = [event(1, number) for number in range(20_000)]
    start = one.take_over()
    while start < 5:
        try:
            one.store(sent[start:])
            break
        except UnknownOutcome:
            start = one.take_over()
    before = one.sink.n_inserts
    one.store([event(1, number) for number in range(20_000, 20_100)])

    assert one.sink.n_inserts - before < 6


def test_offsets_may_have_gaps() -> None:
    """A partition leaves out what is not for readers; rows have the offsets of their records."""
    engine = MemoryEngine()
    one = keeper(engine)
    one.take_over()
    one.store([event(1, 0), event(1, 1)], [2, 9])
    one.store([event(1, 2)], [12])
    one.sink.progress()

    assert [row[-4] for row in engine.tables["requests"]] == [2, 9, 12]
    assert keeper(engine).take_over() == 13


def test_without_repetitions_nothing_is_compared() -> None:
    """The log of one process has each event once, whatever their numbers."""
    engine = MemoryEngine()
    one = Keeper(engine, CONTEXT, Metrics(), KEY, name="0", missing_horizon_seconds=None)
    one.take_over()
    one.store([*mixture(32), event(1, 5), event(1, 5)])

    assert ids(engine)[-2:] == ["1-5", "1-5"]
