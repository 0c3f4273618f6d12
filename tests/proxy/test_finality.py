"""Policies by the finality of what is asked, and what counts as final where no upstream says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from gnomon.events.contract import BreakerTransition
from tests.proxy.scripted import PATH, Upstream, configuration, http, running, upstreams

N = "0x" + "a" * 40
ROUNDS = {"finalized": 2, "unfinalized": 3, "realtime": 4, "unknown": 5}
"""A number of rounds for each, so that the calls of a request tell which policy it had."""
ENTRIES = [
    {"matchMethod": "*", "matchFinality": [name], "timeout": {"duration": "300ms"}, "retry": {"maxAttempts": n}}
    for name, n in ROUNDS.items()
]


def broken(_: dict[str, Any]) -> bytes:
    return http(b"<html>", status=502)


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("eth_getBalance", [N, "0x0"], "finalized"),
        ("eth_getBalance", [N, hex(90)], "finalized"),
        ("eth_getBalance", [N, hex(91)], "unfinalized"),
        ("eth_getBalance", [N, "latest"], "realtime"),
        ("eth_getBalance", [N], "realtime"),
        ("eth_getBalance", [N, "finalized"], "realtime"),
        ("eth_getLogs", [{"fromBlock": "0x1", "toBlock": hex(90)}], "finalized"),
        ("eth_getLogs", [{"fromBlock": "0x1", "toBlock": hex(91)}], "unfinalized"),
        ("eth_getLogs", [{"fromBlock": "0x1", "toBlock": "latest"}], "realtime"),
        ("eth_getTransactionReceipt", ["0x1"], "unknown"),
        ("net_version", [], "finalized"),
        ("eth_gasPrice", [], "realtime"),
        ("acme_thing", [hex(90)], "unknown"),
    ],
)
async def test_a_policy_holds_for_the_finality_it_names(
    method: str, params: list[object], expected: str, tmp_path: Path
) -> None:
    """Of the request, by the heads as they are when it comes; alone and within a batch."""
    batch = [{"jsonrpc": "2.0", "id": i, "method": method, "params": params} for i in range(2)]
    async with (
        upstreams(broken) as nodes,
        running(configuration(nodes, network={"failsafe": ENTRIES}), tmp_path) as proxy,
    ):
        await proxy.call(method, params)
        assert len(nodes[0].calls) == ROUNDS[expected]
        await proxy.post(json.dumps(batch).encode(), path=PATH)

        assert len(nodes[0].calls) == 3 * ROUNDS[expected]


async def test_heads_move_what_is_final(tmp_path: Path) -> None:
    """The same request has another policy once its block is final."""
    async with (
        upstreams(broken) as nodes,
        running(configuration(nodes, network={"failsafe": ENTRIES}), tmp_path) as proxy,
    ):
        await proxy.call("eth_getBalance", [N, hex(95)])
        nodes[0].finalized = 95
        await proxy.until(lambda: proxy.service.networks[0].book.finalized == 95)
        await proxy.call("eth_getBalance", [N, hex(95)])

        assert len(nodes[0].calls) == ROUNDS["unfinalized"] + ROUNDS["finalized"]


async def test_the_first_entry_that_fits_method_and_finality_is_used(tmp_path: Path) -> None:
    """Entries without `matchFinality` fit all; methods that no such entry names are routed by their name alone."""
    retries = [("eth_get*", ["finalized"], 2), ("eth_getBalance", None, 3), ("*", ["realtime"], 4), ("*", None, 5)]
    entries = [
        {
            "matchMethod": pattern,
            **({"matchFinality": names} if names else {}),
            "timeout": {"duration": "300ms"},
            "retry": {"maxAttempts": n},
        }
        for pattern, names, n in retries
    ]
    async with (
        upstreams(broken) as nodes,
        running(configuration(nodes, network={"failsafe": entries}), tmp_path) as proxy,
    ):
        found = []
        for method, block in (
            ("eth_getBalance", "0x1"),
            ("eth_getBalance", "latest"),
            ("eth_call", "latest"),
            ("eth_call", "0x1"),
        ):
            nodes[0].calls.clear()
            await proxy.call(method, [N, block])
            found.append(len(nodes[0].calls))

        assert found == [2, 3, 4, 5]


async def test_an_upstream_has_policies_by_finality_too(tmp_path: Path) -> None:
    """A timeout of its own for what is final, short enough to see."""
    entries = [
        {"matchMethod": "*", "matchFinality": ["finalized"], "timeout": {"duration": "50ms"}},
        {"matchMethod": "*", "timeout": {"duration": "250ms"}},
    ]
    async with (
        upstreams(lambda _: None, None) as nodes,
        running(configuration(nodes, primary={"failsafe": entries}, timeout="2s"), tmp_path) as proxy,
    ):
        for block in ("0x1", "latest"):
            assert (await proxy.call("eth_getBalance", [N, block]))["result"] == "0x2a"
        took = [event.attempts[0].duration_us / 1e6 for event in proxy.requests()]

        assert 0.04 <= took[0] < 0.15
        assert 0.24 <= took[1] < 0.4


async def test_a_breaker_watches_the_finality_it_names(tmp_path: Path) -> None:
    """Two entries of one pattern have a breaker each; the event says which."""
    window = {"failureThresholdCount": 2, "failureThresholdCapacity": 2, "halfOpenAfter": "10s"}
    window |= {"successThresholdCount": 1, "successThresholdCapacity": 1}
    entries = [
        {"matchMethod": "*", **more, "circuitBreaker": window} for more in ({"matchFinality": ["finalized"]}, {})
    ]
    async with (
        upstreams(broken, None) as nodes,
        running(configuration(nodes, primary={"failsafe": entries}), tmp_path) as proxy,
    ):
        for block in ("0x1", "0x1", "0x1", "latest"):
            await proxy.call("eth_getBalance", [N, block])
        scopes = [event.scope for event in proxy.events() if isinstance(event, BreakerTransition)]

        assert len(nodes[0].calls) == 3
        assert scopes == ["* finalized"]


@pytest.mark.parametrize(
    ("latest", "depth", "block", "expected"),
    [
        (2000, {}, 976, "finalized"),
        (2000, {}, 977, "unfinalized"),
        (2000, {"fallbackFinalityDepth": 10}, 1990, "finalized"),
        (2000, {"fallbackFinalityDepth": 10}, 1991, "unfinalized"),
        (2000, {"fallbackFinalityDepth": 0}, 2000, "finalized"),
    ],
)
async def test_without_a_finalized_head_depth_decides(
    latest: int, depth: dict[str, int], block: int, expected: str, tmp_path: Path
) -> None:
    """`fallbackFinalityDepth` behind the newest block counts as final, and events carry that head."""
    node = await Upstream(broken, latest=latest, finalized=None).start()
    try:
        async with running(configuration([node], network={"failsafe": ENTRIES}, evm=depth), tmp_path) as proxy:
            await proxy.call("eth_getBalance", [N, hex(block)])
            [event] = proxy.requests()

            assert len(node.calls) == ROUNDS[expected]
            assert event.heads.network.finalized == latest - depth.get("fallbackFinalityDepth", 1024)
            assert proxy.service.networks[0].book.finalized is None
    finally:
        await node.stop()


async def test_a_head_above_no_depth_leaves_finality_unknown(tmp_path: Path) -> None:
    """A chain shorter than the depth has no final block, rather than block 0 or one below it."""
    async with upstreams(broken) as nodes:
        async with running(configuration(nodes, network={"failsafe": ENTRIES}), tmp_path) as proxy:
            network = proxy.service.networks[0]
            nodes[0].finalized = None
            network.book.finalized = None

            assert network.finalized is None
            network.book.finalized = 7
            assert network.finalized == 7
