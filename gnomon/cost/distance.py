"""
How far behind the head the block of a call lies, as vendors that charge more for old blocks look at it.

A range is judged by its lower end: `fromBlock`, else `toBlock`, else the newest block (Chainstack's rule for
`eth_getLogs`, books/chainstack.yaml c1).
"""

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from gnomon.rpc.blocks import BlockRef, parse_reference
from gnomon.rpc.methods import Method

_filters = Decoder(list[dict[str, object] | Raw]).decode


def blocks_behind(method: Method, ref: BlockRef, params: bytes | Raw, latest: int | None) -> int | None:
    """
    Return the distance in blocks, 0 for the newest; None where it cannot be known.

    Args:
        method: its entry in the method table.
        ref: the block the request names (`gnomon.rpc.blocks.request_block`).
        params: the raw parameters.
        latest: the network's head, None = unknown.
    """
    if method.is_range:
        ref = _lower_end(params, ref)
    if ref.number is None:
        if ref.tag == "earliest":
            return latest
        return 0 if ref.is_moving else None
    return None if latest is None else max(latest - ref.number, 0)


def _lower_end(params: bytes | Raw, ref: BlockRef) -> BlockRef:
    try:
        elements = _filters(params)
    except (DecodeError, RecursionError):
        return ref
    filter_ = elements[0] if elements else None
    if not isinstance(filter_, dict):
        return ref
    for member in ("blockHash", "fromBlock", "toBlock"):
        if filter_.get(member) is not None:
            return parse_reference(filter_[member])
    return BlockRef(is_left_out=True)
