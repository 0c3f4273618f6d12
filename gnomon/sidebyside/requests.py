"""
Questions from a file: JSON lines, or a recording of traffic (HAR, GoReplay), plain or gzip.

A line is a `{"method": …, "params": […]}`, a whole JSON-RPC request, or a batch of them:

    {"method": "eth_getBalance", "params": ["0x…", "0x10"]}
    {"jsonrpc": "2.0", "id": 7, "method": "eth_chainId", "params": []}

A file that is one JSON value, a request or a list of them, may be spread over lines.

Writes are left out, and so are questions about something that one node keeps (filters, subscriptions). Of a recording
each different question is asked once, and what in it is no JSON-RPC is counted and passed over.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from gnomon.rpc import methods
from gnomon.sidebyside import recordings
from gnomon.sidebyside.errors import RequestsUnreadable
from gnomon.sidebyside.sampling import Ask


class _Line(msgspec.Struct):
    method: str
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decode = msgspec.json.Decoder(_Line | list[_Line]).decode


@dataclass(frozen=True, slots=True)
class Requests:
    """The questions of a file, in its order."""

    asks: tuple[Ask, ...]
    left_out: tuple[str, ...]
    """Methods of the requests that are never sent to two endpoints."""
    n_repeated: int = 0
    """Questions of a recording that were asked before, to the byte."""
    n_other: int = 0
    """Bodies of a recording that are no JSON-RPC."""


def parse(content: bytes, name: str) -> Requests:
    """
    Return the questions in a file.

    Args:
        content: of the file; empty lines are skipped.
        name: of the file, for messages.

    Raises:
        RequestsUnreadable: a line is no request, or a recording cannot be read.
    """
    content = recordings.unpacked(content, name)
    if recordings.is_har(content):
        return _from_recording(recordings.har_bodies(content, name))
    if recordings.is_goreplay(content):
        return _from_recording(recordings.goreplay_bodies(content))
    return _from_lines(content, name)


def _from_lines(content: bytes, name: str) -> Requests:
    content = content.removeprefix(b"\xef\xbb\xbf")
    lines: list[_Line] = []
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Requests(*_sorted_out(_requests(content)))  # one request or batch, over however many lines
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            lines += _requests(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise RequestsUnreadable(
                f"{name}, line {number}: not a JSON-RPC request ({exc}); a line looks like "
                '{"method": "eth_getBalance", "params": ["0x…", "0x10"]}'
            ) from exc
    return Requests(*_sorted_out(lines))


def _from_recording(bodies: Iterable[bytes]) -> Requests:
    requests: dict[tuple[str, bytes], _Line] = {}
    n = n_other = 0
    for body in bodies:
        try:
            found = _requests(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            n_other += 1
            continue
        n += len(found)
        for request in found:
            requests.setdefault((request.method, _params(request)), request)
    asks, left_out = _sorted_out(requests.values())
    return Requests(asks, left_out, n - len(requests), n_other)


def _requests(body: bytes) -> list[_Line]:
    decoded = _decode(body)
    return decoded if isinstance(decoded, list) else [decoded]


def _params(request: _Line) -> bytes:
    return b"[]" if isinstance(request.params, msgspec.UnsetType) else bytes(request.params)


def _sorted_out(requests: Iterable[_Line]) -> tuple[tuple[Ask, ...], tuple[str, ...]]:
    """Return what two endpoints can be asked, and the methods of the rest."""
    asks: list[Ask] = []
    left_out: list[str] = []
    for request in requests:
        method = methods.lookup(request.method)
        if method.is_write or method.is_stateful:
            left_out.append(request.method)
        else:
            asks.append(Ask(request.method, _params(request), request.method))
    return tuple(asks), tuple(left_out)
