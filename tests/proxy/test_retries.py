"""Rounds, their waits, and what an empty answer means: by method, by the network's list, by a retry's list."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.proxy.scripted import Script, configuration, http, result, running, upstreams

FAST = {"matchMethod": "*", "timeout": {"duration": "300ms"}}


def failsafe(**retry: Any) -> dict[str, Any]:
    return {"failsafe": [{**FAST, "retry": {"delay": "0ms", **retry}}]}


def broken(_: dict[str, Any]) -> bytes:
    return http(b"<html>", status=502)


def silent(_: dict[str, Any]) -> None:
    return None


def empty(value: object = None) -> Script:
    return lambda request: result(request, value)


async def test_each_round_asks_everybody_until_one_answers(tmp_path: Path) -> None:
    """The attempts say that they are retries; the answer of a later round is served."""
    n = 0

    def third_time_lucky(request: dict[str, Any]) -> bytes:
        nonlocal n
        n += 1
        return result(request, "0x1") if n == 3 else broken(request)

    async with (
        upstreams(third_time_lucky, broken) as nodes,
        running(configuration(nodes, network=failsafe(maxAttempts=5)), tmp_path) as proxy,
    ):
        assert (await proxy.call("eth_call"))["result"] == "0x1"
        [event] = proxy.requests()
        assert [(a.upstream, a.kind, a.cause) for a in event.attempts] == [
            ("p0", "client", ""),
            ("p1", "client", "primary_error"),
            ("p0", "retry", "retry"),
            ("p1", "retry", "primary_error"),
            ("p0", "retry", "retry"),
        ]


@pytest.mark.parametrize(
    ("policy", "least", "most"),
    [
        ({"delay": "100ms", "backoffFactor": 2, "backoffMaxDelay": "1s"}, 0.3, 0.5),
        ({"delay": "100ms", "backoffFactor": 9, "backoffMaxDelay": "100ms"}, 0.2, 0.4),
        ({"delay": "0ms", "jitter": "200ms"}, 0.0, 0.5),
        ({"delay": "0ms"}, 0.0, 0.1),
    ],
    ids=["backoff", "cap", "jitter", "none"],
)
async def test_rounds_wait_as_the_policy_says(
    policy: dict[str, Any], least: float, most: float, tmp_path: Path
) -> None:
    """Two waits for three rounds."""
    async with (
        upstreams(broken) as nodes,
        running(configuration(nodes, network=failsafe(maxAttempts=3, **policy)), tmp_path) as proxy,
    ):
        started = asyncio.get_running_loop().time()
        await proxy.call("eth_call")
        took = asyncio.get_running_loop().time() - started

        assert len(nodes[0].calls) == 3
        assert least <= took < most + 0.1


async def test_jitter_spreads_the_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On top of the delay, from nothing to all of it."""
    shares = iter([0.0, 1.0])
    monkeypatch.setattr("proxy.dispatch.random", SimpleNamespace(random=lambda: next(shares)))
    network = failsafe(maxAttempts=2, delay="50ms", jitter="200ms")
    async with (
        upstreams(broken) as nodes,
        running(configuration(nodes, network=network, timeout="2s"), tmp_path) as proxy,
    ):
        for _ in range(2):
            await proxy.call("eth_call")
        gaps = [(e.attempts[1].start_us - e.attempts[0].start_us) / 1e6 for e in proxy.requests()]

        assert 0.05 <= gaps[0] < 0.2
        assert 0.25 <= gaps[1] < 0.45


@pytest.mark.parametrize(
    ("said", "defaults", "cap", "n_rounds"),
    [
        ("", {}, {}, 1),
        ("", {}, {"emptyResultMaxAttempts": 4}, 1),
        ("true", {}, {}, 2),
        ("true", {}, {"emptyResultMaxAttempts": 1}, 1),
        ("true", {}, {"emptyResultMaxAttempts": 3}, 3),
        ("true", {}, {"emptyResultMaxAttempts": 9}, 4),
        ("", {"retryEmpty": True}, {"emptyResultMaxAttempts": 3}, 3),
        ("false", {"retryEmpty": True}, {"emptyResultMaxAttempts": 3}, 0),
    ],
    ids=["nothing said", "only a cap", "said", "one", "three", "never above maxAttempts", "by default", "unsaid"],
)
async def test_empty_answers_are_asked_for_again_where_that_is_said(
    said: str, defaults: dict[str, bool], cap: dict[str, int], n_rounds: int, tmp_path: Path
) -> None:
    """A round asks every upstream once; without the word one round has to do. The empty answer is served in the end."""
    network = {**failsafe(maxAttempts=4, **cap), **({"directiveDefaults": defaults} if defaults else {})}
    body = b'{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x1"]}'
    async with (
        upstreams(empty(), empty()) as nodes,
        running(configuration(nodes, network=network), tmp_path) as proxy,
    ):
        _, _, answer = await proxy.post(body, f"X-ERPC-Retry-Empty: {said}\r\n" if said else "")

        assert json.loads(answer)["result"] is None
        assert [len(node.calls) for node in nodes] == ([n_rounds] * 2 if n_rounds else [1, 0])


async def test_nobody_goes_round_again_for_a_block_above_the_head(tmp_path: Path) -> None:
    """Not even who says that an empty answer will not do: there is no other."""
    network = {**failsafe(maxAttempts=5, emptyResultMaxAttempts=5), "directiveDefaults": {"retryEmpty": True}}
    async with (
        upstreams(empty(), empty()) as nodes,
        running(configuration(nodes, network=network), tmp_path) as proxy,
    ):
        await proxy.call("eth_getBlockByNumber", [hex(101), False])

        assert [len(node.calls) for node in nodes] == [1, 0]


async def test_a_miss_that_came_is_served_when_the_time_of_the_request_is_over(tmp_path: Path) -> None:
    """Rather than an error: a later failure does not unsay it."""
    async with upstreams(silent, empty(), silent, silent) as nodes:
        config = json.loads(configuration(nodes, timeout="600ms"))
        config["server"] = {"maxTimeout": "1s"}
        async with running(json.dumps(config), tmp_path) as proxy:
            answer = await proxy.call("eth_getTransactionReceipt", ["0x1"])

            assert answer["result"] is None
            assert [a.outcome for a in proxy.requests()[0].attempts] == ["timeout", "empty", "timeout", "cancelled"]


@pytest.mark.parametrize(
    ("method", "params", "value", "is_answer"),
    [
        ("eth_getBlockByNumber", ["0x5", False], None, False),
        ("eth_getBlockByHash", ["0x" + "a" * 64, False], None, False),
        ("eth_getTransactionReceipt", ["0x1"], None, False),
        ("eth_getTransactionByHash", ["0x1"], None, False),
        ("eth_getBlockReceipts", ["0x5"], [], True),
        ("eth_getLogs", [{"fromBlock": "0x1", "toBlock": "0x5"}], [], True),
        ("eth_call", [{}, "0x5"], "0x", True),
        ("eth_getCode", ["0x1", "0x5"], "0x", True),
        ("eth_getStorageAt", ["0x1", "0x0", "0x5"], "0x", True),
        ("eth_getBalance", ["0x1", "0x5"], "0x0", True),
        ("eth_getTransactionCount", ["0x1", "0x5"], "0x0", True),
        ("acme_getThing", ["0x1"], None, True),
    ],
)
@pytest.mark.parametrize("has_list", [False, True])
async def test_an_empty_answer_means_what_its_method_says(
    method: str, params: list[object], value: object, is_answer: bool, has_list: bool, tmp_path: Path
) -> None:
    """A miss is looked for elsewhere; `emptyResultAccept` of the network makes every one an answer."""
    evm: dict[str, Any] = {"emptyResultAccept": ["eth_get*", "acme_*"]} if has_list else {}
    async with (
        upstreams(empty(value), empty("0x77")) as nodes,
        running(configuration(nodes, evm=evm), tmp_path) as proxy,
    ):
        answer = await proxy.call(method, params)

        assert answer["result"] == (value if is_answer or has_list else "0x77")
        assert len(nodes[1].calls) == int(not (is_answer or has_list))


async def test_a_retry_has_a_list_of_its_own(tmp_path: Path) -> None:
    """`emptyResultAccept` of the entry that fits the method goes before the network's."""
    entries = [
        {**FAST, "matchMethod": "eth_getTransactionReceipt", "retry": {"emptyResultAccept": []}},
        {**FAST, "matchMethod": "eth_getBlock*", "retry": {"emptyResultAccept": ["eth_getBlockByHash"]}},
        FAST,
    ]
    network = {"failsafe": entries}
    evm = {"emptyResultAccept": ["eth_getTransaction*"]}
    async with (
        upstreams(empty(), empty("0x77")) as nodes,
        running(configuration(nodes, network=network, evm=evm), tmp_path) as proxy,
    ):
        got = {
            method: (await proxy.call(method, ["0x" + "a" * 64]))["result"]
            for method in ("eth_getTransactionReceipt", "eth_getBlockByHash", "eth_getTransactionByHash")
        }

        assert got == {
            "eth_getTransactionReceipt": "0x77",
            "eth_getBlockByHash": None,
            "eth_getTransactionByHash": None,
        }
