"""
Where a record goes, from its first bytes: nothing else of it is looked at.

The two commonest types are found by their opening; the members before `request_id` hold no object, so its first
occurrence is the event's own (in a text its quotes would be escaped). Everything else is decoded, just as far as
needed.
"""

from typing import Final

import msgspec

from gnomon.events.topics import ATTEMPTS, BREAKERS, HEADS, RESPONSES

_OPENINGS: Final = (b'{"type":"primary_response","v":', b'{"type":"shadow_response","v":')
_LEAST: Final = len(_OPENINGS[1])
_MEMBER: Final = b'"request_id":"'
_WITHIN: Final = 1024
"""The members before it are shorter than this together; else the record is decoded."""


class Unroutable(Exception):
    """A record of no type that has a topic, or without its key."""


class _Attempt(msgspec.Struct):
    upstream: str


class _Envelope(msgspec.Struct):
    type: str
    request_id: str = ""
    network: str = ""
    upstream: str = ""
    attempt: _Attempt | None = None


_decode = msgspec.json.Decoder(_Envelope).decode


def route(record: bytes) -> tuple[str, bytes]:
    """
    Return the topic, without prefix, and the key of a record.

    Raises:
        Unroutable: it has none.
    """
    if record.startswith(_OPENINGS):
        start = record.find(_MEMBER, _LEAST, _WITHIN)
        if start > 0 and record.find(b"{", _LEAST, start) < 0:
            start += len(_MEMBER)
            end = record.find(b'"', start)
            key = record[start:end]
            if end > start and b"\\" not in key:
                return RESPONSES, key
    return _route_decoded(record)


def _route_decoded(record: bytes) -> tuple[str, bytes]:
    try:
        envelope = _decode(record)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unroutable(str(error)) from error
    match envelope.type:
        case "primary_response" | "shadow_response":
            topic, key = RESPONSES, envelope.request_id
        case "attempt":
            topic, key = ATTEMPTS, envelope.attempt.upstream if envelope.attempt is not None else ""
        case "head_update" | "reorg":
            topic, key = HEADS, envelope.network
        case "breaker_transition":
            topic, key = BREAKERS, envelope.upstream
        case other:
            raise Unroutable(f"no topic for the type {other!r}")
    if not key:
        raise Unroutable(f"no key in a {envelope.type}")
    return topic, key.encode()
