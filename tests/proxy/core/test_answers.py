"""Answers as upstreams give them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.rpc.methods import lookup
from proxy.core.answers import ERROR, NONE, RESULT, SMALL_BYTES, Digests, Reply, no_answer, read

BLOCK, CALL = "eth_getBlockByHash", "eth_call"


def reply(body: bytes, rpc_id: bytes = b"1", method: str = BLOCK, status: int = 200) -> Reply:
    return read(body, rpc_id, lookup(method), status, Digests())


def shape(answer: Reply) -> str:
    """Return what a reply is, in words."""
    words = [answer.kind, answer.error_class]
    words += [word for word, holds in (("empty", answer.is_empty), ("miss", answer.is_miss)) if holds]
    if not answer.is_bound:
        words.append("unbound")
    return " ".join(word for word in words if word)


BODIES: dict[str, tuple[bytes, str]] = {
    "a result": (b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}', "result"),
    "a zero is no miss": (b'{"jsonrpc":"2.0","id":1,"result":"0x0"}', "result"),
    "null": (b'{"jsonrpc":"2.0","id":1,"result":null}', "result empty miss"),
    "null, spread out": (b'{\n "id" : 1 ,\n "result" : null\n}\n', "result empty miss"),
    "null beside an error of null": (b'{"id":1,"result":null,"error":null}', "result empty miss"),
    "a result beside an error of null": (b'{"id":1,"error":null,"result":1}', "result"),
    "an error and a result": (b'{"id":1,"result":1,"error":{"code":-32005,"message":"limit"}}', "error rate_limited"),
    "a revert": (b'{"id":1,"error":{"code":3,"message":"execution reverted","data":"0x"}}', "error revert"),
    "an error under null": (b'{"id":null,"error":{"code":-32005,"message":"limit"}}', "error rate_limited unbound"),
    "an error without id": (b'{"error":{"code":-32005,"message":"limit"}}', "error rate_limited unbound"),
    "a result under null": (b'{"id":null,"result":1}', "none parse"),
    "a result without id": (b'{"result":1}', "none parse"),
    "another id": (b'{"id":2,"result":1}', "none parse"),
    "an error under another id": (b'{"id":2,"error":{"code":-32005,"message":"limit"}}', "none parse"),
    "a text for a number": (b'{"id":"1","result":1}', "none parse"),
    "true for one": (b'{"id":true,"result":1}', "none parse"),
    "the id twice, then another": (b'{"id":1,"id":2,"result":1}', "none parse"),
    "a page": (b"<html><body>502</body></html>", "none parse"),
    "nothing": (b"", "none parse"),
    "cut short": (b'{"jsonrpc":"2.0","id":1,"result":{"a":', "none parse"),
    "two values": (b'{"id":1,"result":1}{"id":1,"result":2}', "none parse"),
    "a tail": (b'{"id":1,"result":1}]', "none parse"),
    "a batch": (b'[{"id":1,"result":1}]', "none parse"),
    "null itself": (b"null", "none parse"),
    "neither result nor error": (b'{"jsonrpc":"2.0","id":1}', "none parse"),
    "too deep": (b'{"id":1,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "none parse"),
    "an id too deep": (b'{"result":1,"id":' + b"[" * 900 + b"]" * 900 + b"}", "none parse"),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_what_a_body_means(name: str) -> None:
    """Each body is a result, an error, or no answer at all."""
    body, expected = BODIES[name]

    assert shape(reply(body)) == expected


def test_a_whole_answer_counts_under_any_status() -> None:
    """500 with a result is a result; 429 with a page is a rate limit."""
    assert shape(reply(b'{"id":1,"result":1}', status=500)) == "result"
    assert shape(reply(b"slow down", status=429)) == "none rate_limited"


def test_an_empty_call_is_a_value() -> None:
    """`0x` of a call is empty, and still the answer."""
    answer = reply(b'{"id":1,"result":"0x"}', method=CALL)

    assert (answer.is_empty, answer.is_miss, answer.is_answer) == (True, False, True)


@pytest.mark.parametrize(
    ("fragment", "kind"),
    [
        (b'{"calls":[' * 1500 + b'"\\ud83d"' + b"]}" * 1500, RESULT),
        (b'{"calls":[' * 1500 + b"]}" * 1499, NONE),
        (b"[" * 12_000 + b"]" * 12_000, NONE),
        (b'"half \\ud83d of it"', RESULT),
        (b'"\\uD83D\\ude00 and \\udE00"', RESULT),
        (b'"\\ud83d', NONE),
        (b'"\\ud83"', NONE),
    ],
    ids=["deep", "deep and cut short", "too deep", "half a pair", "a pair and a half", "not closed", "no escape"],
)
def test_answers_that_only_some_parsers_read_are_answers(fragment: bytes, kind: str) -> None:
    """A trace of deep calls, a text of a user: the client has asked for it, and may well read it."""
    answer = reply(b'{"jsonrpc":"2.0","id":1,"result":%b}' % fragment)

    assert answer.kind == kind
    assert kind is NONE or (bytes(answer.fragment), answer.is_odd) == (fragment, True)


def test_half_a_pair_is_not_taken_for_another_text() -> None:
    body = b'{"jsonrpc":"2.0","id":"\\u0041","error":null,"x":"\\ud83e","result":"\\ud83d"}'

    assert bytes(reply(body, b'"\\u0041"').fragment) == b'"\\ud83d"'


def test_an_error_with_half_a_pair_is_read_like_any() -> None:
    answer = reply(b'{"id":1,"error":{"code":3,"message":"execution reverted: \\ud83d"}}')

    assert shape(answer) == "error revert"
    assert bytes(answer.fragment) == b'{"code":3,"message":"execution reverted: \\ud83d"}'


@pytest.mark.parametrize(
    ("sent", "got", "is_same"),
    [
        (b'"a"', b'"\\u0061"', True),
        (b'"\xc3\xa9"', b'"\\u00e9"', True),
        (b"1e2", b"100.0", True),
        (b"1e2", b"100", True),
        (b"1", b"1.0", True),
        (b"9007199254740993", b"9007199254740993.0", False),
        (b"1", b'"1"', False),
        (b"1", b"true", False),
        (b"9007199254740993", b"9007199254740992", False),
        (b"12345678901234567890123", b"12345678901234567890124", False),
        (b"null", b"null", True),
        (b'"a"', b'"A"', False),
        (b"0", b"false", False),
    ],
)
def test_ids_are_compared_by_value_and_exactly(sent: bytes, got: bytes, is_same: bool) -> None:
    """The spelling may differ, the value may not, beyond 2^53 either."""
    answer = reply(b'{"id":%b,"result":1}' % got, sent)

    assert answer.kind == (RESULT if is_same else NONE)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (b"-32000", -32000),
        (b"-32000.0", -32000),
        (b'"-32000"', -32000),
        (b'"12\xc2\xb3"', None),
        (b"9223372036854775807", 2**63 - 1),
        (b"9223372036854775808", None),
        (b"1e300", None),
        (b"true", None),
        (b"null", None),
        (b"1.5", None),
    ],
)
def test_codes_fit_what_events_and_rows_hold(code: bytes, expected: int | None) -> None:
    """A code is an integer of 64 bits, however it is written, or none."""
    answer = reply(b'{"id":1,"error":{"code":%b,"message":"m"}}' % code)

    assert (answer.kind, answer.code) == (ERROR, expected)


@pytest.mark.parametrize("error", [b'"out of gas money"', b"[1]", b"false", b"0", b'{"message":7}', b"{}"])
def test_an_error_of_any_shape_is_an_error(error: bytes) -> None:
    """Its bytes are kept."""
    answer = reply(b'{"id":1,"error":%b}' % error)

    assert (answer.kind, bytes(answer.fragment)) == (ERROR, error)
    assert answer.verdict is not None


LARGE = b'{"a":"' + b"x" * SMALL_BYTES + b'"}'


def large(fragment: bytes = LARGE, rpc_id: bytes = b"1", tail: bytes = b"}") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b%b' % (rpc_id, fragment, tail)


def test_a_large_fragment_is_proved_once() -> None:
    """The second body is read by its envelope and digest, under another id too, and says the same."""
    proved = Digests()
    first = read(large(), b"1", lookup(BLOCK), 200, proved)
    again = read(large(rpc_id=b'"z"') + b"\n", b'"z"', lookup(BLOCK), 200, proved)

    assert first.digest in proved
    assert (again.kind, again.digest, bytes(again.fragment)) == (RESULT, first.digest, LARGE)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (large(tail=b"} x"), "none parse"),
        (large(tail=b"}}"), "none parse"),
        (large(tail=b"}" + large()), "none parse"),
        (large(tail=b""), "none parse"),
        (large(rpc_id=b"2"), "none parse"),
        (large(tail=b',"id":2}'), "none parse"),
        (large(tail=b',"error":{"code":-32005,"message":"limit"}}'), "error rate_limited"),
        (large(tail=b',"result":null}'), "result empty miss"),
        (large()[:5000][:-1000], "none parse"),
        (b" " * 5000 + b"<html>", "none parse"),
        (large().replace(b'"result"', b'\f"result"'), "none parse"),
    ],
    ids=["a tail", "one brace more", "two answers", "cut short", "another id", "the id again", "an error behind",
         "the result again", "cut inside", "a page", "white space that JSON does not know"],
)  # fmt: skip
def test_a_proved_fragment_proves_nothing_around_it(body: bytes, expected: str) -> None:
    """What stands behind a known fragment is read all the same."""
    proved = Digests()
    read(large(), b"1", lookup(BLOCK), 200, proved)

    assert shape(read(body, b"1", lookup(BLOCK), 200, proved)) == expected


def test_a_body_under_another_id_proves_nothing() -> None:
    """Only answers are remembered."""
    proved = Digests()
    answer = read(large(rpc_id=b"2"), b"1", lookup(BLOCK), 200, proved)

    assert answer.kind is NONE
    assert proved | proved._old == set()


def test_digests_are_bounded_and_keep_the_newest() -> None:
    """Two generations: at least `limit` - 1 of the newest are known, at most twice the limit."""
    digests = Digests(limit=3)
    for i in range(10):
        digests.note(str(i))

    assert [i for i in range(10) if str(i) in digests] == [9]
    assert [i for i in range(10) if str(i) in digests or str(i) in digests._old] == [6, 7, 8, 9]
    assert digests.knew("6")
    assert "6" in digests
    assert not digests.knew("0")


def test_no_answer_has_no_digest() -> None:
    """There is nothing to compare."""
    answer = no_answer("timeout")

    assert (answer.digest, answer.is_answer, bytes(answer.fragment)) == ("", False, b"")


@given(st.binary(max_size=60), st.sampled_from([200, 404, 429, 502]))
def test_any_body_is_read(body: bytes, status: int) -> None:
    """Whatever comes is a reply; one of no JSON-RPC says why."""
    answer = reply(body, status=status)

    assert answer.kind is not NONE or answer.error_class
