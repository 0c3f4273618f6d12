"""Heads by subscription: the decisions."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.listening import Answered, Passed, Pushed, is_fresh, is_silent, is_wanted, n_bytes, read, wait_seconds


def push(result: object, subscription: object = "0x1") -> str:
    params = {"subscription": subscription, "result": result}
    return json.dumps({"jsonrpc": "2.0", "method": "eth_subscription", "params": params})


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(
            push({"number": "0x10", "hash": "0xa", "parentHash": "0xb", "x": []}), Pushed(16, "0xa", "0xb"), id="head"
        ),
        pytest.param(push({"number": "0x0"}), Pushed(0, "", ""), id="no hashes"),
        pytest.param(push({"number": "0x1", "hash": None, "parentHash": "p" * 67}), Pushed(1, "", ""), id="no hash"),
        pytest.param(push({"number": "0x10"}, "0x2"), Passed(), id="another subscription"),
        pytest.param(push({"number": "16"}), Passed(), id="no number"),
        pytest.param(push({"number": None}), Passed(), id="pending block"),
        pytest.param(push("0xabc"), Passed(), id="a hash, as of pending transactions"),
        pytest.param(push(None), Passed(), id="nothing"),
        pytest.param('{"jsonrpc":"2.0","id":1,"result":"0x1"}', Answered(1, b'"0x1"'), id="answer"),
        pytest.param('{"id":1,"result":null,"error":null}', Answered(1, b"null"), id="answer with null error"),
        pytest.param('{"id":2,"error":{"code":-32601}}', Answered(2, b""), id="refusal"),
        pytest.param('{"id":"x","method":"ping"}', None, id="a question"),
        pytest.param('{"method":"eth_subscription"}', Passed(), id="a push of nothing"),
        pytest.param('{"method":"eth_subscription","params":[1]}', Passed(), id="a push of another shape"),
        pytest.param("[]", None, id="a list"),
        pytest.param("{", None, id="cut short"),
        pytest.param(b"\xff\xfe", None, id="no UTF-8"),
    ],
)
def test_a_message_is_read(message: str | bytes, expected: object) -> None:
    """Heads of this subscription and answers count; other pushes are only paid for; the rest is left."""
    assert read(message, "0x1") == expected


@pytest.mark.parametrize(("message", "size"), [("", 0), ("abc", 3), ("é", 2), (b"\xc3\xa9", 2)])
def test_a_message_is_as_long_as_it_was_delivered(message: str | bytes, size: int) -> None:
    """In bytes, not in characters: some vendors charge by the byte."""
    assert n_bytes(message) == size


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_no_message_ends_in_an_error(message: bytes | str) -> None:
    """Whatever comes is read or left."""
    read(message, "0x1")


@pytest.mark.parametrize(
    ("is_fallback", "primaries", "expected"),
    [
        (False, [], True),
        (False, [True], True),
        (True, [], True),
        (True, [False, False], True),
        (True, [False, True], False),
    ],
)
def test_a_fallback_is_listened_to_only_without_a_primary(
    is_fallback: bool, primaries: list[bool], expected: bool
) -> None:
    """Its heads cost money."""
    assert is_wanted(is_fallback, primaries) is expected


@pytest.mark.parametrize(
    ("age", "interval", "expected"),
    [(None, 2.0, False), (10.0, 2.0, True), (10.1, 2.0, False), (180.0, 60.0, True), (180.1, 60.0, False)],
)
def test_a_polled_primary_is_up_while_its_head_is_fresh(age: float | None, interval: float, expected: bool) -> None:
    """Three of its polls, and 10 s at least."""
    assert is_fresh(age, interval) is expected


@pytest.mark.parametrize(
    ("quiet", "own", "network", "expected"),
    [
        (29.9, 100, 200, False),
        (30.0, 100, 102, False),
        (30.0, 100, 103, True),
        (30.0, None, 103, True),
        (900.0, 100, None, False),
        (900.0, 100, 100, False),
    ],
)
def test_a_silent_subscription_is_dead_once_others_went_on(
    quiet: float, own: int | None, network: int | None, expected: bool
) -> None:
    """A chain that stands still is no reason; one block of difference is none either."""
    assert is_silent(quiet, own, network) is expected


@pytest.mark.parametrize(
    ("n_failures", "expected"),
    [(1, (0.5, 1.0)), (2, (1.0, 2.0)), (5, (8.0, 16.0)), (6, (15.0, 30.0)), (99, (15.0, 30.0))],
)
def test_waits_grow_and_are_spread(n_failures: int, expected: tuple[float, float]) -> None:
    """Twice as long with each failure, 30 s at most; drawn from the upper half."""
    assert (wait_seconds(n_failures, 0.0), wait_seconds(n_failures, 1.0)) == expected
