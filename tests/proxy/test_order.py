"""In which order primaries are asked, and that a score never reaches what costs money."""

import json
from pathlib import Path

import pytest

from proxy.core.scores import Seen
from tests.proxy.scripted import configuration, http, running, upstreams


async def test_a_primary_that_fails_stands_behind_the_others(tmp_path: Path) -> None:
    """After some calls it is asked no more; the fallback is never reached by a score."""
    async with upstreams(lambda _: http(b"<html>", status=500), None, None) as nodes:
        async with running(configuration(nodes[:2], nodes[2:]), tmp_path) as proxy:
            network = proxy.service.networks[0]
            for _ in range(8):
                await proxy.call("eth_getBalance", ["0x1", "0x10"])
            network.weigh(1e9)
            for _ in range(8):
                await proxy.call("eth_getBalance", ["0x1", "0x10"])

            assert len(nodes[0].calls) == 8
            assert len(nodes[1].calls) == 16
            assert nodes[2].calls == []
            assert str(network.trouble(network.by_id["p0"])) == "failing"
            assert [a.cause for a in proxy.requests()[-1].attempts] == [""]


async def test_all_primaries_in_trouble_are_still_asked_first(tmp_path: Path) -> None:
    """Trouble is an order, not a cordon: paid upstreams are for what every primary missed."""
    async with upstreams(None, None, None) as nodes:
        async with running(configuration(nodes[:2], nodes[2:]), tmp_path) as proxy:
            network = proxy.service.networks[0]
            for now in (1e9, 2e9):
                network.scores.weigh({name: Seen(90, 90, 100, 2.0) for name in ("p0", "p1")}, 100, now)
            network.replan()
            await proxy.call("eth_getBalance", ["0x1", "0x10"])

            assert [len(node.calls) for node in nodes] == [1, 0, 0]


@pytest.mark.parametrize("order", [["p0", "f0", "p1"], ["f0", "p0", "p1"]])
async def test_an_ordered_list_keeps_the_order_of_the_configuration(order: list[str], tmp_path: Path) -> None:
    """Scores never reorder it, whatever its members did; a fallback at its head says `policy_order`."""
    async with upstreams(lambda _: http(b"<html>", status=500), None, None) as nodes:
        config = json.loads(configuration(nodes[:2], nodes[2:], network={"selectionPolicy": {"mode": "ordered"}}))
        listed = {upstream["id"]: upstream for upstream in config["projects"][0]["upstreams"]}
        config["projects"][0]["upstreams"] = [listed[name] for name in order]
        async with running(json.dumps(config), tmp_path) as proxy:
            for _ in range(8):
                await proxy.call("eth_getBalance", ["0x1", "0x10"])
            proxy.service.networks[0].weigh(1e9)
            await proxy.call("eth_getBalance", ["0x1", "0x10"])
            attempts = proxy.requests()[-1].attempts

            assert [a.upstream for a in attempts] == (["p0", "f0"] if order[0] == "p0" else ["f0"])
            assert attempts[0].cause == ("" if order[0] == "p0" else "policy_order")
