"""
Heads of upstream responses: parsed by llhttp, remembered by their bytes.

Most upstreams repeat a head within the second (only `Date` moves), so the look-up usually replaces the parse.
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import httptools

MEMO_LIMIT = 2048
MEMO_BYTES = 4096
"""Longest head that is remembered."""


RETRY_AFTER_SECONDS = 3600.0
"""Longest wait that an upstream can ask for."""


def retry_after(headers: Mapping[str, str], now: float) -> float:
    """
    Return the seconds to wait that `Retry-After` asks for, 0 without one that can be read.

    Args:
        headers: by lower-case name.
        now: seconds since 1970, for the header's form as a date.
    """
    said = headers.get("retry-after", "").strip()
    if not said:
        return 0.0
    try:
        seconds = float(said) if said.isdigit() else parsedate_to_datetime(said).timestamp() - now
    except (ValueError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), RETRY_AFTER_SECONDS)


class MalformedHead(ValueError):
    """The upstream's response head is no HTTP."""


class ResponseHead:
    """
    length     bytes of the body; -1 where chunked or ended by closing
    keep       the connection may be used again
    headers    lower-case name → value (the last one of a name)
    """

    __slots__ = ("coding", "headers", "is_chunked", "keep", "length", "status")

    def __init__(self, status: int, length: int, is_chunked: bool, keep: bool, headers: dict[str, str]) -> None:
        self.status = status
        self.length = length
        self.is_chunked = is_chunked
        self.keep = keep
        self.headers = headers
        self.coding = headers.get("content-encoding", "").strip().lower()
        if self.coding == "identity":
            self.coding = ""


class _Collector:
    __slots__ = ("complete", "headers", "keep", "parser", "status")

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = False
        self.keep = False
        self.status = 0
        self.parser = httptools.HttpResponseParser(self)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.complete = True
        self.status = self.parser.get_status_code()
        self.keep = self.parser.should_keep_alive()


_memo: dict[bytes, ResponseHead] = {}


def read_head(raw: bytes) -> ResponseHead:
    """
    Return the head in `raw` (from the status line to the empty line, both included).

    Raises:
        MalformedHead: it is no HTTP/1.x response head.
    """
    head = _memo.get(raw)
    if head is None:
        head = _parse(raw)
        if len(raw) <= MEMO_BYTES:
            if len(_memo) >= MEMO_LIMIT:
                _memo.clear()
            _memo[raw] = head
    return head


def _parse(raw: bytes) -> ResponseHead:
    collector = _Collector()
    try:
        collector.parser.feed_data(raw)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
        raise MalformedHead(str(error)) from error
    if not collector.complete:
        raise MalformedHead("the head does not end")
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in collector.headers}
    transfer = headers.get("transfer-encoding", "").lower()
    status = collector.status
    if status < 200 or status in (204, 304):
        length = 0
    elif transfer:
        length = -1
    elif "content-length" in headers:
        length = int(headers["content-length"])
    else:
        length = -1
    until_close = length < 0 and not transfer.endswith("chunked")
    return ResponseHead(status, length, transfer.endswith("chunked"), collector.keep and not until_close, headers)
