"""Blocks that nobody has yet: the situations of the seeds, counted at the upstreams."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.scripted import Proxy, Upstream, configuration, result, running, upstreams

FAILSAFE = [
    {
        "matchMethod": "*",
        "timeout": {"duration": "2s"},
        "retry": {"maxAttempts": 5, "delay": "0ms"},
        "hedge": {"delay": "50ms", "maxCount": 1},
    }
]
ON = {"shortCircuitFutureBlocks": True}


def block(number: int) -> dict[str, str]:
    return {"number": hex(number), "hash": f"0x{number:064x}"}


def has_up_to(head: int) -> Any:
    """Answer block look-ups as a node with that head."""

    def script(request: dict[str, Any]) -> bytes:
        wanted = int(str(request["params"][0]), 16)
        return result(request, block(wanted) if wanted <= head else None)

    return script


async def look(proxy: Proxy, number: int) -> object:
    return (await proxy.call("eth_getBlockByNumber", [hex(number), False]))["result"]


def n_asked(nodes: list[Upstream]) -> list[int]:
    """Return how many client calls each upstream got."""
    return [sum(call["method"] == "eth_getBlockByNumber" for call in node.calls) for node in nodes]


@pytest.mark.parametrize("mode", ["ordered", "tiered"])
async def test_a_null_above_every_head_is_not_swept_to_the_fallbacks(mode: str, tmp_path: Path) -> None:
    """Four upstreams, null from all, retry 5, hedge 1: nothing paid, at most one primary call for each request."""
    async with upstreams(*[has_up_to(100)] * 4) as nodes:
        config = configuration(nodes[:2], nodes[2:], network={"failsafe": FAILSAFE, "selectionPolicy": {"mode": mode}})
        async with running(config, tmp_path) as proxy:
            answers = [await look(proxy, 101) for _ in range(5)]

            assert answers == [None] * 5
            assert n_asked(nodes)[2:] == [0, 0]
            assert sum(n_asked(nodes)) == 5
            assert all(request.beyond_head for request in proxy.requests())


@pytest.mark.parametrize("mode", ["ordered", "tiered"])
async def test_a_block_at_the_head_that_the_primaries_miss_is_served_by_a_fallback(mode: str, tmp_path: Path) -> None:
    """It exists: the sweep and the escape go on as before."""
    async with upstreams(has_up_to(99), has_up_to(99), has_up_to(100), None) as nodes:
        config = configuration(nodes[:2], nodes[2:], network={"failsafe": FAILSAFE, "selectionPolicy": {"mode": mode}})
        async with running(config, tmp_path) as proxy:
            assert await look(proxy, 100) == block(100)
            [request] = proxy.requests()
            assert (request.upstream, request.cause) == ("f0", "empty_at_head")
            assert request.escaped is (mode == "tiered")


async def test_a_fallback_ahead_makes_the_primaries_nulls_misses(tmp_path: Path) -> None:
    """Primaries at 100, a fallback at 110, block 105 asked: the heads of all tiers count."""
    async with upstreams(has_up_to(100), has_up_to(100), has_up_to(110)) as nodes:
        nodes[2].latest = 110
        async with running(configuration(nodes[:2], nodes[2:]), tmp_path) as proxy:
            await proxy.until(lambda: proxy.service.networks[0].book.latest == 110)

            assert await look(proxy, 105) == block(105)
            assert proxy.requests()[0].upstream == "f0"


async def test_the_sweep_goes_on_where_the_acceptance_is_off(tmp_path: Path) -> None:
    """`acceptEmptyBeyondHead: false`: then everybody is asked."""
    async with upstreams(*[has_up_to(100)] * 3) as nodes:
        config = configuration(nodes[:2], nodes[2:], evm={"acceptEmptyBeyondHead": False})
        async with running(config, tmp_path) as proxy:
            assert await look(proxy, 101) is None
            assert n_asked(nodes) == [1, 1, 1]


async def test_the_confidence_can_be_the_finalized_head(tmp_path: Path) -> None:
    """Then a null above the finalized head is an answer, and one at or below it is a miss."""
    async with upstreams(has_up_to(0), has_up_to(100)) as nodes:
        config = configuration(nodes, evm={"emptyResultConfidence": "finalizedBlock"})
        async with running(config, tmp_path) as proxy:
            assert await look(proxy, 91) is None
            assert await look(proxy, 90) == block(90)


# --- the short-circuit ------------------------------------------------------------------------------------------------


async def test_a_block_above_every_head_is_answered_without_asking(tmp_path: Path) -> None:
    """No upstream hears of it, shadows included; the event says what happened and by which heads."""
    async with upstreams(has_up_to(100), has_up_to(100), has_up_to(100)) as nodes:
        config = configuration(nodes[:1], nodes[1:2], nodes[2:], evm=ON)
        async with running(config, tmp_path) as proxy:
            answers = [await proxy.call("eth_getBlockByNumber", ["0x65", False], rpc_id=n) for n in range(5)]
            await asyncio.sleep(0.1)

            assert answers == [{"jsonrpc": "2.0", "id": n, "result": None} for n in range(5)]
            assert n_asked(nodes) == [0, 0, 0]
            request = proxy.requests()[0]
            assert (request.short_circuited, request.outcome, request.upstream) == (True, "result", "")
            assert request.shadows == {"s0": "short_circuited"}
            assert {name: head.latest for name, head in request.heads.upstreams.items()} == {"p0": 100, "f0": 100}
            assert proxy.mirrored() == []


async def test_it_is_off_unless_asked_for(tmp_path: Path) -> None:
    """By default the upstream is asked."""
    async with upstreams(has_up_to(100)) as nodes, running(configuration(nodes), tmp_path) as proxy:
        assert await look(proxy, 101) is None
        assert n_asked(nodes) == [1]
        assert not proxy.requests()[0].short_circuited


async def test_a_block_that_only_the_most_ahead_has_is_dispatched(tmp_path: Path) -> None:
    """The ceiling is the highest head of any upstream."""
    async with upstreams(has_up_to(100), has_up_to(110)) as nodes:
        nodes[1].latest = 110
        async with running(configuration(nodes, evm=ON), tmp_path) as proxy:
            await proxy.until(lambda: proxy.service.networks[0].ceiling == 110)

            assert await look(proxy, 110) == block(110)
            assert await look(proxy, 111) is None
            assert n_asked(nodes) == [1, 1]


async def test_a_syncing_upstream_ahead_has_the_block_dispatched(tmp_path: Path) -> None:
    """Whatever `skipWhenSyncing` says: its head counts."""

    def syncing(request: dict[str, Any]) -> bytes:
        return (
            result(request, {"currentBlock": "0x1"}) if request["method"] == "eth_syncing" else has_up_to(105)(request)
        )

    async with upstreams(has_up_to(105), syncing) as nodes:
        nodes[1].latest = 105
        config = json.loads(configuration(nodes, evm=ON))
        config["projects"][0]["upstreams"][1]["evm"]["skipWhenSyncing"] = True
        async with running(json.dumps(config), tmp_path) as proxy:
            network = proxy.service.networks[0]
            await proxy.until(lambda: network.by_id["p1"].is_syncing and network.ceiling == 105)

            assert await look(proxy, 105) == block(105)
            assert n_asked(nodes)[0] == 1


async def test_an_upstream_whose_head_is_unknown_has_everything_dispatched(tmp_path: Path) -> None:
    """It may have the block. The gauge and the log name it."""

    def headless(request: dict[str, Any]) -> bytes:
        return result(request, None)

    async with upstreams(has_up_to(100), headless) as nodes:
        async with running(configuration(nodes, evm=ON), tmp_path) as proxy:
            network = proxy.service.networks[0]
            network.book.positions["p1"].latest = None
            network.book._recompute("latest")
            network.look_for_unknown_heads()

            assert await look(proxy, 101) is None
            assert n_asked(nodes) == [1, 0]
            assert network.held_off_by == ("p1",)


async def test_a_cordoned_fallback_ahead_has_the_block_dispatched(tmp_path: Path) -> None:
    """Primaries at 100, fallbacks at 110, block 105: the escape may reach it. Above 110 nobody is asked."""
    async with upstreams(has_up_to(100), has_up_to(110)) as nodes:
        nodes[1].latest = 110
        async with running(configuration(nodes[:1], nodes[1:], evm=ON), tmp_path) as proxy:
            await proxy.until(lambda: proxy.service.networks[0].ceiling == 110)

            assert await look(proxy, 105) == block(105)
            assert await look(proxy, 111) is None
            assert n_asked(nodes) == [1, 1]


async def test_the_latest_axis_counts_whatever_the_confidence(tmp_path: Path) -> None:
    """A block between the finalized head and the newest is dispatched."""
    async with upstreams(has_up_to(100)) as nodes:
        config = configuration(nodes, evm={**ON, "emptyResultConfidence": "finalizedBlock"})
        async with running(config, tmp_path) as proxy:
            assert await look(proxy, 95) == block(95)
            assert await look(proxy, 101) is None
            assert n_asked(nodes) == [1]


async def test_a_declared_upper_bound_lowers_the_ceiling(tmp_path: Path) -> None:
    """An upstream that says what it serves at most has nothing above."""
    async with upstreams(has_up_to(100)) as nodes:
        config = json.loads(configuration(nodes, evm=ON))
        config["projects"][0]["upstreams"][0]["evm"]["blockAvailability"] = {"upper": {"latestBlockMinus": 10}}
        async with running(json.dumps(config), tmp_path) as proxy:
            assert await look(proxy, 91) is None
            assert n_asked(nodes) == [0]


@pytest.mark.parametrize(
    ("params", "is_asked"),
    [
        (["0x65", False], False),
        (["0x64", False], True),
        (["pending", False], True),
        (["earliest", False], True),
        (["0x065", False], False),
    ],
)
async def test_only_concrete_numbers_of_block_look_ups_are_answered(
    params: list[object], is_asked: bool, tmp_path: Path
) -> None:
    """Tags are the upstream's business, and so is every other method."""
    async with upstreams(lambda request: result(request, {"number": "0x1"})) as nodes:
        async with running(configuration(nodes, evm=ON), tmp_path) as proxy:
            await proxy.call("eth_getBlockByNumber", params)
            assert n_asked(nodes) == [int(is_asked)]
            await proxy.call("eth_getBalance", ["0x1", "0x65"])
            assert nodes[0].calls[-1]["method"] == "eth_getBalance"


@pytest.mark.parametrize(
    ("default", "own", "is_on"),
    [
        (None, None, False), (True, None, True), (True, False, False), (False, True, True), (None, True, True),
        (False, None, False),
    ],
)  # fmt: skip
async def test_it_is_inherited_and_an_explicit_word_wins(
    default: bool | None, own: bool | None, is_on: bool, tmp_path: Path
) -> None:
    """From `networkDefaults.evm`."""
    async with upstreams(has_up_to(100)) as nodes:
        evm = {} if own is None else {"shortCircuitFutureBlocks": own}
        project = {} if default is None else {"networkDefaults": {"evm": {"shortCircuitFutureBlocks": default}}}
        async with running(configuration(nodes, evm=evm, project=project), tmp_path) as proxy:
            await look(proxy, 101)
            assert n_asked(nodes) == [int(not is_on)]


# --- the served tip ---------------------------------------------------------------------------------------------------


async def test_latest_is_what_most_primaries_have_where_that_is_wanted(tmp_path: Path) -> None:
    """Written out as a number; the short-circuit is on with it. A directive leaves the tag alone."""
    async with upstreams(has_up_to(110), has_up_to(110), has_up_to(110)) as nodes:
        for node, head in zip(nodes, (100, 102, 110), strict=True):
            node.latest = head
        async with running(configuration(nodes, evm={"servedTip": {"enabledFor": ["latest"]}}), tmp_path) as proxy:
            network = proxy.service.networks[0]
            await proxy.until(lambda: network.ceiling == 110 and network.tip == 102)

            assert (await proxy.call("eth_getBlockByNumber", ["latest", False]))["result"] == block(102)
            await proxy.call("eth_getBalance", ["0x1", "latest"])
            assert nodes[0].calls[-1]["params"] == ["0x1", hex(102)]
            assert await look(proxy, 111) is None
            body = b'{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x1","latest"]}'
            await proxy.post(body, headers="X-ERPC-Skip-Interpolation: true\r\n")
            assert nodes[0].calls[-1]["params"] == ["0x1", "latest"]
            assert n_asked(nodes)[0] == 1


# --- directives -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "query", "defaults", "n_calls"),
    [
        ("", "", {}, [1, 1]),
        ("X-ERPC-Retry-Empty: false\r\n", "", {}, [1, 0]),
        ("", "?retry-empty=false", {}, [1, 0]),
        ("X-ERPC-Retry-Empty: false\r\n", "?retry-empty=true", {}, [1, 1]),
        ("", "", {"retryEmpty": False}, [1, 0]),
        ("X-Gnomon-Retry-Empty: true\r\n", "", {"retryEmpty": False}, [1, 1]),
    ],
)
async def test_a_client_may_take_empty_answers_as_they_are(
    headers: str, query: str, defaults: dict[str, bool], n_calls: list[int], tmp_path: Path
) -> None:
    """By header, by query (which wins), or by the network's default."""
    async with upstreams(has_up_to(0), has_up_to(100)) as nodes:
        network = {"directiveDefaults": defaults} if defaults else {}
        async with running(configuration(nodes, network=network), tmp_path) as proxy:
            body = b'{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x5",false]}'
            await proxy.post(body, headers, path=f"/main/evm/31337{query}")
            assert n_asked(nodes) == n_calls
