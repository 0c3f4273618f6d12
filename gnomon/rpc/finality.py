"""
Is what was asked final?

`finalized` a fixed block at or below the finalised head, or the same for ever · `unfinalized` a fixed block above it ·
`realtime` of the newest block, or any tag · `unknown` no block is named, or no head is known.

Source: eRPC, erpc/networks.go `GetFinality` at 2f9eceff, with these quirks mended: block 0 is final; a range up to a
tag is realtime; no head is never read as 0.
"""

from typing import Literal

from gnomon.rpc.blocks import BlockRef
from gnomon.rpc.methods import Method

Finality = Literal["finalized", "unfinalized", "realtime", "unknown"]


def finality(
    method: Method,
    ref: BlockRef,
    response_block: int | None,
    latest: int | None,
    finalized: int | None,
) -> Finality:
    """
    Return the finality of one request.

    Args:
        method: its entry in the method table.
        ref: the block the request names.
        response_block: the block the answer names; used where the request names no number.
        latest, finalized: heads known; None = unknown. With only `latest` known, a block is final for nobody yet, but
            block 0 is.
    """
    if method.finality is not None:
        return method.finality
    if ref.tag:
        return "realtime"
    number = ref.number if ref.number is not None else response_block
    if number is None:
        return "unknown"
    if finalized is None:
        return "finalized" if number == 0 and latest is not None else "unknown"
    return "finalized" if number <= finalized else "unfinalized"
