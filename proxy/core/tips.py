"""
The newest block, three ways: above which nobody can have a block, what most primaries have, and `latest` written out.

    ceiling         the highest head that any upstream has reported, and only while every one of them is known
    majority        the freshest block that more than half of some upstreams have
    written_out     a request's `latest` replaced by a number, its other bytes as they came
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Raw

from gnomon.config.model import BlockBound
from gnomon.rpc.methods import BlockPath

_decode_list = msgspec.json.Decoder(list[Raw]).decode
_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.encode


def effective(latest: int | None, cap: BlockBound | None) -> int | None:
    """Return the newest block that an upstream serves: its head, or what its declared upper bound leaves of it."""
    if latest is None or cap is None:
        return latest
    if cap.exact_block is not None:
        return min(latest, cap.exact_block)
    if cap.latest_minus is not None:
        return max(0, latest - cap.latest_minus)
    return latest


def ceiling(heads: Iterable[int | None]) -> int | None:
    """Return the highest head; None where there is none, or any is unknown: that one may have anything."""
    highest: int | None = None
    for head in heads:
        if head is None:
            return None
        highest = head if highest is None else max(highest, head)
    return highest


def majority(heads: Sequence[int | None]) -> int | None:
    """Return the freshest block that more than half of the upstreams have; an unknown head has none."""
    known = sorted((head for head in heads if head is not None), reverse=True)
    needed = len(heads) // 2 + 1
    return known[needed - 1] if len(known) >= needed else None


def written_out(paths: Sequence[BlockPath], params: bytes, number: int) -> bytes | None:
    """
    Return params in which `latest` is a number; None where the tag stands at none of the positions.

    Args:
        paths: where the method has its block: an index, or an index and a member's name.
        params: raw JSON.
    """
    try:
        elements = _decode_list(params)
    except ValueError:
        return None
    is_changed = False
    quantity = Raw(b'"0x%x"' % number)
    for index, *member in paths:
        if not isinstance(index, int) or index >= len(elements):
            continue
        if not member:
            if bytes(elements[index]) == _LATEST:
                elements[index] = quantity
                is_changed = True
            continue
        try:
            inner = _decode_object(elements[index])
        except ValueError:
            continue
        name = str(member[0])
        if bytes(inner.get(name, b"")) == _LATEST:
            inner[name] = quantity
            elements[index] = Raw(_encode(inner))
            is_changed = True
    return _encode(elements) if is_changed else None


_LATEST = b'"latest"'
