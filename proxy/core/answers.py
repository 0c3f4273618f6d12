"""
What came back: one JSON-RPC answer with our id, or something that is none.

Small bodies are decoded whole (which proves that they are JSON). Of a large one only the envelope in front is read,
and its fragment is proved by digest: a fragment whose digest was proved lately is the same valid JSON value. Only a
large fragment that is new is walked to its end. So a body that repeats, as polled answers do, costs one hash.
"""

import re
import sys
from typing import Final

import msgspec
from msgspec import Raw, Struct
from xxhash import xxh3_128_hexdigest

from gnomon.rpc import emptiness, errors
from gnomon.rpc.errors import ErrorVerdict
from gnomon.rpc.methods import Method

RESULT, ERROR, NONE = "result", "error", "none"

SMALL_BYTES: Final = 4096
_EMPTY_CAN_BE: Final = 64
"""A fragment longer than this is not empty, whatever white space is in it."""

_envelope = re.compile(
    rb'_\{_"jsonrpc"_:_"2\.0"_,_"id"_:_(-?\d{1,20}|"[^"\\]{0,200}"|null)_,_"result"_:_'.replace(b"_", rb"[ \t\r\n]*")
).match


_DEEPEST: Final = 10_000
"""Recursions allowed for a body that is nested deep, as traces of deep calls are; it takes a tenth of the stack."""
_half = re.compile(rb"\\u[dD]([89a-fA-F][0-9a-fA-F]{2})").sub
"""Escapes of halves of surrogate pairs; `\\uE` in place of `\\uD` makes characters of private use of them."""


class _Shape(Struct, gc=False):
    id: Raw = Raw(b"")
    result: Raw = Raw(b"")
    error: Raw = Raw(b"")


class _ErrorShape(Struct, gc=False):
    code: int | float | str | None = None
    message: object = ""
    data: object = None


_decode = msgspec.json.Decoder(_Shape).decode
_decode_error = msgspec.json.Decoder(_ErrorShape).decode
_decode_any = msgspec.json.Decoder().decode


class Digests(set[str]):
    """
    Digests of fragments seen lately, in two generations, so that their number is bounded.

    As a set it holds the younger generation; `knew` looks into the older one, and takes what it finds over. So the
    usual question, `digest in digests or digests.knew(digest)`, is one look-up.
    """

    def __init__(self, limit: int = 20_000) -> None:
        super().__init__()
        self._limit = limit
        self._old: set[str] = set()

    def knew(self, digest: str) -> bool:
        """Say whether the older generation has a digest."""
        if digest not in self._old:
            return False
        self.note(digest)
        return True

    def forget(self) -> None:
        """Forget all digests."""
        self.clear()
        self._old.clear()

    def note(self, digest: str) -> None:
        """Remember a digest."""
        self.add(digest)
        if len(self) >= self._limit:
            self._old = set(self)
            self.clear()


def quick_result(body: bytes, rpc_id: bytes, proved: Digests) -> tuple[bytes | memoryview, str] | None:
    """
    Return the raw result and its digest, where that is what a body plainly holds: our id, and a result not empty.

    None decides nothing: `read` tells what the body is.
    """
    prefix = b'{"jsonrpc":"2.0","id":%b,"result":' % rpc_id
    start = len(prefix)
    if not body.startswith(prefix):
        head = _envelope(body, 0, 512)
        if head is None or head[1] != rpc_id:
            return None
        start = head.end()
    end = len(body) - 1
    if body[end] != 0x7D:  # }
        while end > start and body[end] in b" \t\r\n":
            end -= 1
        if body[end] != 0x7D:
            return None
    n = end - start
    fragment: bytes | memoryview = body[start:end] if n <= SMALL_BYTES else memoryview(body)[start:end]
    if n < _EMPTY_CAN_BE and (n < 5 or body[start] != 0x22) and emptiness.is_emptyish(fragment):
        return None
    digest = xxh3_128_hexdigest(fragment)
    if digest not in proved and not proved.knew(digest):
        try:
            shape = _decode(body)
        except (ValueError, RecursionError):
            return None
        # The value begins where the fragment does: of the same length it is the fragment, with nothing behind it.
        if len(memoryview(shape.error)) or len(memoryview(shape.result)) != n:
            return None
        proved.note(digest)
    return fragment, digest


class Reply:
    """
    One upstream's answer to one call.

    kind        RESULT, ERROR, or NONE: there is no JSON-RPC answer, and `error_class` says why
    fragment    raw bytes of the result or error member (a view into the body); empty for NONE
    is_bound    the id in the body is ours, so the body can be served as it is
    is_empty    the result is one of null, "", "0x", [], {}
    is_miss     it is empty, and for this method that means "not found here"
    is_odd      it is JSON that events cannot carry, see `_decode_odd`
    verdict     for ERROR: what kind of error
    """

    __slots__ = (
        "body", "code", "digest_", "error_class", "fragment", "is_bound", "is_empty", "is_miss", "is_odd", "kind",
        "verdict",
    )  # fmt: skip

    def __init__(self, kind: str, body: bytes, fragment: "memoryview | Raw | bytes", error_class: str = "") -> None:
        self.kind = kind
        self.body = body
        self.fragment = fragment
        self.error_class = error_class
        self.is_bound = True
        self.is_empty = False
        self.is_miss = False
        self.is_odd = False
        self.code: int | None = None
        self.verdict: ErrorVerdict | None = None
        self.digest_ = ""

    @property
    def digest(self) -> str:
        """xxh3-128 of the fragment in hex, computed once."""
        if not self.digest_ and self.kind is not NONE:
            self.digest_ = xxh3_128_hexdigest(self.fragment)
        return self.digest_

    @property
    def is_answer(self) -> bool:
        """The chain's answer: a result that is no miss, or a verdict."""
        if self.kind is RESULT:
            return not self.is_miss
        return self.verdict is not None and self.verdict.is_verdict


def no_answer(error_class: str, body: bytes = b"") -> Reply:
    """Return the reply for a call that brought no JSON-RPC answer; `body` is what came instead, if anything."""
    return Reply(NONE, body, b"", error_class)


def read(body: bytes, rpc_id: bytes, method: Method, status: int, proved: Digests) -> Reply:
    """
    Return what an HTTP answer means.

    Args:
        body: the whole body, content codings undone.
        rpc_id: the id that was sent, as raw JSON.
        status: HTTP status; a whole JSON-RPC answer counts under any.
        proved: digests of fragments known to be valid JSON; new large ones are added.
    """
    found = quick_result(body, rpc_id, proved) if body else None
    if found is not None:
        reply = Reply(RESULT, body, found[0])
        reply.digest_ = found[1]
        return reply
    try:
        shape = _decode(body)
    except (ValueError, RecursionError) as error:
        plain = _half(rb"\\uE\1", body)
        if plain == body and isinstance(error, ValueError):
            return no_answer("parse" if status < 300 else errors.classify_status(status), body)
        try:
            shape = _decode_odd(plain)
        except (ValueError, RecursionError):
            return no_answer("parse" if status < 300 else errors.classify_status(status), body)
        reply = _read_shape(shape, body, method, status)
        reply.is_odd = True
        at = plain.find(bytes(reply.fragment))
        reply.fragment = memoryview(body)[at : at + len(reply.fragment)]
    else:
        reply = _read_shape(shape, body, method, status)
    if reply.kind is NONE:
        return reply
    if bytes(shape.id) != rpc_id and not _same_id(shape.id, rpc_id):
        if reply.kind is ERROR and bytes(shape.id) in (b"null", b""):
            reply.is_bound = False  # servers that could not read the id say null: the error is still for us
        else:
            return no_answer("parse", body)
    return reply


def _decode_odd(body: bytes) -> _Shape:
    """
    Read JSON that the usual decoder refuses: nested beyond its depth.

    After `_half` it also reads what has one half of a surrogate pair (`"\\ud83d"`), which is JSON too, and which users'
    texts hold. Clients get such an answer as it is. Consumers of events use the usual decoder: to them it does not go.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_DEEPEST)
    try:
        return _decode(body)
    finally:
        sys.setrecursionlimit(limit)


def _read_shape(shape: _Shape, body: bytes, method: Method, status: int) -> Reply:
    error = bytes(shape.error)
    if error and error.strip() != b"null":
        return _read_error(error, shape.error, body, method, status)
    fragment = memoryview(shape.result)
    n = len(fragment)
    if not n:
        return no_answer("parse" if status < 300 else errors.classify_status(status), body)
    reply = Reply(RESULT, body, fragment)
    if n < _EMPTY_CAN_BE and emptiness.is_emptyish(fragment):
        reply.is_empty = True
        reply.is_miss = emptiness.is_miss(method, fragment)
    return reply


def _read_error(error: bytes, fragment: Raw, body: bytes, method: Method, status: int) -> Reply:
    reply = Reply(ERROR, body, memoryview(fragment))
    code: int | None = None
    try:
        shape = _decode_error(error)
        if isinstance(shape.code, int):
            code = shape.code
        elif (isinstance(shape.code, float) and shape.code.is_integer()) or (
            isinstance(shape.code, str) and shape.code.lstrip("-").isdigit()
        ):
            code = int(shape.code)
        message = shape.message if isinstance(shape.message, str) else str(shape.message)
        details = shape.data
    except (ValueError, RecursionError):
        message, details = error.decode("utf-8", "replace"), None  # an error that is a bare text or a list
    if code is not None and not -(1 << 63) <= code < 1 << 63:
        code = None  # no code of anybody's; events and rows hold 64 bits
    reply.code = code
    reply.verdict = errors.classify(code, message, details, status, method.name)
    reply.error_class = reply.verdict.error_class
    return reply


def _same_id(got: Raw, sent: bytes) -> bool:
    """Compare ids by value: an upstream may write the same string or number in another way (1 for 1.0)."""
    if not bytes(got):
        return False
    try:
        a, b = _decode_any(got), _decode_any(sent)
    except (ValueError, RecursionError):
        return False
    return a == b and (type(a) is type(b) or {type(a), type(b)} == {int, float})
