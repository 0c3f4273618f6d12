"""Requests as clients send them, the malformed and the cunning included."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.core import requests
from proxy.core.requests import Refusal, parse, split_batch

PARSE, INVALID, PARAMS = -32700, -32600, -32602

ACCEPTED: dict[str, tuple[bytes, tuple[str, bytes, bytes]]] = {
    "plain": (b'{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}', ("m", b"1", b"[1]")),
    "any order and white space": (b' { "method" : "m" , "params" : [ 1 ] , "id" : 1 }\n', ("m", b"1", b"[ 1 ]")),
    "a string id": (b'{"id":"a\\"b","method":"m"}', ("m", b'"a\\"b"', b"")),
    "an id beyond any float": (b'{"id":123456789012345678901234567890,"method":"m"}', ("m", b"1234567890" * 3, b"")),
    "an id of null": (b'{"id":null,"method":"m"}', ("m", b"null", b"")),
    "a fraction keeps its spelling": (b'{"id":1.50,"method":"m"}', ("m", b"1.50", b"")),
    "a notification": (b'{"jsonrpc":"2.0","method":"m","params":[]}', ("m", b"", b"[]")),
    "spread out as Python does": (b'{"jsonrpc": "2.0", "method": "m", "params": [1], "id": 1}', ("m", b"1", b"[1]")),
    "text beyond ASCII": ('{"id":1,"method":"m","params":["é"]}'.encode(), ("m", b"1", b'["\xc3\xa9"]')),
    "params by name": (b'{"id":1,"method":"m","params":{"a":1}}', ("m", b"1", b'{"a":1}')),
    "params of null": (b'{"id":1,"method":"m","params":null}', ("m", b"1", b"null")),
    "no version": (b'{"id":1,"method":"m"}', ("m", b"1", b"")),
    "a member of nobody's": (b'{"id":1,"method":"m","networkId":"evm:1"}', ("m", b"1", b"")),
    "an inner member called method": (b'{"id":1,"method":"m","params":{"method":"n"}}', ("m", b"1", b'{"method":"n"}')),
    "an escaped text in params": (b'{"id":1,"method":"m","params":["\\u0041"]}', ("m", b"1", b'["\\u0041"]')),
    "the longest name": (b'{"id":1,"method":"%b"}' % (b"m" * 256), ("m" * 256, b"1", b"")),
}

REFUSED: dict[str, tuple[bytes, int, bytes]] = {
    "nothing": (b"", PARSE, b"null"),
    "white space": (b"  ", PARSE, b"null"),
    "no JSON": (b"<html>", PARSE, b"null"),
    "cut short": (b'{"id":1,"method":"m"', PARSE, b"null"),
    "two values": (b'{"id":1,"method":"m"}{}', PARSE, b"null"),
    "not UTF-8": (b'{"id":1,"method":"\xff"}', PARSE, b"null"),
    "params that are not UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"m","params":["\xff"]}', PARSE, b"null"),
    "an id that is not UTF-8": (b'{"jsonrpc":"2.0","id":"\xc3(","method":"m","params":[]}', PARSE, b"null"),
    "a text, then more": (b'"id":1,"method":"m"}', PARSE, b"null"),
    "a number, then more": (b"5 {}", PARSE, b"null"),
    "too deep": (b'{"id":1,"method":"m","params":' + b"[" * 100_000, PARSE, b"null"),
    "a number": (b"5", INVALID, b"null"),
    "null": (b"null", INVALID, b"null"),
    "no method": (b'{"id":7,"params":[]}', INVALID, b"7"),
    "a method of another type": (b'{"id":7,"method":1}', INVALID, b"7"),
    "a method of null": (b'{"id":7,"method":null}', INVALID, b"7"),
    "an endless method": (b'{"id":7,"method":"%b"}' % (b"m" * 257), INVALID, b"7"),
    "params of a text": (b'{"id":7,"method":"m","params":"x"}', PARAMS, b"7"),
    "params of a number": (b'{"id":7,"method":"m","params":0}', PARAMS, b"7"),
    "params of false": (b'{"id":7,"method":"m","params":false}', PARAMS, b"7"),
    "an id of a list": (b'{"id":[1],"method":"m"}', INVALID, b"null"),
    "an id of an object": (b'{"id":{},"method":"m"}', INVALID, b"null"),
    "an id of true": (b'{"id":true,"method":"m"}', INVALID, b"null"),
    "version 1.0": (b'{"jsonrpc":"1.0","id":7,"method":"m"}', INVALID, b"7"),
    "a version of a number": (b'{"jsonrpc":2.0,"id":7,"method":"m"}', INVALID, b"7"),
    "smuggled by case": (b'{"id":7,"method":"eth_call","Method":"eth_sendRawTransaction"}', INVALID, b"7"),
    "smuggled params": (b'{"id":7,"method":"m","PARAMS":[1]}', INVALID, b"7"),
    "smuggled by a long s": ('{"id":7,"method":"m","paramſ":[1]}'.encode(), INVALID, b"7"),
    "method twice": (b'{"id":7,"method":"eth_sendRawTransaction","method":"eth_call"}', INVALID, b"7"),
    "method twice, escaped": (b'{"id":7,"m\\u0065thod":"eth_sendRaw","method":"eth_call"}', INVALID, b"7"),
    "method twice, as long as usual": (b'{"method":"abc", "id":7,"method":"eth_x","params":[]}', INVALID, b"7"),
    "id twice": (b'{"jsonrpc":"2.0","id":6,"id":7,"method":"m","params":[]}', INVALID, b"7"),
    "version twice": (b'{"jsonrpc":"1.0","jsonrpc":"2.0","id":7,"method":"m","params":[]}', INVALID, b"7"),
    "params twice": (b'{"id":7,"method":"m","params":[1],"params":[2]}', INVALID, b"7"),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_requests_keep_their_bytes(name: str) -> None:
    """Method, id and params come out as they were written."""
    body, expected = ACCEPTED[name]

    assert parse(body) == expected


@pytest.mark.parametrize("name", REFUSED)
def test_refused_requests_get_the_standards_code_and_their_id(name: str) -> None:
    """What is no request is refused by code, under its id where that can be read."""
    body, code, rpc_id = REFUSED[name]
    with pytest.raises(Refusal) as caught:
        parse(body)

    assert (caught.value.code, caught.value.rpc_id) == (code, rpc_id)


@given(st.binary(max_size=80) | st.text(max_size=60).map(str.encode))
@example(b'{"method":"a","method":"b\\u0000"}')
@example(b"\xef\xbb\xbf{}")
def test_any_bytes_are_accepted_or_refused(body: bytes) -> None:
    """Nothing but a `Refusal` ever leaves the parser."""
    try:
        outcome: object = parse(body)[0]
    except Refusal as refusal:
        outcome = json.loads(requests.error_body(refusal.code, refusal.message, refusal.rpc_id))["error"]["code"]

    assert isinstance(outcome, str) or outcome in (-32700, -32600, -32602)


@pytest.mark.parametrize(
    ("body", "expected"),
    [(b"[]", True), (b" \r\n\t[1]", True), (b"{}", False), (b"", False), (b' {"a":[]}', False)],
)
def test_a_batch_is_known_by_its_first_character(body: bytes, expected: bool) -> None:
    """White space in front does not hide it."""
    assert requests.is_batch(body) is expected


def test_a_batch_keeps_each_elements_bytes() -> None:
    """Elements that are no requests come along: each is judged by itself."""
    assert split_batch(b' [ {"id" : 1} ,2,null,[3] ]', 10) == [b'{"id" : 1}', b"2", b"null", b"[3]"]


@pytest.mark.parametrize(
    ("body", "limit", "code"),
    [
        (b"[]", 3, INVALID),
        (b"[1,2,3,4]", 3, INVALID),
        (b"[1,2", 3, PARSE),
        (b"[1]]", 3, PARSE),
        (b"[" * 100_000, 3, PARSE),
    ],
    ids=["empty", "limit + 1", "cut short", "a tail", "too deep"],
)
def test_a_bad_batch_is_refused_whole(body: bytes, limit: int, code: int) -> None:
    """An empty batch, one too long, and one that is no JSON."""
    with pytest.raises(Refusal) as caught:
        split_batch(body, limit)

    assert caught.value.code == code


def test_a_batch_of_the_limit_is_taken() -> None:
    """The limit itself is allowed."""
    assert len(split_batch(b"[1,2,3]", 3)) == 3


def test_a_notification_gets_an_id_for_the_upstream() -> None:
    """The rest of its bytes stays."""
    sent = requests.with_id(b' {"method":"m","params":[{}]}', b'"g"')

    assert sent == b' {"id":"g","method":"m","params":[{}]}'


def test_our_own_errors_are_json_with_the_clients_id() -> None:
    """Texts are escaped; details are optional."""
    body = requests.error_body(-1, 'a "b"\n', b'"x"', {"k": 1})

    assert json.loads(body) == {
        "jsonrpc": "2.0",
        "id": "x",
        "error": {"code": -1, "message": 'a "b"\n', "data": {"k": 1}},
    }
    assert json.loads(requests.error_body(-1, "m"))["id"] is None
