"""
Heads by subscription: who is listened to, when to try again, and what a message says.

A WebSocket endpoint gives heads and nothing else. Primaries' are listened to always; fallbacks', which cost money for
each head, only while no primary tells its head in any way, by subscription or by polls.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from gnomon.rpc.blocks import parse_number

FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 30.0
FRESH_POLLS: Final = 3
FRESH_SECONDS: Final = 10.0
"""A primary whose last head is older than three of its polls, and than this, does not tell its head."""
SILENT_SECONDS: Final = 30.0
SILENT_BLOCKS: Final = 3
"""A subscription that has said nothing for so long while the others went on by so much is dead."""
_HASH_CHARACTERS: Final = 66


class Pushed(Struct, frozen=True):
    """A head as a node pushed it; hashes are empty where it gave none."""

    number: int
    hash: str
    parent_hash: str


class Passed(Struct, frozen=True):
    """A push that tells no head of ours. It was delivered, so it costs what a head costs."""


class _Header(Struct):
    number: str = ""
    hash: str | None = ""
    parentHash: str | None = ""


class _Params(Struct):
    subscription: str | int = ""
    result: _Header | None = None


class _Message(Struct):
    id: str | int | None = None
    method: str = ""
    params: _Params | None = None
    result: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")


class Answered(Struct, frozen=True):
    """An answer to one of our calls; `result` is raw JSON, empty where the node refused."""

    id: str | int
    result: bytes


class _Kind(Struct):
    method: str = ""


_decode: Final = msgspec.json.Decoder(_Message).decode
_decode_kind: Final = msgspec.json.Decoder(_Kind).decode


def read(message: bytes | str, subscription: str) -> Pushed | Passed | Answered | None:
    """
    Return what a message says: a head of this subscription, another push, an answer, or None for anything else.

    Args:
        message: one message of the connection, whatever it holds.
        subscription: the id that the node gave; heads of another are not ours.
    """
    try:
        found = _decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Passed() if _is_push(message) else None
    if found.method == "eth_subscription":
        params = found.params
        if params is None or params.result is None or str(params.subscription) != subscription:
            return Passed()
        header = params.result
        number = parse_number(header.number) if header.number.startswith("0x") else None
        if number is None:
            return Passed()
        own, parent = (
            text if text and len(text) <= _HASH_CHARACTERS else "" for text in (header.hash, header.parentHash)
        )
        return Pushed(number, own, parent)
    if found.id is None or found.method:
        return None
    is_refused = bool(bytes(found.error)) and bytes(found.error) != b"null"
    return Answered(found.id, b"" if is_refused else bytes(found.result))


def _is_push(message: bytes | str) -> bool:
    try:
        return _decode_kind(message).method == "eth_subscription"
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def n_bytes(message: bytes | str) -> int:
    """Return the size of a message as it was delivered."""
    return len(message) if isinstance(message, bytes) or message.isascii() else len(message.encode())


def is_fresh(seen_seconds_ago: float | None, poll_interval_seconds: float) -> bool:
    """Say whether a polled primary still tells its head; None: it never did."""
    limit = max(FRESH_SECONDS, FRESH_POLLS * poll_interval_seconds)
    return seen_seconds_ago is not None and seen_seconds_ago <= limit


def is_wanted(is_fallback: bool, is_primary_up: Iterable[bool]) -> bool:
    """
    Say whether an endpoint is to be listened to.

    Args:
        is_fallback: whether its heads cost money.
        is_primary_up: for each primary of the network, whether it tells its head now.
    """
    return not is_fallback or not any(is_primary_up)


def is_silent(quiet_seconds: float, own: int | None, network: int | None) -> bool:
    """Say whether a subscription that has been quiet for so long is dead: the network's head went on without it."""
    if quiet_seconds < SILENT_SECONDS or network is None:
        return False
    return own is None or network - own >= SILENT_BLOCKS


def wait_seconds(n_failures: int, share: float) -> float:
    """
    Return how long to wait before the next try.

    Args:
        n_failures: tries that failed since the last head, 1 or more.
        share: 0 to 1, drawn by the caller: waits are spread over their upper half.
    """
    whole = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** min(n_failures - 1, 10))
    return float(whole * (0.5 + share / 2))
