import pytest

from gnomon.compare.envelope import Response, read
from gnomon.compare.exact import NotJson, TooDeep
from gnomon.compare.judge import Answer


@pytest.mark.parametrize(
    ("text", "rpc_id", "answer"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":1.0}', b"1", Answer(kind="result", fragment=b"1.0")),
        (b' {"result" : {"a": 1} , "id" : "x" } ', b'"x"', Answer(kind="result", fragment=b'{"a": 1}')),
        (b'{"id":1,"result":null}', b"1", Answer(kind="result", fragment=b"null")),
        (b'{"id":1,"result":1,"error":{"code":3}}', b"1", Answer(kind="error", fragment=b'{"code":3}')),
        (b'{"id":1,"result":1,"error":null}', b"1", Answer(kind="result", fragment=b"1")),
        (b'{"id":1,"error":null}', b"1", Answer(kind="error", fragment=b"null")),
        (b'{"id":1}', b"1", Answer()),
        (b"{}", b"", Answer()),
        (b'{"id":1,"result":1,"result":2}', b"1", Answer(kind="result", fragment=b"2")),
        (rb'{"id":1,"result":"\ud800"}', b"1", Answer(kind="result", fragment=rb'"\ud800"')),
        (b'{"id":1, "x":[] , "result" : "\xff" }', b"1", Answer(kind="result", fragment=b'"\xff"')),
    ],
)
def test_a_response_is_read_with_the_raw_text_of_its_answer(text: bytes, rpc_id: bytes, answer: Answer) -> None:
    """Error before result unless it is null; bytes that are no UTF-8 and half surrogate pairs pass through."""

    assert read(text) == Response(rpc_id, answer)


def test_a_batch_is_a_list_of_responses() -> None:
    """In their order, broken texts included."""
    found = read(b'[{"id":2,"result":"\xff"} , {"id":1,"result":1}]')

    assert isinstance(found, list)
    assert [response.rpc_id for response in found] == [b"2", b"1"]
    assert read(b"[]") == []


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"1",
        b"<html>",
        b'{"id":1',
        b'{"result":"\xff"',
        b'{"id":1}x',
        b"[1]",
        b"[",
        b'{"result":"\xff"}x',
        b"{\xff}",
        b'["\xff"',
        b'["\xff"]',
    ],
)
def test_what_is_no_response_is_one_named_error(text: bytes) -> None:
    """HTML, cut texts, trailing bytes and bare values."""
    with pytest.raises(NotJson):
        read(text)


def test_nesting_past_the_limit_is_one_named_error() -> None:
    """In a response and in a batch."""
    deep = b"[" * 5000 + b"]" * 5000
    for text in (b'{"result":' + deep + b"}", b'[{"result":' + deep + b"}]", b'{"x":"\xff","result":' + deep + b"}"):
        with pytest.raises(TooDeep):
            read(text)
