"""Questions out of recordings: HAR files and GoReplay's captures."""

import base64
import gzip
import json

import pytest

from gnomon.sidebyside.errors import RequestsUnreadable
from gnomon.sidebyside.requests import Requests, parse

SEPARATOR = "\n🐵🙈🙉\n"
BALANCE = '{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x1","0x10"]}'
AGAIN = BALANCE.replace('"id":1', '"id":2')
CHAIN = '{"jsonrpc":"2.0","id":3,"method":"eth_chainId"}'


def har(*entries: dict[str, object]) -> bytes:
    """Return a HAR file."""
    return json.dumps({"log": {"version": "1.2", "creator": {"name": "a browser"}, "entries": list(entries)}}).encode()


def posted(text: str, **more: str) -> dict[str, object]:
    """Return an entry of a HAR: a POST request and an answer."""
    body = {"mimeType": "application/json", "text": text, **more}
    return {"request": {"method": "POST", "url": "https://x", "postData": body}, "response": {"status": 200}}


def http(body: bytes, *headers: str) -> bytes:
    """Return a request as GoReplay writes it, behind its own line."""
    lines = ["POST / HTTP/1.1", "Host: x", *(headers or (f"Content-Length: {len(body)}",))]
    return b"1 a1b2c3 1700000000000000000 0\n" + "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def asked(requests: Requests) -> list[tuple[str, bytes]]:
    """Return methods and params."""
    return [(ask.method, ask.params) for ask in requests.asks]


def test_a_har_is_asked_in_its_order() -> None:
    """Bodies of POST requests, base64 undone, and what WebSockets sent; pages and pictures are passed over."""
    socket: dict[str, object] = {"request": {"method": "GET"}, "_webSocketMessages": [
        {"type": "send", "opcode": 1, "data": CHAIN}, {"type": "receive", "opcode": 1, "data": BALANCE},
    ]}  # fmt: skip
    page: dict[str, object] = {"request": {"method": "GET", "url": "https://x/logo.png"}}
    encoded = posted(base64.b64encode(b"[%b]" % BALANCE.encode()).decode(), encoding="base64")

    requests = parse(har(page, socket, encoded, posted("a=1&b=2")), "f.har")

    assert asked(requests) == [("eth_chainId", b"[]"), ("eth_getBalance", b'["0x1","0x10"]')]
    assert (requests.n_repeated, requests.n_other) == (0, 1)


def test_a_question_that_a_recording_repeats_is_asked_once() -> None:
    """Polling clients ask the same thing thousands of times; ids do not tell questions apart."""
    requests = parse(har(posted(BALANCE), posted(AGAIN), posted(f"[{BALANCE},{CHAIN}]")), "f.har")

    assert asked(requests) == [("eth_getBalance", b'["0x1","0x10"]'), ("eth_chainId", b"[]")]
    assert requests.n_repeated == 2


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_capture_of_goreplay_is_asked_in_its_order(is_packed: bool) -> None:
    """Requests only; chunked and gzip bodies are undone; what is no JSON-RPC is counted."""
    chunked = b"5\r\n%b\r\n%x;x=1\r\n%b\r\n0\r\n\r\n" % (CHAIN[:5].encode(), len(CHAIN) - 5, CHAIN[5:].encode())
    packed = gzip.compress(BALANCE.encode().replace(b"0x10", b"0x11"))
    parts = [
        http(BALANCE.encode()),
        b"2 a1b2c3 1700000000000000001 5\nHTTP/1.1 200 OK\r\n\r\n" + AGAIN.encode().replace(b"eth_", b"no_"),
        http(chunked, "Transfer-Encoding: chunked"),
        http(packed, "Content-Encoding: gzip", f"Content-Length: {len(packed)}"),
        b"1 a 1 0\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ]
    content = b"".join(part + SEPARATOR.encode() for part in parts)

    requests = parse(gzip.compress(content) if is_packed else content, "f.gor")

    assert asked(requests) == [
        ("eth_getBalance", b'["0x1","0x10"]'),
        ("eth_chainId", b"[]"),
        ("eth_getBalance", b'["0x1","0x11"]'),
    ]
    assert requests.n_other == 1


def test_writes_of_a_recording_are_never_asked() -> None:
    """They are named."""
    write = '{"method":"eth_sendRawTransaction","params":["0x1"],"id":1}'

    requests = parse(http(write.encode()) + SEPARATOR.encode() + http(CHAIN.encode()), "f.gor")

    assert asked(requests) == [("eth_chainId", b"[]")]
    assert requests.left_out == ("eth_sendRawTransaction",)


def test_a_damaged_gzip_file_is_refused() -> None:
    """With its name."""
    with pytest.raises(RequestsUnreadable, match=r"f.gz is gzip that cannot be undone: cut short"):
        parse(gzip.compress(BALANCE.encode())[:-9], "f.gz")
