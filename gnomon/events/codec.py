"""
Events to bytes and back: one JSON object a record.

`encode` writes raw fragments as they are and does not look at them: a fragment must be one JSON text (`is_fragment`
tells), and an absent one must be `NO_BODY` itself, not another empty `Raw`. Whoever breaks this writes a record that
nobody can read.

Unknown members are ignored on reading, so a consumer can be older than the proxy by the members that were added.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from gnomon.events.contract import VERSION, AnyEvent, Event
from gnomon.events.errors import PoisonEvent, UnknownVersion

OLDEST_VERSION = 1
"""Consumers read one version back; version 1 is the first there was."""

E = TypeVar("E", bound=Event)


class _Envelope(msgspec.Struct):
    """Just enough of an event to know whether its version is why the rest makes no sense."""

    v: int


_encode = msgspec.json.Encoder().encode
_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_skip = msgspec.json.Decoder(msgspec.Raw).decode


def encode(event: AnyEvent) -> bytes:
    """
    Return the record of an event, members at their default left out.

    Raises:
        PoisonEvent: a text in it is no Unicode (a lone surrogate), so no JSON can hold it.
    """
    try:
        return _encode(event)
    except UnicodeEncodeError as error:
        raise PoisonEvent(f"event {event.event_id!r} has a text that is no Unicode: {error}") from error


class Reader(Generic[E]):
    """Reads records as events of one union of types: the contract's own, or such as see less of them."""

    def __init__(self, types: Any) -> None:
        """
        Args:
            types: the union; `E` is the same for the type checker.
        """
        self._decode: Callable[[bytes], E] = msgspec.json.Decoder(types).decode

    def one(self, data: bytes) -> E:
        """
        Return the event in a record. Raw fragments in it are views of `data`, which they keep alive.

        Raises:
            UnknownVersion: the version is not one that this code reads, whatever else is in the record.
            PoisonEvent: the record is no JSON, is nested too deep, of no known type, or a member has the wrong shape.
        """
        return self.all([data])[0]

    def all(self, records: Sequence[bytes]) -> list[E]:
        """Return the events in records; raises as `one`, for the first that is no event."""
        events: list[E] = []
        try:
            events.extend(map(self._decode, records))
        except (msgspec.DecodeError, RecursionError) as error:
            _check_versions(events)
            _check_version(records[len(events)])
            raise PoisonEvent(f"no event: {error}") from error
        _check_versions(events)
        return events


def _check_versions(events: Sequence[Event]) -> None:
    for version in {event.v for event in events}:
        if not OLDEST_VERSION <= version <= VERSION:
            raise UnknownVersion(version, VERSION)


def _check_version(data: bytes) -> None:
    """Raise UnknownVersion when the record has a version and it is not ours."""
    try:
        version = _decode_envelope(data).v
    except (msgspec.DecodeError, RecursionError):
        return
    if not OLDEST_VERSION <= version <= VERSION:
        raise UnknownVersion(version, VERSION)


_reader: Reader[AnyEvent] = Reader(AnyEvent)
decode = _reader.one
"""See `Reader.one`; of the contract's own types."""


def is_fragment(text: bytes) -> bool:
    """
    Return whether a text can travel as a raw fragment: one JSON value, judged by the parser that will read it.

    Costs about 1 ns a byte. Stricter than JSON's grammar in two places: half of a surrogate pair as an escape, and
    nesting deeper than some 900 levels, do not pass. More lenient in one: bytes in strings need not be UTF-8.
    """
    try:
        _skip(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
