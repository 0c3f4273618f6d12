"""Records become events; what can never be stored is put aside, as a function of its bytes alone."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from gnomon.events import codec
from gnomon.events.contract import AnyEvent, Attempt, Head, Heads, PrimaryResponse, ShadowResponse
from ingest.batch import EARLIEST_NS, LATEST_NS, decode, own_time_ms
from ingest.reading import Pair, Request
from ingest.tables import HOUR_MS
from tests.events.samples import SAMPLES
from tests.ingest.events import AT, answer, breaker, head, mixture, poll, primary, reorg, shadow

ATTEMPT = Attempt(upstream="p1")
U16, U32, U64 = 2**16 - 1, 2**32 - 1, 2**64 - 1
GOOD = codec.encode(primary(2))


def fault_of(event: AnyEvent) -> str:
    """Return why an event is poison, alone and beside another; '' when it is none."""
    data = codec.encode(event)
    alone, beside = (decode(5, records).poison for records in ([data], [data, GOOD]))

    assert alone == beside
    assert all(one.reason == "out_of_range" for one in alone)
    return alone[0].detail if alone else ""


@pytest.mark.parametrize("event", SAMPLES, ids=lambda e: type(e).__name__)
def test_a_whole_event_of_every_type_is_good(event: AnyEvent) -> None:
    """Every member set to something."""
    batch = decode(7, [codec.encode(event)])
    ((off, found),) = batch.events

    assert off == 7
    assert codec.encode(event) == codec.encode(found)
    assert not batch.poison
    assert batch.next == 8


def test_what_is_read_differs_from_the_contract_in_heads_alone() -> None:
    """Every other member has the same type, whatever the contract becomes."""
    for read, written in ((Request, PrimaryResponse), (Pair, ShadowResponse)):
        kinds = {field.name: field.type for field in fields(written)}
        differ = {field.name for field in fields(read) if field.type != kinds[field.name]}
        assert differ == {name for name in kinds if name.endswith("heads")}
        assert {field.name for field in fields(read)} == set(kinds)


@pytest.mark.parametrize(
    ("make", "limit"),
    [
        (lambda n: primary(1, duration_us=n), U32),
        (lambda n: primary(1, request_bytes=n), U32),
        (lambda n: primary(1, response_bytes=n), U32),
        (lambda n: primary(1, n_skipped_open=n), U16),
        (lambda n: primary(1, heads=Heads(network=Head(latest=n))), U64),
        (lambda n: primary(1, heads=Heads(network=Head(finalized=n))), U64),
        (lambda n: primary(1, attempts=(replace(ATTEMPT, start_us=n),)), U32),
        (lambda n: primary(1, attempts=(replace(ATTEMPT, duration_us=n),)), U32),
        (lambda n: primary(1, attempts=(replace(ATTEMPT, status=n),)), U16),
        (lambda n: shadow(1, primary_duration_us=n), U32),
        (lambda n: shadow(1, attempt=replace(ATTEMPT, response_bytes=n)), U32),
        (lambda n: shadow(1, heads=Heads(upstreams={"s1": Head(latest=n)})), U64),
        (lambda n: shadow(1, primary_heads=Heads(network=Head(safe=n))), U64),
        (lambda n: shadow(1, shadow=replace(answer(b"1"), n_bytes=n)), U32),
        (lambda n: shadow(1, primary=replace(answer(b"1"), response_block=n)), U64),
        (lambda n: primary(1, answer=replace(answer(b"1"), response_block=n)), U64),
        (lambda n: replace(poll(1), latest=n), U64),
        (lambda n: replace(poll(1), attempt=replace(ATTEMPT, request_bytes=n)), U32),
        (head, U64),
        (reorg, U64),
        (lambda n: replace(reorg(1), depth=n), U32),
        (breaker, U64),
    ],
)
def test_a_number_that_does_not_fit_its_column_makes_a_dead_letter(make: Callable[[int], AnyEvent], limit: int) -> None:
    """Its edges pass; one beyond them is poison, never another number and never a batch that fails for ever."""
    assert [fault_of(make(n)) for n in (0, 1, limit)] == ["", "", ""]
    assert fault_of(make(-1))
    assert fault_of(make(limit + 1))


@pytest.mark.parametrize(
    ("number", "is_good"),
    [(-(2**63) - 1, False), (-(2**63), True), (0, True), (2**63 - 1, True), (2**63, False)],
)
def test_an_error_code_has_64_bits_and_a_sign(number: int, is_good: bool) -> None:
    """A node may send any."""
    assert is_good == (fault_of(primary(1, attempts=(replace(ATTEMPT, error_code=number),))) == "")


def test_a_call_travelled_with_itself_at_least() -> None:
    """A price is divided by the number of calls in a batch."""
    assert [fault_of(primary(1, attempts=(replace(ATTEMPT, n_batch=n),))) != "" for n in (-1, 0, 1, U16, U16 + 1)] == [
        True, True, False, False, True,
    ]  # fmt: skip


def test_heads_that_are_none_make_a_dead_letter() -> None:
    """They are read apart from their event; a wrong shape is found all the same."""
    data = GOOD.replace(b'"latest":200', b'"latest":"200"')
    (poison,) = decode(0, [GOOD, data, GOOD]).poison

    assert (poison.off, poison.reason, poison.event_at_ms) == (1, "no_event", AT // 1_000_000)


def test_a_call_of_our_own_has_a_name() -> None:
    """Stored without one it would be taken for a client's attempt, and counted nowhere."""
    assert fault_of(poll(1)) == ""
    assert fault_of(replace(poll(1), attempt_id="")) == "attempt_id is empty"


@pytest.mark.parametrize(
    ("at", "is_good"),
    [(EARLIEST_NS - 1, False), (EARLIEST_NS, True), (LATEST_NS - 1, True), (LATEST_NS, False), (0, False), (-1, False)],
)
def test_a_time_is_bounded_by_the_record_and_not_by_the_clock(at: int, is_good: bool) -> None:
    """2020 to 2100."""
    assert is_good == (fault_of(primary(1, at=at)) == "")


@pytest.mark.parametrize(
    ("data", "reason", "event_at_ms"),
    [
        (b"", "no_event", 0),
        (b"\xff\x00", "no_event", 0),
        (b"[]", "no_event", 0),
        (b'{"type":"unheard_of","v":1,"at":1790000000000000000}', "no_event", 1_790_000_000_000),
        (b'{"type":"reorg","v":1,"at": 1790000000000000000 }', "no_event", 1_790_000_000_000),
        (b'{"type":"reorg","v":99,"at":1790000000000000000}', "unknown_version", 1_790_000_000_000),
        (b'{"type":"reorg","at":17}', "no_event", 0),
        (b'{"at":99999999999999999999999}', "no_event", 0),
    ],
)
def test_poison_keeps_its_bytes_and_its_own_time(data: bytes, reason: str, event_at_ms: int) -> None:
    """The reason is one of a few; the time is 0 where none can be read."""
    (poison,) = decode(41, [data]).poison

    assert (41, reason, event_at_ms, data) == (poison.off, poison.reason, poison.event_at_ms, poison.data)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_poison(data: bytes) -> None:
    """Nothing stops the pipeline."""
    batch = decode(0, [data])

    assert len(batch.events) + len(batch.poison) == 1
    assert own_time_ms(data) >= 0


@given(st.lists(st.integers(0, 100), max_size=6))
def test_cutting_elsewhere_changes_nothing(cuts: list[int]) -> None:
    """Events, poison and hours of the pieces are those of the whole."""
    records = mixture(100, step_ns=HOUR_MS * 100_000)
    whole = decode(0, records)
    edges = [0, *sorted(cuts), 100]
    pieces = [decode(a, records[a:b]) for a, b in pairwise(edges)]

    assert whole.events == [pair for piece in pieces for pair in piece.events]
    assert [off for off, _ in whole.events] == sorted(off for off, _ in whole.events)
    assert whole.poison == [poison for piece in pieces for poison in piece.poison]
    hours: dict[int, int] = {}
    for piece in pieces:
        for hour, n in piece.hours.items():
            hours[hour] = hours.get(hour, 0) + n
    assert whole.hours == hours
    assert sum(hours.values()) == 100


def test_every_record_counts_in_its_own_hour() -> None:
    """Poison without a time counts in hour 0."""
    batch = decode(0, [codec.encode(head(1, at=AT)), codec.encode(head(2, at=AT + 3600 * 10**9)), b"?"])

    hour = AT // 10**6 // HOUR_MS * HOUR_MS
    assert {hour: 1, hour + HOUR_MS: 1, 0: 1} == batch.hours
