"""
What a client asked: one JSON-RPC request, a batch, or something that is neither.

A request's bytes go to upstreams as they came, so the proxy must read them as an upstream would. Members beyond the
four of the standard are let through unless they differ from one of the four by case only: some servers match names
without case, and would then see another method than the one that was checked. For the same reason a member that comes
twice is refused: some servers take the first, some the last.
"""

import json

import msgspec
from msgspec import Raw, Struct

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
LIMIT_EXCEEDED = -32005
"""Source: EIP-1474, error codes."""

NULL = b"null"
METHOD_CHARACTERS = 256
"""Longest name of a method: names are kept as keys."""
_MEMBERS = frozenset(("jsonrpc", "id", "method", "params"))


class _Shape(Struct, forbid_unknown_fields=True, gc=False):
    method: str
    id: Raw = Raw(b"")
    params: Raw = Raw(b"")
    jsonrpc: Raw = Raw(b"")


class Refusal(Exception):
    """The request cannot be served; `code` and `message` are for the client, `rpc_id` is its id where readable."""

    def __init__(self, code: int, message: str, rpc_id: bytes = NULL) -> None:
        super().__init__(message)
        self.code, self.message, self.rpc_id = code, message, rpc_id


_decode = msgspec.json.Decoder(_Shape).decode
_decode_any = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_batch = msgspec.json.Decoder(list[Raw]).decode
_decode_raw = msgspec.json.Decoder(Raw).decode
_decode_string = msgspec.json.Decoder(str).decode


def parse(body: bytes) -> tuple[str, bytes, bytes]:
    """
    Return the method, the id and the params of the request in `body`; the last two as raw JSON, empty where absent.

    A request without an id is a notification.

    Raises:
        Refusal: the body is no JSON (-32700), no request (-32600), or its params are neither list nor object (-32602).
    """
    try:
        shape = _decode(body)
    except msgspec.ValidationError:
        shape = _parse_unusual(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(PARSE_ERROR, f"parse error: {error}") from error
    method, rpc_id, params = shape.method, bytes(shape.id), bytes(shape.params)
    n_more = len(body) - len(method) - len(rpc_id) - len(params) - _USUAL_BYTES
    if (
        (n_more and (n_more != _SPACES or body.count(b'"id"') != 1))
        or shape.jsonrpc != _VERSION
        or not (params and rpc_id and params[0] in b"[{" and rpc_id[0] in b'"-0123456789n')
        or len(method) > METHOD_CHARACTERS
    ):
        _check(shape, body, rpc_id, params)
    if not body.isascii():
        _check_text(body)
    return method, rpc_id, params


_VERSION = Raw(b'"2.0"')
_USUAL_BYTES = len(b'{"jsonrpc":"2.0","id":,"method":"","params":}')
"""The usual form has the four members once and nothing else: to the byte, nothing is repeated or hidden in it."""
_SPACES = 7
"""
The other usual form (Python's) has a space behind each colon and comma. So many bytes have no room for a second
`method`, `params` or `jsonrpc`, escaped or not; for a second `id` they just have.
"""


def _check(shape: _Shape, body: bytes, rpc_id: bytes, params: bytes) -> None:
    """Look closer at a request in another than the usual form."""
    usable = _usable_id(shape.id)
    if (
        body.count(b'"method"') > 1
        or body.count(b'"params"') > 1
        or body.count(b'"id"') > 1
        or body.count(b'"jsonrpc"') > 1
        or b"\\u" in body
    ):
        _refuse_repeated(body, shape.id)
    if len(shape.method) > METHOD_CHARACTERS:
        raise Refusal(INVALID_REQUEST, "invalid request: the method's name is too long", usable)
    if params and params[0] not in b"[{" and params != NULL:
        raise Refusal(INVALID_PARAMS, "invalid params: an array or an object is needed", usable)
    if rpc_id and rpc_id[0] in b"[{tf":
        raise Refusal(INVALID_REQUEST, "invalid request: id must be a string, a number or null")
    if bytes(shape.jsonrpc).strip() not in (b'"2.0"', b""):
        raise Refusal(INVALID_REQUEST, 'invalid request: jsonrpc must be "2.0"', usable)


def _check_json(body: bytes) -> None:
    try:
        _decode_raw(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(PARSE_ERROR, f"parse error: {error}") from error


def _check_text(body: bytes) -> None:
    """Refuse bytes that are no UTF-8 within strings, which the decoder passes over: upstreams would fail on them."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise Refusal(PARSE_ERROR, f"parse error: {error}") from error


def is_batch(body: bytes) -> bool:
    """Say whether the first character that is no white space opens a list."""
    return body[:1] == b"[" or body.lstrip(b" \t\r\n")[:1] == b"["


def split_batch(body: bytes, limit: int) -> list[bytes]:
    """
    Return the elements of a batch, each with its own bytes.

    Raises:
        Refusal: no JSON (-32700), an empty batch, or one of more than `limit` elements (-32600).
    """
    try:
        elements = _decode_batch(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(PARSE_ERROR, f"parse error: {error}") from error
    if not elements:
        raise Refusal(INVALID_REQUEST, "invalid request: empty batch")
    if len(elements) > limit:
        raise Refusal(INVALID_REQUEST, f"invalid request: a batch of {len(elements)} exceeds the limit of {limit}")
    return [bytes(element) for element in elements]


def with_id(body: bytes, rpc_id: bytes) -> bytes:
    """Return a notification's bytes with an id put in front of its first member: upstreams answer only those."""
    at = body.index(b"{") + 1
    return b"%b%b%b" % (body[:at], b'"id":' + rpc_id + b",", body[at:])


def error_body(code: int, message: str, rpc_id: bytes = NULL, details: object = None) -> bytes:
    """Return a JSON-RPC error answer of our own."""
    error: dict[str, object] = {"code": code, "message": message}
    if details is not None:
        error["data"] = details
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (rpc_id or NULL, msgspec.json.encode(error))


def _usable_id(rpc_id: Raw) -> bytes:
    raw = bytes(rpc_id)
    return raw if raw and raw[0] not in b"[{tf" else NULL


def _refuse_repeated(body: bytes, rpc_id: Raw) -> None:
    """Look at the members one by one; the caller has seen that the body is JSON."""
    try:
        members = json.loads(body.decode("utf-8", "replace"), object_pairs_hook=list, parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise Refusal(PARSE_ERROR, f"parse error: {error}") from error
    seen: set[str] = set()
    for name, _ in members:
        if name in seen:
            raise Refusal(INVALID_REQUEST, f"invalid request: member {name!r} comes twice", _usable_id(rpc_id))
        seen.add(name)


def _parse_unusual(body: bytes) -> _Shape:
    """Read what the strict shape refused: more members, or the wrong type of one."""
    try:
        members = _decode_any(body)
    except msgspec.ValidationError as error:
        _check_json(body)  # the decoder stops at what it did not want, before it has seen the rest
        raise Refusal(INVALID_REQUEST, "invalid request: an object is needed") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(PARSE_ERROR, f"parse error: {error}") from error
    rpc_id = _usable_id(members.get("id", Raw(b"")))
    for name in members:
        if name not in _MEMBERS and name.casefold() in _MEMBERS:  # casefold: to Go, `ſ` is an s
            raise Refusal(INVALID_REQUEST, f"invalid request: member {name!r} looks like {name.casefold()!r}", rpc_id)
    if "method" not in members:
        raise Refusal(INVALID_REQUEST, "invalid request: method is missing", rpc_id)
    try:
        method = _decode_string(members["method"])
    except msgspec.ValidationError as error:
        raise Refusal(INVALID_REQUEST, "invalid request: method must be a string", rpc_id) from error
    blank = Raw(b"")
    return _Shape(method, members.get("id", blank), members.get("params", blank), members.get("jsonrpc", blank))
