"""Heads of responses: where the body ends, and whether the connection is of any further use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.response_heads import MEMO_BYTES, MEMO_LIMIT, MalformedHead, read_head


def head(*lines: str, status: str = "HTTP/1.1 200 OK") -> bytes:
    return "\r\n".join((status, *lines, "", "")).encode("latin-1")


GOOD: dict[str, tuple[bytes, tuple[int, int, bool, bool]]] = {
    "a length": (head("Content-Length: 3"), (200, 3, False, True)),
    "a length of zero": (head("content-length:0"), (200, 0, False, True)),
    "chunked": (head("Transfer-Encoding: Chunked"), (200, -1, True, True)),
    "until close": (head(), (200, -1, False, False)),
    "a coding that is no chunking": (head("Transfer-Encoding: gzip"), (200, -1, False, False)),
    "to be closed": (head("Content-Length: 3", "Connection: close"), (200, 3, False, False)),
    "HTTP/1.0": (head("Content-Length: 3", status="HTTP/1.0 200 OK"), (200, 3, False, False)),
    "HTTP/1.0 that stays": (
        head("Content-Length: 3", "Connection: keep-alive", status="HTTP/1.0 200 OK"),
        (200, 3, False, True),
    ),
    "no content": (head(status="HTTP/1.1 204 No Content"), (204, 0, False, True)),
    "informational": (head(status="HTTP/1.1 103 Early Hints"), (103, 0, False, True)),
    "no reason": (head("Content-Length: 3", status="HTTP/1.1 502 "), (502, 3, False, True)),
    "an offer to upgrade": (
        head("Content-Length: 3", "Upgrade: h2c", "Connection: Upgrade, Keep-Alive"),
        (200, 3, False, True),
    ),
}

BAD: dict[str, bytes] = {
    "nothing": b"\r\n\r\n",
    "a page": b"<html>\r\n\r\n",
    "a request": b"POST / HTTP/1.1\r\n\r\n",
    "two lengths": head("Content-Length: 3", "Content-Length: 4"),
    "a length and chunked": head("Content-Length: 3", "Transfer-Encoding: chunked"),
    "a length of nothing": head("Content-Length: "),
    "a negative length": head("Content-Length: -1"),
    "a length for Python only": head("Content-Length: 1_0"),
    "a length beyond all": head("Content-Length: 99999999999999999999999"),
    "a list of lengths": head("Content-Length: 3, 3"),
    "a header without colon": head("Content-Length"),
    "a switch of protocols": head("Upgrade: h2c", "Connection: Upgrade", status="HTTP/1.1 101 X"),
    "a switch to nothing": head(status="HTTP/1.1 101 X"),
}


@pytest.mark.parametrize("name", GOOD)
def test_where_the_body_ends(name: str) -> None:
    """Status, length (-1: its own end tells), chunked, keep."""
    raw, expected = GOOD[name]
    got = read_head(raw)

    assert (got.status, got.length, got.is_chunked, got.keep) == expected


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_head(name: str) -> None:
    """Two readings of one head are none: it is refused, each time it comes."""
    for _ in range(2):
        with pytest.raises(MalformedHead):
            read_head(BAD[name])


@pytest.mark.parametrize(
    ("value", "expected"), [("gzip", "gzip"), (" GZIP ", "gzip"), ("identity", ""), ("br", "br"), ("", "")]
)
def test_the_coding_is_named_in_lower_case(value: str, expected: str) -> None:
    """`identity` is none."""
    assert read_head(head(f"Content-Encoding: {value}", "Content-Length: 1")).coding == expected


def test_names_are_lower_case_and_the_last_value_counts() -> None:
    """As the rest of the proxy asks for them."""
    assert read_head(head("X-A: 1", "x-a: 2", "Content-Length: 0")).headers["x-a"] == "2"


def test_a_head_seen_again_is_the_same_object() -> None:
    """The memory is bounded: after it was cleared, a head is parsed anew and says the same."""
    raw = head("Content-Length: 7", "X-Once: yes")
    first = read_head(raw)
    assert read_head(raw) is first
    for i in range(MEMO_LIMIT):
        read_head(head(f"Content-Length: {i}", "X-Filler: yes"))

    again = read_head(raw)
    assert again is not first
    assert again.length == first.length


def test_a_long_head_is_read_each_time() -> None:
    """An upstream could make up thousands of them, 64 KiB each."""
    raw = head("Content-Length: 7", f"X-Long: {'x' * MEMO_BYTES}")

    assert read_head(raw) is not read_head(raw)


@given(st.binary(max_size=100).map(lambda raw: raw + b"\r\n\r\n") | st.text("HTP/1. 20OK:\r\n", max_size=60).map(head))
def test_any_bytes_are_a_head_or_malformed(raw: bytes) -> None:
    """Nothing but `MalformedHead` leaves the parser."""
    try:
        read_head(raw)
    except MalformedHead:
        return
