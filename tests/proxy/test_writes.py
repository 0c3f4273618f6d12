"""What changes the chain is sent once, unless it surely did not arrive."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.scripted import Script, Upstream, configuration, http, result, running, upstreams

RETRY = {
    "failsafe": [{"matchMethod": "*", "timeout": {"duration": "150ms"}, "retry": {"maxAttempts": 3, "delay": "0ms"}}]
}
WRITES = ["eth_sendRawTransaction", "eth_sendTransaction", "personal_sendTransaction", "engine_newPayloadV4"]


def error(code: int, message: str, status: int = 200) -> Script:
    def answer(request: dict[str, Any]) -> bytes:
        body = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}}
        return http(json.dumps(body).encode(), status=status)

    return answer


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize(
    "lost",
    [
        lambda _: None,
        lambda _: b"",
        lambda _: http(b'{"jsonrpc"', length=99),
        lambda _: http(b"<html>bad gateway</html>", status=502),
        lambda _: http(b"not json"),
        error(-32603, "internal error"),
        error(-32000, "something odd"),
    ],
    ids=["silence", "hang-up", "cut short", "502", "html", "internal error", "unknown error"],
)
async def test_a_write_that_may_have_arrived_is_sent_to_nobody_else(lost: Script, method: str, tmp_path: Path) -> None:
    """
    Neither to the next upstream, nor again in a round, nor to a fallback.

    A kept connection that closes under a call is replaced for signed transactions alone: twice is harmless there.
    """
    async with (
        upstreams(lost, None, None) as nodes,
        running(configuration(nodes[:2], nodes[2:], network=RETRY), tmp_path) as proxy,
    ):
        answer = await proxy.call(method, ["0x1"])

        assert "error" in answer
        assert [len(node.calls) for node in nodes][1:] == [0, 0]
        is_resent = method == "eth_sendRawTransaction" and lost({"id": 1}) == b""
        assert len(nodes[0].calls) == 1 + is_resent


@pytest.mark.parametrize(
    "refusal",
    [error(-32005, "rate limit exceeded", 429), error(-32601, "the method does not exist"), error(-32005, "slow down")],
    ids=["429", "no such method", "rate limited"],
)
async def test_a_write_that_was_refused_goes_elsewhere(refusal: Script, tmp_path: Path) -> None:
    """The node's gate turned it away: it cannot be under way."""
    async with (
        upstreams(refusal, lambda request: result(request, "0xhash")) as nodes,
        running(configuration(nodes, network=RETRY), tmp_path) as proxy,
    ):
        assert (await proxy.call("eth_sendRawTransaction", ["0x1"]))["result"] == "0xhash"
        assert [len(node.calls) for node in nodes] == [1, 1]


async def test_a_write_goes_elsewhere_when_nobody_listens(tmp_path: Path) -> None:
    """A refused connection has carried nothing."""
    async with upstreams(None, lambda request: result(request, "0xhash")) as nodes:
        gone = await Upstream().start()
        async with running(configuration([gone, nodes[1]], network=RETRY), tmp_path) as proxy:
            await gone.stop()
            assert (await proxy.call("eth_sendRawTransaction", ["0x1"]))["result"] == "0xhash"
            assert len(nodes[1].calls) == 1


@pytest.mark.parametrize(
    "message",
    ["already known", "AlreadyKnown", "transaction already imported", "known transaction: 0xabc", "nonce too low"],
)
async def test_a_transaction_that_is_known_already_counts_as_accepted(message: str, tmp_path: Path) -> None:
    """It is served as it came and tried nowhere else, nor held against the upstream, after a refusal elsewhere too."""
    breaker = {"breaker": {"threshold": 1, "openFor": "10s"}}
    async with (
        upstreams(error(-32005, "slow down", 429), error(-32000, message), None) as nodes,
        running(configuration(nodes, network=RETRY, primary=breaker), tmp_path) as proxy,
    ):
        for n in (1, 2):
            answer = await proxy.call("eth_sendRawTransaction", ["0x1"])

            assert answer["error"] == {"code": -32000, "message": message}
            assert [len(node.calls) for node in nodes] == [n, n, 0]
        assert {event.outcome for event in proxy.requests()} == {"verdict"}
