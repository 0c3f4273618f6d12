"""
Events as the steps read them: what most events have in common is left as text, and read once.

Heads stand in every event and change every few seconds. Of the contract's types those with heads are read with them as
they were written; `heads_of` knows the texts of late. Nothing else differs from the contract.
"""

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from gnomon.events.codec import Reader
from gnomon.events.contract import (
    NO_BODY,
    BreakerTransition,
    Heads,
    HeadUpdate,
    InternalAttempt,
    PrimaryResponse,
    Reorg,
    ShadowResponse,
)
from gnomon.events.errors import PoisonEvent

MAX_BLOCK_NUMBER = (1 << 64) - 1
_KEPT = 10_000


class Request(PrimaryResponse, frozen=True, gc=False, kw_only=True, tag="primary_response"):
    """A client's request."""

    heads: Raw = NO_BODY  # type: ignore[assignment]


class Pair(ShadowResponse, frozen=True, gc=False, kw_only=True, tag="shadow_response"):
    """A mirrored call and what it is compared with."""

    heads: Raw = NO_BODY  # type: ignore[assignment]
    primary_heads: Raw = NO_BODY  # type: ignore[assignment]


AnyRecord = Request | Pair | InternalAttempt | HeadUpdate | Reorg | BreakerTransition
READER: Reader[AnyRecord] = Reader(AnyRecord)


class OutOfRange(PoisonEvent):
    """A number that fits no column."""


class _Known(dict[bytes, Heads]):
    def __missing__(self, text: bytes) -> Heads:
        if len(self) >= _KEPT:
            self.clear()
        heads = self[text] = _read(text)
        return heads


_decode = Decoder(Heads).decode
_known = _Known()
heads_of = _known.__getitem__
"""
Return the heads in the text of a member.

Raises:
    PoisonEvent: they are none, or a number in them is no block number.
"""


def _read(text: bytes) -> Heads:
    if not text:
        return Heads()
    try:
        heads = _decode(text)
    except (DecodeError, RecursionError) as error:
        raise PoisonEvent(f"no event: heads: {error}") from error
    for head in (heads.network, *heads.upstreams.values()):
        for number in (head.latest, head.safe, head.finalized):
            if number is not None and not 0 <= number <= MAX_BLOCK_NUMBER:
                raise OutOfRange(f"block number {number}")
    return heads
