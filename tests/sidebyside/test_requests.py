"""Questions from a file."""

import pytest

from gnomon.sidebyside.errors import RequestsUnreadable
from gnomon.sidebyside.requests import parse


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("", []),
        ("\n \n", []),
        ('{"method":"eth_chainId"}', [("eth_chainId", b"[]")]),
        ('{"method":"eth_getBalance","params":["0x1", "0x2"]}\n', [("eth_getBalance", b'["0x1", "0x2"]')]),
        ('{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":1}}', [("x", b'{"a":1}')]),
        ('{"method":"a"}\r\n\r\n{"method":"b"}\r\n', [("a", b"[]"), ("b", b"[]")]),
        ('[{"method":"a"},{"method":"b","params":[1.0]}]', [("a", b"[]"), ("b", b"[1.0]")]),
    ],
    ids=["empty", "blank", "no-params", "params", "whole-request", "crlf", "batch"],
)
def test_reads(text: str, asked: list[tuple[str, bytes]]) -> None:
    """Parameters are kept byte for byte, in the order of the file."""
    assert asked == [(ask.method, ask.params) for ask in parse(text.encode(), "f").asks]


@pytest.mark.parametrize("method", ["eth_sendRawTransaction", "eth_newFilter", "eth_subscribe", "anvil_setBalance"])
def test_leaves_writes_and_node_state_out(method: str) -> None:
    """What changes a node, or lives in one, is never sent to two; it is named."""
    parsed = parse(f'{{"method":"{method}","params":[]}}\n{{"method":"eth_chainId"}}'.encode(), "f")

    assert [ask.method for ask in parsed.asks] == ["eth_chainId"]
    assert parsed.left_out == (method,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"method":"a"}\nnonsense', "f, line 2: not a JSON-RPC request"),
        ('{"params":[]}', "line 1"),
        ('{"method":1}', "line 1"),
        ('"eth_chainId"', "line 1"),
        ('{"log":{"version":"1.2","creator":{},"entries":7}}', "f looks like a HAR file but cannot be read"),
        ("\x1f\x8bnonsense", "f, line 1"),
    ],
    ids=["line", "no-method", "method-type", "string", "har", "no-gzip"],
)
def test_says_what_it_cannot_read(text: str, message: str) -> None:
    """The file and line, or the recording's kind, are named."""
    with pytest.raises(RequestsUnreadable, match=message):
        parse(text.encode(), "f")


@pytest.mark.parametrize(
    "content",
    [
        b'\xef\xbb\xbf{"method": "eth_chainId"}\r\n\r\n{"method": "eth_blockNumber"}\r\n',
        b'[\n {"method": "eth_chainId"},\n {"method": "eth_blockNumber", "params": []}\n]\n',
    ],
)
def test_files_of_editors_are_read(content: bytes) -> None:
    """With a byte order mark and Windows' line ends; a list spread over lines."""
    assert [ask.method for ask in parse(content, "x").asks] == ["eth_chainId", "eth_blockNumber"]
