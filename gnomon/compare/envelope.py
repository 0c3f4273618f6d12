"""
JSON-RPC responses as whole texts: what they answer, and the raw text of it.

A response with both `result` and `error` is an error, unless the error is null (JSON-RPC 1.0 wrote that beside every
result). A text without either is no answer.
"""

import json
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from gnomon.compare.exact import NotJson, TooDeep
from gnomon.compare.judge import Answer

NO_ANSWER = Answer()


class Response(Struct, frozen=True):
    """One response of a text."""

    rpc_id: bytes
    """Raw text of its `id`; empty where it has none."""
    answer: Answer


class _Envelope(Struct):
    id: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_read_one = msgspec.json.Decoder(_Envelope).decode
_read_list = msgspec.json.Decoder(list[Raw]).decode


def read(text: bytes) -> Response | list[Response]:
    """
    Return the response that a text holds, or the responses of a batch.

    Raises:
        NotJson: the text is no JSON object and no list of them.
        TooDeep: it is nested too deep to be read.
    """
    if text.lstrip()[:1] == b"[":
        try:
            elements: list[bytes] = [bytes(element) for element in _read_list(text)]
        except (msgspec.DecodeError, UnicodeDecodeError):
            elements = list(_odd_elements(text))
        except RecursionError:
            raise TooDeep("nested too deep") from None
        return [read_one(element) for element in elements]
    return read_one(text)


def read_one(text: bytes) -> Response:
    """Return the one response that a text holds; raises as `read`."""
    try:
        envelope = _read_one(text)
        members = {
            name: bytes(value)
            for name, value in (("id", envelope.id), ("result", envelope.result), ("error", envelope.error))
            if not isinstance(value, UnsetType)
        }
    except RecursionError:
        raise TooDeep("nested too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        members = dict(members_of(text))
    error = members.get("error")
    rpc_id = members.get("id", b"")
    if error is not None and (error.strip() != b"null" or "result" not in members):
        return Response(rpc_id, Answer(kind="error", fragment=error))
    if "result" in members:
        return Response(rpc_id, Answer(kind="result", fragment=members["result"]))
    return Response(rpc_id, NO_ANSWER)


# --- texts that msgspec refuses: half surrogate pairs, bytes that are no UTF-8 ----------------------------------------

_scanner = json.JSONDecoder(strict=False)
_WHITE = " \t\r\n"


def members_of(text: bytes) -> Iterator[tuple[str, bytes]]:
    """Give the members of an object, each value as its raw text."""
    source = text.decode("utf-8", "surrogateescape")
    position = _expect(source, 0, "{")
    if _peek(source, position) == "}":
        _expect_end(source, _skip(source, position) + 1)
        return
    while True:
        position = _expect(source, position, '"')
        try:
            name, position = scanstring(source, position, False)
        except ValueError as error:
            raise NotJson(str(error)) from None
        position = _skip(source, _expect(source, position, ":"))
        end = _value_end(source, position)
        yield name, source[position:end].encode("utf-8", "surrogateescape")
        if _peek(source, end) == "}":
            _expect_end(source, _skip(source, end) + 1)
            return
        position = _expect(source, end, ",")


def _odd_elements(text: bytes) -> Iterator[bytes]:
    source = text.decode("utf-8", "surrogateescape")
    position = _expect(source, 0, "[")
    while True:
        position = _skip(source, position)
        end = _value_end(source, position)
        yield source[position:end].encode("utf-8", "surrogateescape")
        if _peek(source, end) == "]":
            _expect_end(source, _skip(source, end) + 1)
            return
        position = _expect(source, end, ",")


def _value_end(source: str, position: int) -> int:
    try:
        end: Any = _scanner.raw_decode(source, position)[1]
    except RecursionError:
        raise TooDeep("nested too deep") from None
    except ValueError as error:
        raise NotJson(str(error)) from None
    return int(end)


def _skip(source: str, position: int) -> int:
    while position < len(source) and source[position] in _WHITE:
        position += 1
    return position


def _peek(source: str, position: int) -> str:
    position = _skip(source, position)
    return source[position : position + 1]


def _expect(source: str, position: int, character: str) -> int:
    position = _skip(source, position)
    if source[position : position + 1] != character:
        raise NotJson(f"{character!r} is missing at character {position + 1}")
    return position + 1


def _expect_end(source: str, position: int) -> None:
    if _skip(source, position) != len(source):
        raise NotJson(f"more text after the value, at character {position + 1}")
