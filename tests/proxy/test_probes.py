"""Probes of upstreams that are kept out of routing."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from gnomon.events.contract import InternalAttempt
from proxy import connections, networks
from tests.proxy.scripted import Proxy, Upstream, configuration, http, result, running, upstreams
from tests.proxy.test_gates import refused, transitions

SHORT = {"breaker": {"threshold": 1, "openFor": "200ms"}}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a hold for a quota be probed from its beginning."""
    monkeypatch.setattr(networks, "QUOTA_PROBE_SECONDS", 0.0)


def bad(_: dict[str, Any]) -> bytes:
    return http(b"<html>", status=502)


def broke(request: dict[str, Any]) -> bytes:
    return refused(request, -32000, "monthly quota exceeded, please upgrade your plan", status=402)


def well(request: dict[str, Any]) -> bytes:
    return result(request, "0x2a")


def probes(proxy: Proxy) -> list[InternalAttempt]:
    return [event for event in proxy.internal() if event.attempt.kind == "probe"]


async def ask(proxy: Proxy, n: int = 1, method: str = "eth_getBalance") -> None:
    for i in range(n):
        await proxy.call(method, [f"0x{i:x}", "0x10"])


async def idle(proxy: Proxy) -> None:
    await proxy.until(lambda: not proxy.service.probes)


async def both_open(proxy: Proxy, nodes: list[Upstream]) -> None:
    """Have one request open the breakers of all primaries, which are well again then."""
    for node in nodes:
        node.script = bad
    await ask(proxy)
    for node in nodes:
        node.script = well
        node.calls.clear()


async def test_a_probe_closes_the_breaker_of_one_that_no_client_reaches(tmp_path: Path) -> None:
    """The second primary would stay open for ever while the first serves; a copy of a read is its trial."""
    async with upstreams(bad, bad) as nodes:
        config = configuration(nodes, primary={**SHORT, "vendor": "alchemy"})
        async with running(config, tmp_path) as proxy:
            await both_open(proxy, nodes)
            await ask(proxy, 2)
            assert [node.calls for node in nodes] == [[], []]  # not before its time
            await asyncio.sleep(0.25)
            await ask(proxy, 3)
            await idle(proxy)

            assert len(nodes[0].calls) == 3
            assert [call["params"] for call in nodes[1].calls] == [["0x0", "0x10"]]
            [probe] = probes(proxy)
            attempt = probe.attempt
            assert (attempt.upstream, attempt.tier, attempt.method) == ("p1", "primary", "eth_getBalance")
            assert (attempt.vendor, attempt.outcome, probe.latest) == ("alchemy", "result", 100)
            assert bytes(probe.params) == b'["0x0", "0x10"]'
            assert [t[1:3] for t in transitions(proxy) if t[0] == "p1"] == [
                ("closed", "open"), ("open", "half_open"), ("half_open", "closed"),
            ]  # fmt: skip


@pytest.mark.parametrize("script", [bad, lambda _: None, lambda _: b""], ids=["502", "silent", "closed"])
async def test_a_probe_that_fails_opens_it_again(script: Any, tmp_path: Path) -> None:
    """The client whose read was copied hears nothing of it, and does not wait."""
    async with upstreams(bad, bad) as nodes:
        async with running(configuration(nodes, primary=SHORT, timeout="100ms"), tmp_path) as proxy:
            await both_open(proxy, nodes)
            nodes[1].script = script
            await asyncio.sleep(0.25)
            answer = await proxy.call("eth_getBalance", ["0x1", "0x10"])
            await idle(proxy)

            assert answer["result"] == "0x2a"
            assert len(probes(proxy)) == 1
            assert transitions(proxy)[-1][:3] == ("p1", "half_open", "open")


async def test_a_quota_that_is_filled_again_is_noticed(tmp_path: Path) -> None:
    """A probe that is answered ends the hold, long before its minute; before that, one a second."""
    async with upstreams(broke, None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        await ask(proxy, 8)
        await idle(proxy)
        assert len(nodes[0].calls) == 1 + 1
        nodes[0].script = well
        await asyncio.sleep(1.05)
        await ask(proxy, 1)
        await idle(proxy)
        await ask(proxy, 2)

        assert [p.attempt.outcome for p in probes(proxy)] == ["error", "result"]
        assert [p.attempt.error_class for p in probes(proxy)] == ["quota", ""]
        assert transitions(proxy) == [("p0", "closed", "open", "quota"), ("p0", "open", "closed", "quota")]
        assert len(nodes[0].calls) == 3 + 2


async def test_a_quota_error_is_not_answered_with_more_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next look is ten seconds later, and ten after that."""
    monkeypatch.undo()
    async with upstreams(broke, None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        upstream = proxy.service.networks[0].by_id["p0"]
        await ask(proxy, 3)
        assert len(nodes[0].calls) == 1
        upstream.probe_from = 0.0
        await ask(proxy, 3)
        await idle(proxy)

        assert len(nodes[0].calls) == 2
        assert 9 < upstream.probe_from - time.monotonic() <= 10


async def test_who_asked_for_a_rest_gets_it(tmp_path: Path) -> None:
    """`Retry-After` is honoured by probes too, with a quota error as with a rate limit."""

    def tired(_: dict[str, Any]) -> bytes:
        return http(b"slow", status=429, headers="Retry-After: 60\r\n")

    async with upstreams(tired, None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        await ask(proxy, 5)
        await idle(proxy)

        assert len(nodes[0].calls) == 1
        assert probes(proxy) == []


async def test_a_syncing_node_is_probed(tmp_path: Path) -> None:
    def script(request: dict[str, Any]) -> bytes:
        return result(request, {"currentBlock": "0x1"} if request["method"] == "eth_syncing" else "0x1")

    async with upstreams(script, None) as nodes:
        document = json.loads(configuration(nodes))
        document["projects"][0]["upstreams"][0]["evm"]["skipWhenSyncing"] = True
        async with running(json.dumps(document), tmp_path) as proxy:
            await proxy.until(lambda: proxy.service.networks[0].by_id["p0"].is_syncing)
            answer = await proxy.call("eth_getBalance", ["0x1", "0x10"])
            await idle(proxy)

            assert answer["result"] == "0x2a"
            assert [p.attempt.upstream for p in probes(proxy)] == ["p0"]


@pytest.mark.parametrize(
    ("tags", "routing", "expected"),
    [
        ([], {}, 1),
        ([], {"probe": "off"}, 0),
        ([], {"probePerSecond": 0}, 0),
        (["tier:fallback"], {}, 0),
        (["tier:fallback"], {"probe": "on"}, 1),
    ],
)
async def test_probing_is_off_where_it_costs_unless_said(
    tags: list[str], routing: dict[str, Any], expected: int, tmp_path: Path
) -> None:
    """On for primaries, off for paid fallbacks; either can be said."""
    async with upstreams(bad, broke) as nodes:
        document = json.loads(configuration(nodes))
        document["projects"][0]["upstreams"][1].update({"tags": tags, "routing": routing})
        async with running(json.dumps(document), tmp_path) as proxy:
            await ask(proxy)  # the first fails, the second is held then
            nodes[0].script = well
            await ask(proxy, 4)
            await idle(proxy)

            assert len(probes(proxy)) == expected


async def test_neither_writes_nor_short_circuited_requests_are_probes(tmp_path: Path) -> None:
    async with upstreams(None, broke) as nodes:
        nodes[0].script = bad
        async with running(configuration(nodes, evm={"shortCircuitFutureBlocks": True}), tmp_path) as proxy:
            await ask(proxy)
            nodes[0].script = well
            nodes[1].calls.clear()
            await proxy.call("eth_getBlockByNumber", ["0x1000", False])
            await proxy.call("eth_sendRawTransaction", ["0x00"])
            await proxy.call("eth_newFilter", [{}])
            await idle(proxy)

            assert nodes[1].calls == []
            assert probes(proxy) == []


async def test_so_many_at_once(tmp_path: Path) -> None:
    """A node that stalls is not buried under probes, whatever their rate."""
    async with upstreams(bad, broke) as nodes:
        routing = {"routing": {"probePerSecond": 1000, "probeConcurrency": 2}}
        async with running(configuration(nodes, primary=routing, timeout="500ms"), tmp_path) as proxy:
            await ask(proxy)
            nodes[0].script = well
            nodes[1].script = lambda _: None
            nodes[1].calls.clear()
            await ask(proxy, 10)

            assert len(nodes[1].calls) == 2
            await idle(proxy)
            assert proxy.service.networks[0].by_id["p1"].n_probes == 0


async def test_what_is_cut_at_shutdown_is_recorded(tmp_path: Path) -> None:
    async with upstreams(bad, broke) as nodes:
        async with running(configuration(nodes, timeout="5s"), tmp_path) as proxy:
            await ask(proxy)
            nodes[0].script = well
            nodes[1].script = lambda _: None
            await ask(proxy)
            await proxy.until(lambda: len(nodes[1].calls) == 2)
        [probe] = probes(proxy)

        assert (probe.attempt.outcome, probe.attempt.is_cancelled) == ("cancelled", True)


async def test_a_bug_in_a_probe_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    async with upstreams(bad, broke) as nodes, running(configuration(nodes), tmp_path) as proxy:
        await ask(proxy)
        nodes[0].script = well
        pool = proxy.service.networks[0].by_id["p1"].pool
        monkeypatch.setattr(pool, "send", broken)
        answer = await proxy.call("eth_getBalance", ["0x1", "0x10"])
        await idle(proxy)

        assert answer["result"] == "0x2a"
        assert proxy.service.errors["probe"] == 1
        assert proxy.service.networks[0].by_id["p1"].n_probes == 0
        assert isinstance(pool, connections.Pool)
