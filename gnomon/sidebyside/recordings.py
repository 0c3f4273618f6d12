"""
Bodies of requests out of recordings of traffic: HAR files of browsers and proxies, and GoReplay's captures.

A HAR is one JSON document; the bodies of its POST requests are read, and the messages that its WebSockets sent.
A capture of GoReplay holds HTTP messages, each behind a line `TYPE ID TIME …` and before a line of three monkeys; those
of type 1 are the requests as clients sent them (2 and 3 are answers).
"""

import base64
import zlib
from collections.abc import Iterator

import msgspec

from gnomon.sidebyside.errors import RequestsUnreadable

_SEPARATOR = "\n🐵🙈🙉\n".encode()
_REQUEST = b"1"
_INFLATED_BYTES = 1 << 30
"""Largest compressed file or body that is unpacked."""


def unpacked(content: bytes, name: str) -> bytes:
    """
    Return the content of a file, gzip undone.

    Raises:
        RequestsUnreadable: it is cut short, damaged, or unpacks to more than 1 GiB.
    """
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return _inflate(content)
    except (zlib.error, EOFError, ValueError) as exc:
        raise RequestsUnreadable(f"{name} is gzip that cannot be undone: {exc}") from exc


def is_har(content: bytes) -> bool:
    """Say whether a file is a HAR."""
    head = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:4000]
    return head.startswith(b"{") and b'"log"' in head and (b'"entries"' in content or b'"creator"' in head)


def is_goreplay(content: bytes) -> bool:
    """Say whether a file is a capture of GoReplay."""
    first = content[:200].partition(b"\n")[0]
    return (first[:2] in (b"1 ", b"2 ", b"3 ") and len(first.split()) >= 3) or _SEPARATOR in content


class _PostData(msgspec.Struct):
    text: str = ""
    encoding: str = ""


class _HarRequest(msgspec.Struct):
    method: str = ""
    postData: _PostData | None = None


class _Message(msgspec.Struct):
    type: str = ""
    data: str = ""


class _Entry(msgspec.Struct):
    request: _HarRequest = msgspec.field(default_factory=_HarRequest)
    messages: list[_Message] = msgspec.field(default_factory=list, name="_webSocketMessages")


class _Log(msgspec.Struct):
    entries: list[_Entry]


class _Har(msgspec.Struct):
    log: _Log


def har_bodies(content: bytes, name: str) -> Iterator[bytes]:
    """
    Yield the bodies that a HAR's clients sent, in its order.

    Raises:
        RequestsUnreadable: the file is no HAR.
    """
    try:
        har = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"), type=_Har)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise RequestsUnreadable(f"{name} looks like a HAR file but cannot be read: {exc}") from exc
    for entry in har.log.entries:
        posted = entry.request.postData
        if posted is not None:
            yield _unencoded(posted.text, posted.encoding)
        for message in entry.messages:
            if message.type == "send":
                yield message.data.encode()


def _unencoded(text: str, encoding: str) -> bytes:
    if encoding != "base64":
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def goreplay_bodies(content: bytes) -> Iterator[bytes]:
    """Yield the bodies of a capture's requests, in its order; what is no whole HTTP request has an empty one."""
    for part in content.split(_SEPARATOR):
        line, _, message = part.lstrip(b"\n").partition(b"\n")
        if line.partition(b" ")[0] == _REQUEST:
            yield _http_body(message)


def _http_body(message: bytes) -> bytes:
    head, found, body = message.partition(b"\r\n\r\n")
    if not found:
        return b""
    headers = {}
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        headers[name.strip().lower()] = value.strip().lower()
    if headers.get(b"transfer-encoding", b"").endswith(b"chunked"):
        body = _unchunked(body)
    if headers.get(b"content-encoding") == b"gzip":
        try:
            body = _inflate(body)
        except (zlib.error, EOFError, ValueError):
            return b""
    return body


def _unchunked(body: bytes) -> bytes:
    """Join the chunks that are there: GoReplay may have cut the last."""
    parts: list[bytes] = []
    while True:
        line, found, body = body.partition(b"\r\n")
        try:
            n = int(line.partition(b";")[0], 16) if found else 0
        except ValueError:
            n = 0
        if n <= 0:
            return b"".join(parts)
        parts.append(body[:n])
        body = body[n + 2 :]


def _inflate(content: bytes) -> bytes:
    """
    Undo gzip, of several members too.

    Raises:
        zlib.error, EOFError: damaged, cut short.
        ValueError: larger than `_INFLATED_BYTES`.
    """
    out = bytearray()
    while content:
        member = zlib.decompressobj(31)
        out += member.decompress(content, _INFLATED_BYTES - len(out) + 1)
        if len(out) > _INFLATED_BYTES:
            raise ValueError("it unpacks to more than 1 GiB")
        if not member.eof:
            raise EOFError("cut short")
        content = member.unused_data.lstrip(b"\0")
    return bytes(out)
