"""
Records of a log become events; what can never be stored is put aside.

A record is poison when it is no event (gnomon.events.codec), or when a number in it does not fit the column it belongs
to. That is a function of the record's bytes alone, never of the clock or of the other records: a batch that is cut
anywhere else gives the same dead letters. The time is bounded for the same reason: a wild clock must not make rows
for partitions that nobody will ever read.

Where a log may have records twice (a Kafka partition whose shipper was started again), the second is left out. A
process numbers its events and its shipper sends them in order, so one is a repetition when its number is not above the
greatest that came from its process before. That too is a function of the partition's records alone, whoever reads them.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from gnomon.events.contract import Attempt, BreakerTransition, HeadUpdate, InternalAttempt, Reorg
from gnomon.events.errors import EventError, UnknownVersion
from ingest.blocks import Members, members
from ingest.reading import READER, AnyRecord, OutOfRange, Pair, Request, heads_of
from ingest.tables import HOUR_MS

EARLIEST_NS = 1_577_836_800_000_000_000
"""2020-01-01: no event is older than the product."""
LATEST_NS = 4_102_444_800_000_000_000
"""2100-01-01, exclusive: below what `toDateTime` holds."""

_HOUR_NS = HOUR_MS * 1_000_000
_AT = re.compile(rb'"at"\s*:\s*(\d{1,19})')
_EVENT_ID = re.compile(rb'"event_id"\s*:\s*"([0-9a-f]{16}:\d{1,19})"')
_PROC_LENGTH = 16
_I64 = 1 << 63


@dataclass(frozen=True, slots=True)
class Poison:
    """A record that can never be stored."""

    off: int
    event_at_ms: int
    """The record's own time; 0 where none can be read."""
    reason: str
    """`no_event`, `unknown_version`, `out_of_range`, `step_failed`, `refused`."""
    detail: str
    data: bytes


@dataclass(slots=True)
class Group:
    """Events of one type, in order, with what they are made of."""

    offsets: Sequence[int]
    events: Sequence[Any]
    of: Members
    """The members of the events; heads as `Heads`."""
    calls: Sequence[Attempt]
    """Their attempts, one after the other."""
    call: Members
    """The members of the attempts."""

    @property
    def n_calls(self) -> list[int]:
        """How many of the calls each event has."""
        several = self.of.get("attempts")
        return [1] * len(self.events) if several is None else list(map(len, several))


@dataclass(slots=True)
class Batch:
    """Decoded records of one log."""

    first: int
    """Every record of the log below it is in an earlier batch."""
    records: Sequence[bytes]
    offsets: Sequence[int]
    """Of the records, ascending; a Kafka partition may leave some out."""
    groups: dict[type[AnyRecord], Group] = field(default_factory=dict)
    poison: list[Poison] = field(default_factory=list)
    hours: dict[int, int] = field(default_factory=dict)
    """Hour (ms since 1970) → records, poison included; 0 = time unknown."""
    newest_at_ms: int = 0
    seen: dict[str, int] = field(default_factory=dict)
    """Process → greatest number of an event of it in this batch; empty where repetitions are not looked for."""
    n_repeated: int = 0

    @property
    def next(self) -> int:
        """The offset after the last record."""
        return self.offsets[-1] + 1 if self.offsets else self.first

    @property
    def events(self) -> list[tuple[int, AnyRecord]]:
        """Offset and event, in order."""
        pairs = (zip(group.offsets, group.events, strict=True) for group in self.groups.values())
        return sorted(chain.from_iterable(pairs), key=lambda pair: pair[0])


def decode(
    first: int,
    records: Sequence[bytes],
    offsets: Sequence[int] | None = None,
    seen: Mapping[str, int] | None = None,
) -> Batch:
    """
    Return the events of records that follow each other in their log.

    Args:
        first: every record of the log below it is in an earlier batch.
        records: their bytes.
        offsets: of the records, ascending, none below `first`; by default there is no gap from `first` on.
        seen: process → greatest number of an event of it below `first`; None: the log has no repetitions.
    """
    batch = Batch(first, records, range(first, first + len(records)) if offsets is None else offsets)
    try:
        read: Sequence[AnyRecord | EventError] = READER.all(records)
    except EventError:
        read = [_read(data) for data in records]
    repeated = frozenset() if seen is None else _repeated(read, seen, batch)
    apart: dict[type[Any], tuple[list[int], list[Any]]] = {}
    for index, (off, one) in enumerate(zip(batch.offsets, read, strict=True)):
        if index not in repeated:
            group = apart.get(type(one)) or apart.setdefault(type(one), ([], []))
            group[0].append(off)
            group[1].append(one)
    faults: list[tuple[int, EventError]] = []
    for kind, (where, ones) in apart.items():
        if issubclass(kind, EventError):
            faults += zip(where, ones, strict=True)
        else:
            _add(batch, kind, where, ones, faults)
    batch.poison = [_poison(batch, off, error) for off, error in sorted(faults, key=lambda fault: fault[0])]
    _count(batch, [records[index] for index in repeated])
    return batch


def _read(data: bytes) -> AnyRecord | EventError:
    try:
        return READER.one(data)
    except EventError as error:
        return error


def _add(
    batch: Batch,
    kind: type[AnyRecord],
    offsets: Sequence[int],
    events: Sequence[Any],
    faults: list[tuple[int, EventError]],
) -> None:
    """Add events of one type to the batch; those that have no place in the tables go to the faults."""
    try:
        batch.groups[kind] = _group(kind, offsets, events)
    except EventError as error:
        if len(events) == 1:
            faults.append((offsets[0], error))
            return
        good = []
        for off, event in zip(offsets, events, strict=True):
            try:
                _group(kind, [off], [event])
                good.append((off, event))
            except EventError as its_own:
                faults.append((off, its_own))
        if good:
            batch.groups[kind] = _group(kind, *zip(*good, strict=True))


def _group(kind: type[AnyRecord], offsets: Sequence[int], events: Sequence[Any]) -> Group:
    """
    Return events of one type as a group.

    Raises:
        EventError: one of them has no place in the tables.
    """
    of = dict(members(events))
    for name in ("heads", "primary_heads"):
        if name in of:
            of[name] = [heads_of(bytes(text)) for text in of[name]]
    if kind is Request:
        calls: Sequence[Attempt] = list(chain.from_iterable(of["attempts"]))
    else:
        calls = of.get("attempt", ())
    group = Group(offsets, events, of, calls, members(calls))
    fault = out_of_range(kind, group)
    if fault:
        raise OutOfRange(fault)
    return group


def _count(batch: Batch, repeated: Iterable[bytes]) -> None:
    """Count records by hour; repetitions count for nothing, but their hour is one that was met."""
    hours = Counter(one.event_at_ms // HOUR_MS for one in batch.poison)
    for group in batch.groups.values():
        hours.update([at // _HOUR_NS for at in group.of["at"]])
        batch.newest_at_ms = max(batch.newest_at_ms, max(group.of["at"]) // 1_000_000)
    hours.update({own_time_ms(data) // HOUR_MS: 0 for data in repeated})
    batch.hours = {hour * HOUR_MS: n for hour, n in hours.items()}


def _repeated(read: Sequence[AnyRecord | EventError], seen: Mapping[str, int], batch: Batch) -> frozenset[int]:
    """Return which records came before, by their places; an event id of another form never did."""
    repeated = []
    known = batch.seen
    for index, one in enumerate(read):
        if isinstance(one, EventError):
            match = _EVENT_ID.search(batch.records[index])
            event_id = match[1].decode() if match else ""
        else:
            event_id = one.event_id
        proc, _, text = event_id.partition(":")
        if len(proc) != _PROC_LENGTH or not text.isdecimal():
            continue
        number = int(text)
        last = known.get(proc)
        if last is None:
            last = seen.get(proc, -1)
        if number <= last:
            repeated.append(index)
        else:
            known[proc] = number
    batch.n_repeated = len(repeated)
    return frozenset(repeated)


def without(batch: Batch, off: int, detail: str, reason: str = "step_failed") -> Batch:
    """Return the batch with one of its events as poison, because the step fails at it or its rows are refused."""
    groups, at_ms = {}, 0
    for kind, group in batch.groups.items():
        left = [pair for pair in zip(group.offsets, group.events, strict=True) if pair[0] != off]
        if len(left) == len(group.events):
            groups[kind] = group
            continue
        at_ms = next(event.at // 1_000_000 for o, event in zip(group.offsets, group.events, strict=True) if o == off)
        if left:
            groups[kind] = _group(kind, *zip(*left, strict=True))
    poison = [*batch.poison, Poison(off, at_ms, reason, detail[:500], _record(batch, off))]
    return replace(batch, groups=groups, poison=sorted(poison, key=lambda p: p.off))


def alone(batch: Batch, off: int, event: AnyRecord) -> Batch:
    """Return a batch that holds one event of another."""
    return Batch(off, [_record(batch, off)], [off], {type(event): _group(type(event), [off], [event])})


def _record(batch: Batch, off: int) -> bytes:
    return batch.records[bisect_left(batch.offsets, off)]


def _poison(batch: Batch, off: int, error: EventError) -> Poison:
    data = _record(batch, off)
    if isinstance(error, UnknownVersion):
        reason = "unknown_version"
    else:
        reason = "out_of_range" if isinstance(error, OutOfRange) else "no_event"
    return Poison(off, own_time_ms(data), reason, str(error)[:500], data)


def own_time_ms(data: bytes) -> int:
    """Return the time that a record which is no event says it has; 0 where it says none, or none within bounds."""
    match = _AT.search(data)
    at = int(match[1]) if match else 0
    return at // 1_000_000 if EARLIEST_NS <= at < LATEST_NS else 0


def out_of_range(kind: type[AnyRecord], group: Group) -> str:
    """Return what of some events does not fit its column, or names nothing; '' when all is well. Heads fit already."""
    times = group.of["at"]
    if min(times) < EARLIEST_NS or max(times) >= LATEST_NS:
        return "at is not between 2020 and 2100"
    for name, bits, found in _numbers(kind, group):
        known = [number for number in found if number is not None]
        if known and (min(known) < 0 or max(known) >> bits):
            return f"{name} does not fit {bits} bits"
    if group.calls:
        if 0 in group.call["n_batch"]:
            return "n_batch is 0"
        if any(code is not None and not -_I64 <= code < _I64 for code in set(group.call["error_code"])):
            return "error_code does not fit 64 bits"
    return "attempt_id is empty" if "" in group.of.get("attempt_id", ()) else ""


def _numbers(kind: type[AnyRecord], group: Group) -> Iterator[tuple[str, int, Sequence[int | None]]]:
    """Yield the numbers of events, with their name and the bits of their column."""
    of, call = group.of, group.call
    if group.calls:
        yield "start_us", 32, call["start_us"]
        yield "duration_us of an attempt", 32, call["duration_us"]
        yield "request_bytes of an attempt", 32, call["request_bytes"]
        yield "response_bytes of an attempt", 32, call["response_bytes"]
        yield "status", 16, call["status"]
        yield "n_batch", 16, call["n_batch"]
    if kind is Request:
        yield "duration_us", 32, of["duration_us"]
        yield "request_bytes", 32, of["request_bytes"]
        yield "response_bytes", 32, of["response_bytes"]
        yield "n_skipped_open", 16, of["n_skipped_open"]
        yield "the number of attempts", 16, group.n_calls
        yield "the number of shadows", 16, list(map(len, of["shadows"]))
        yield "response_block", 64, [answer.response_block for answer in of["answer"]]
    elif kind is Pair:
        yield "primary_duration_us", 32, of["primary_duration_us"]
        for side in ("primary", "shadow"):
            yield f"n_bytes of the {side}", 32, [answer.n_bytes for answer in of[side]]
            yield f"response_block of the {side}", 64, [answer.response_block for answer in of[side]]
    elif kind is InternalAttempt:
        yield "latest", 64, of["latest"]
    elif kind is HeadUpdate:
        yield "number", 64, of["number"]
    elif kind is Reorg:
        yield "number", 64, of["number"]
        yield "depth", 32, of["depth"]
    elif kind is BreakerTransition:
        yield "counters", 64, [n for counters in of["counters"] for n in counters.values()]
