"""
The two commonest events, filled into templates: a request that its first primary answered with a result, and a
mirrored call whose answer has the same bytes.

They hold the same members as the structs of `gnomon.events.contract`, members at their default left out; a test decodes
both and compares. A template costs a quarter of building and encoding the structs, which a proxy feels that writes an
event for every request. Everything rarer goes through the structs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gnomon.events.contract import VERSION

if TYPE_CHECKING:
    from gnomon.config.model import Upstream

PRIMARY: Final = (
    b'{"type":"primary_response","v":%d,'
    % VERSION
    + b'"event_id":"%b:%d","at":%d,%b"request_id":"%b",%b%b%b"rpc_id":%b,"request_bytes":%d,"response_bytes":%d,'
    b'"duration_us":%d,%b"answer":{"kind":"result","digest":"%b","n_bytes":%d%b%b},"attempts":[{%b,"duration_us":%d,'
    b'"request_bytes":%d,"response_bytes":%d,"status":200}],"heads":%b%b}'
)
"""
A `primary_response`. To fill in: proc, seq, at, members of who asked, request_id, member of the batch, of the method,
of the params, rpc_id, bytes of the request, of the response, duration, members of who served, digest, bytes of the
fragment, members of the block and the body (a comma before each), members of the attempt, duration and bytes again,
heads, shadows (a comma before).
"""

SAME: Final = (
    b'{"type":"shadow_response","v":%d,'
    % VERSION
    + b'"event_id":"%b:%d","at":%d,%b"request_id":"%b",%b%b"primary_duration_us":%d,%b'
    b'"primary":{"kind":"result","digest":"%b","n_bytes":%d%b},"shadow":{"kind":"result","digest":"%b","n_bytes":%d%b},'
    b'"attempt":{%b,"start_us":%d,"duration_us":%d,"request_bytes":%d,"response_bytes":%d,"status":200},"heads":%b,'
    b'"primary_heads":%b}'
)
"""
A `shadow_response` of equal bytes. To fill in: proc, seq, at, members of who asked, request_id, member of the method,
of the params, the primary's duration, members of the pair, digest, bytes and block twice, members of the attempt, its
start, duration and bytes, heads, the primary's heads.
"""


def text(value: object) -> bytes:
    """Return a value as JSON."""
    return msgspec.json.encode(value)


def members(**values: object) -> bytes:
    """Return `"name":value` pairs joined by commas, empty values left out."""
    return b",".join(b'"%b":%b' % (name.encode(), text(value)) for name, value in values.items() if value)


def closed(pairs: bytes) -> bytes:
    """Return pairs with a comma behind them, or nothing for none."""
    return pairs + b"," if pairs else b""


def attempt_of(upstream: Upstream, *, kind: str = "", cause: str = "") -> bytes:
    """Return the members of an attempt that the configuration knows."""
    tier = "" if upstream.tier == "primary" else upstream.tier
    return members(
        upstream=upstream.id, vendor=upstream.vendor, account=upstream.account, tier=tier, kind=kind, cause=cause
    )


def block_member(number: int | None) -> bytes:
    """Return the member of a response's block with a comma before it, or nothing where none is named."""
    return b"" if number is None else b',"response_block":%d' % number
