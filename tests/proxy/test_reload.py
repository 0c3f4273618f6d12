"""A new configuration while requests are under way."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gnomon.config.load import loads
from gnomon.config.model import Settings
from proxy import allowances
from proxy.reloading import Reloader, settle
from tests.proxy.scripted import CHAIN, PATH, Proxy, Upstream, configuration, http, result, running, upstreams
from tests.proxy.test_gates import refused
from tests.proxy.test_subscriptions import Node
from tests.proxy.test_subscriptions import nodes as listened


def named(name: str) -> Any:
    return lambda request: result(request, name)


async def reload(proxy: Proxy, text: str) -> str:
    """Reload with a configuration; return what came of it."""
    before = proxy.service.reloads.copy()
    Reloader(proxy.service, lambda: loads(text, environment={})).request()
    await proxy.until(lambda: proxy.service.reloads != before)
    [found] = proxy.service.reloads - before
    await proxy.until(lambda: all(u.is_verified for n in proxy.service.networks for u in n.upstreams))
    return found


async def ask(proxy: Proxy, method: str = "eth_getBalance") -> Any:
    return (await proxy.call(method, ["0x1", "0x10"])).get("result")


class Caller:
    """A client with one kept connection that asks one question after the other."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self.answers: list[str] = []
        self.n_sent = 0
        self.is_done = False

    async def run(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._proxy.service.port)
        while not self.is_done:
            self.n_sent += 1
            body = b'{"jsonrpc":"2.0","id":%d,"method":"eth_getBalance","params":["0x1","0x10"]}' % self.n_sent
            head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            top = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(top.partition("content-length:")[2].partition("\r\n")[0])
            answer = json.loads(await reader.readexactly(length))
            assert answer["id"] == self.n_sent
            self.answers.append(answer.get("result", "error"))
        writer.close()


async def test_no_request_is_lost_by_reloads_under_load(tmp_path: Path) -> None:
    """Twenty reloads, clients on kept connections, the upstream another each time: each request has its answer."""
    async with upstreams(named("a"), named("b"), None) as nodes:
        for node in nodes:
            node.delay_seconds = 0.005
        texts = [configuration([nodes[i]], shadows=nodes[2:]) for i in (0, 1)]
        async with running(texts[0], tmp_path) as proxy:
            callers = [Caller(proxy) for _ in range(8)]
            running_callers = [asyncio.ensure_future(caller.run()) for caller in callers]
            for i in range(20):
                assert await reload(proxy, texts[(i + 1) % 2]) == "ok"
                n = len(callers[0].answers)
                await proxy.until(lambda n=n: len(callers[0].answers) > n + 2)  # type: ignore[misc]
            for caller in callers:
                caller.is_done = True
            await asyncio.gather(*running_callers)
            await proxy.until(lambda: not proxy.service.mirrors)

            answers = [answer for caller in callers for answer in caller.answers]
            assert len(answers) == sum(caller.n_sent for caller in callers) > 200
            assert set(answers) == {"a", "b"}
            events = proxy.requests()
            assert len(events) == len(answers)
            assert {event.outcome for event in events} == {"result"}
            assert len({event.config_hash for event in events}) == 2
            assert len(proxy.mirrored()) == sum(event.shadows == {"s0": "mirrored"} for event in events)
            assert len(nodes[0].calls) + len(nodes[1].calls) == len(answers)
            assert proxy.service.reloads == {"ok": 20}
            assert proxy.service.n_pollers == 2
            assert proxy.service.errors == {}
            metrics = await proxy.metrics()
            assert 'gnomon_config_reloads_total{result="ok"} 20' in metrics


async def test_what_is_under_way_ends_where_it_began(tmp_path: Path) -> None:
    """At an upstream that the new configuration does not have; afterwards its connections are closed."""
    async with upstreams(named("old"), named("new")) as nodes:
        nodes[0].delay_seconds = 0.3
        async with running(configuration(nodes[:1], timeout="2s"), tmp_path) as proxy:
            pool = proxy.service.networks[0].by_id["p0"].pool
            first = asyncio.ensure_future(ask(proxy))
            await proxy.until(lambda: len(nodes[0].calls) == 1)
            assert await reload(proxy, configuration(nodes[1:])) == "ok"

            assert await ask(proxy) == "new"
            assert not first.done()
            assert await first == "old"
            await proxy.until(lambda: pool.n_open == 0)


async def test_what_has_not_changed_goes_on(tmp_path: Path) -> None:
    """A second upstream is new: the first keeps its connections, its heads, its open breaker and its latencies."""
    primary = {"breaker": {"threshold": 1, "openFor": "60s"}}
    async with upstreams(lambda _: http(b"<html>", status=502), None, None) as nodes:
        async with running(configuration(nodes[:2], primary=primary), tmp_path) as proxy:
            assert await ask(proxy) == "0x2a"
            old = proxy.service.networks[0]
            kept = old.by_id["p0"]
            pool, seen_at = old.by_id["p1"].pool, old.book.positions["p1"].seen_at["latest"]
            Reloader(proxy.service, lambda: loads(configuration(nodes, primary=primary), environment={})).request()
            await proxy.until(lambda: proxy.service.networks[0] is not old)
            new = proxy.service.networks[0]

            assert new.by_id["p0"] is kept
            assert kept.gates["*"].breaker.state == "open"
            assert (new.book.latest, new.book.positions["p1"].latest) == (100, 100)
            assert new.book.positions["p1"].seen_at["latest"] >= seen_at
            assert new.is_checked
            assert await ask(proxy) == "0x2a"
            assert len(nodes[0].calls) == 1
            assert new.by_id["p1"].pool is pool
            assert pool.n_open > 0


async def test_a_network_in_which_nothing_changed_is_not_touched(tmp_path: Path) -> None:
    """Not even polled anew: the change was elsewhere."""
    async with upstreams(None) as nodes:
        document = json.loads(configuration(nodes))
        async with running(json.dumps(document), tmp_path) as proxy:
            before = proxy.service.networks[0]
            chain_checks = len([e for e in proxy.internal() if e.attempt.kind == "chain_check"])
            document["gnomon"]["events"] = {"bodies": "none"}
            assert await reload(proxy, json.dumps(document)) == "ok"

            assert proxy.service.networks == [before]
            assert proxy.service.emitter.bodies == "none"
            await asyncio.sleep(0.3)
            assert len([e for e in proxy.internal() if e.attempt.kind == "chain_check"]) == chain_checks


async def test_a_breaker_with_another_policy_is_a_new_one(tmp_path: Path) -> None:
    async with upstreams(lambda _: http(b"<html>", status=502), None) as nodes:
        async with running(configuration(nodes, primary={"breaker": {"threshold": 1}}), tmp_path) as proxy:
            await ask(proxy)
            n_calls = proxy.service.networks[0].by_id["p0"].n_calls
            await reload(proxy, configuration(nodes, primary={"breaker": {"threshold": 2}}))

            upstream = proxy.service.networks[0].by_id["p0"]
            assert upstream.gates["*"].breaker.state == "closed"
            assert upstream.n_calls == n_calls
            await ask(proxy)
            assert len(nodes[0].calls) == 2


async def test_a_hold_outlives_a_reload_and_ends_with_the_new_state(tmp_path: Path) -> None:
    """Also where a request of the old state is what brings it about."""
    slow: list[dict[str, Any]] = []

    def quota(request: dict[str, Any]) -> bytes:
        slow.append(request)
        return refused(request, -32000, "monthly quota exceeded, please upgrade your plan", status=402)

    async with upstreams(quota, None, None) as nodes:
        nodes[0].delay_seconds = 0.2
        async with running(configuration(nodes[:2], timeout="2s"), tmp_path) as proxy:
            first = asyncio.ensure_future(ask(proxy))
            await proxy.until(lambda: len(slow) == 1)
            await reload(proxy, configuration(nodes, timeout="2s"))
            proxy.service.networks[0].planner.plan("eth_getBalance")
            assert await first == "0x2a"

            assert await ask(proxy) == "0x2a"
            assert len(nodes[0].calls) == 1
            assert proxy.requests()[-1].attempts[0].cause == "quota"


@pytest.mark.parametrize(
    "text",
    ["{", '{"projects": [{"id": "main", "upstreems": []}]}', '{"projects": []}'],
    ids=["no YAML", "unknown key", "nothing to serve"],
)
async def test_a_file_that_cannot_be_used_changes_nothing(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said in the log and counted; the old configuration stays in force."""
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        networks = proxy.service.networks
        assert await reload(proxy, text) == "invalid"

        assert "the old one stays in force" in caplog.text
        assert proxy.service.networks is networks
        assert await ask(proxy) == "0x2a"


async def test_a_file_that_is_gone_and_books_that_cannot_be_read_are_no_configuration(tmp_path: Path) -> None:
    from gnomon.config.load import load

    async with upstreams(None, None) as nodes:
        shadow = {"monthlyBudgetUsd": 1}
        async with running(configuration(nodes[:1], shadows=nodes[1:], shadow=shadow), tmp_path) as proxy:
            Reloader(proxy.service, lambda: load(str(tmp_path / "gone.yaml"))).request()
            await proxy.until(lambda: proxy.service.reloads["invalid"] == 1)
            document = json.loads(configuration(nodes[:1], shadows=nodes[1:], shadow=shadow))
            document["gnomon"]["pricing"] = {"books": [str(tmp_path / "gone.yaml")]}
            assert await reload(proxy, json.dumps(document)) == "invalid"


async def test_secrets_hold_at_once_on_kept_connections_too(tmp_path: Path) -> None:
    async with upstreams(None) as nodes:
        secret = {"type": "secret", "secret": {"id": "u", "value": "s"}}
        closed = configuration(nodes, project={"auth": {"strategies": [secret]}})
        async with running(configuration(nodes), tmp_path) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.service.port)
            body = b'{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x1","0x10"]}'
            head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
            for expected in (b"200", b"401"):
                writer.write(request)
                top = await reader.readuntil(b"\r\n\r\n")
                assert top.split()[1] == expected
                await reader.readexactly(int(top.lower().partition(b"content-length:")[2].split()[0]))
                assert await reload(proxy, closed) == "ok"
            writer.close()


async def test_networks_come_and_go(tmp_path: Path) -> None:
    generic = {
        "projects": [
            {
                "id": "main",
                "networks": [{"architecture": "jsonrpc", "id": "hive"}],
                "upstreams": [{"id": "h", "network": "hive", "endpoint": "http://127.0.0.1:1"}],
            }
        ],
        "gnomon": {"proxy": {"port": 0}},
    }
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        body = b'{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x1","0x10"]}'
        assert (await proxy.post(body))[0] == 200
        assert await reload(proxy, json.dumps(generic)) == "ok"
        assert (await proxy.post(body))[0] == 404
        assert (await proxy.post(body, path="/main/hive"))[0] == 200
        assert proxy.service.n_pollers == 0
        assert await reload(proxy, configuration(nodes)) == "ok"
        assert (await proxy.post(body))[0] == 200
        assert proxy.service.n_pollers == 1


async def test_requests_that_wait_for_a_chain_id_find_the_new_upstream(tmp_path: Path) -> None:
    """The old one never answered; the request began before the reload and is answered after it."""
    from gnomon.events.log import Writer
    from proxy.service import Service

    class Mute(Upstream):
        def _answer(self, request: dict[str, Any]) -> bytes | None:
            return None

    mute = await Mute().start()
    async with upstreams(named("new")) as nodes:
        writer = Writer(str(tmp_path), segment_bytes=8 << 20, max_bytes=64 << 20)
        service = Service(loads(configuration([mute]), environment={}), writer)
        await service.start()
        proxy = Proxy(service, tmp_path)
        try:
            first = asyncio.ensure_future(ask(proxy))
            await proxy.until(lambda: len(service.networks[0].waiting) == 1)
            assert await reload(proxy, configuration(nodes)) == "ok"
            assert await asyncio.wait_for(first, 3) == "new"
        finally:
            await service.drain()
            writer.close()
            await mute.stop()


async def test_a_shadow_is_paused_and_resumed_on_its_connections(tmp_path: Path) -> None:
    """`sampleRate: 0` and back: the usual reload."""
    async with upstreams(None, None) as nodes:

        def text(rate: float) -> str:
            return configuration(nodes[:1], shadows=nodes[1:], shadow={"sampleRate": rate})

        async with running(text(1.0), tmp_path) as proxy:
            await ask(proxy)
            await proxy.until(lambda: not proxy.service.mirrors)
            pool = proxy.service.networks[0].by_id["s0"].pool
            for rate in (0, 1.0):
                Reloader(proxy.service, lambda rate=rate: loads(text(rate), environment={})).request()  # type: ignore[misc]
                wanted = 1 if rate == 0 else 2
                await proxy.until(lambda wanted=wanted: proxy.service.reloads["ok"] == wanted)  # type: ignore[misc]
                await ask(proxy)
            await proxy.until(lambda: not proxy.service.mirrors)

            assert [event.shadows["s0"] for event in proxy.requests()] == ["mirrored", "sampled_out", "mirrored"]
            assert proxy.service.networks[0].by_id["s0"].pool is pool


async def test_what_a_shadow_has_spent_outlives_a_reload(tmp_path: Path) -> None:
    """Another budget is another limit on the same spending; without one nothing is counted on, nothing forgotten."""
    async with upstreams(None, None) as nodes:

        def text(budget: str | None) -> str:
            shadow = {} if budget is None else {"monthlyBudgetUsd": budget}
            document = json.loads(configuration(nodes[:1], shadows=nodes[1:], shadow=shadow))
            document["projects"][0]["upstreams"][1]["vendor"] = "alchemy"
            return json.dumps(document)

        async with running(text("0.000021"), tmp_path) as proxy:
            for budget, expected in (
                ("0.000021", ["mirrored", "mirrored", "budget"]),
                ("0.0000315", ["mirrored", "budget", "budget"]),
                (None, ["mirrored"] * 3),
                ("0.00005", ["mirrored", "budget", "budget"]),
            ):
                assert await reload(proxy, text(budget)) == "ok"
                for _ in range(3):
                    await ask(proxy)
                await proxy.until(lambda: not proxy.service.mirrors)
                assert [event.shadows["s0"] for event in proxy.requests()][-3:] == expected
        assert json.loads((tmp_path / allowances.FILE_NAME).read_text())["usd"] == {"main/s0": "0.000042000000"}


async def test_a_budget_that_is_taken_away_is_not_refilled_by_giving_it_back(tmp_path: Path) -> None:
    """Also where a rate was left; and a file that could not be read counts from the reload that can."""
    async with upstreams(None, None) as nodes:

        def text(**shadow: Any) -> str:
            document = json.loads(configuration(nodes[:1], shadows=nodes[1:], shadow=shadow))
            document["projects"][0]["upstreams"][1]["vendor"] = "alchemy"
            return json.dumps(document)

        file = tmp_path / allowances.FILE_NAME
        file.write_text("{")
        budget = {"monthlyBudgetUsd": "0.000021", "maxPerSecond": 100}
        async with running(text(**budget), tmp_path) as proxy:
            await ask(proxy)
            spent = {"month": allowances.this_month(), "usd": {"main/s0": "0.0000105", "main/other": "7"}}
            file.write_text(json.dumps(spent))
            assert await reload(proxy, text(**budget, sampleRate=0.99999)) == "ok"
            for _ in range(2):
                await ask(proxy)
            assert await reload(proxy, text(maxPerSecond=100)) == "ok"
            assert await reload(proxy, text(**budget)) == "ok"
            await ask(proxy)

            assert [event.shadows["s0"] for event in proxy.requests()] == ["budget", "mirrored", "budget", "budget"]
        usd = json.loads(file.read_text())["usd"]
        assert usd == {"main/s0": "0.000021000000", "main/other": "7.000000000000"}


async def test_many_reloads_leave_nothing_behind(tmp_path: Path) -> None:
    """Neither tasks nor connections nor pollers."""
    async with upstreams(None, None) as nodes:
        texts = [configuration(nodes), configuration(nodes, timeout="400ms"), configuration(nodes[:1])]
        async with running(texts[0], tmp_path) as proxy:
            for i in range(12):
                assert await reload(proxy, texts[i % 3]) == "ok"
                assert await ask(proxy) == "0x2a"
            await reload(proxy, texts[0])
            await asyncio.sleep(0.1)

            assert proxy.service.n_pollers == 2
            assert len(proxy.service.tasks) <= 4
            assert all(u.pool.n_open <= 2 for n in proxy.service.networks for u in n.upstreams)
            assert len(proxy.service._watchers) == 1


def parsed(gnomon: dict[str, Any]) -> Settings:
    upstream = {"id": "a", "endpoint": "http://127.0.0.1:1", "evm": {"chainId": 1}}
    return loads(json.dumps({"projects": [{"id": "main", "upstreams": [upstream]}], "gnomon": gnomon}), environment={})


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({}, {}, []),
        ({}, {"proxy": {"port": 4001}}, ["gnomon.proxy.port"]),
        ({"proxy": {"port": 4001}}, {}, ["gnomon.proxy.port"]),
        ({}, {"events": {"log": {"path": "/tmp/x"}}}, ["gnomon.events.log"]),
        ({}, {"proxy": {"shutdown": "3s"}, "events": {"bodies": "none"}}, []),
    ],
)
def test_what_cannot_change_at_run_time_keeps_its_value(
    before: dict[str, Any], now: dict[str, Any], expected: list[str]
) -> None:
    """And is named, so that nobody believes otherwise."""
    old, new = parsed(before), parsed(now)
    settled, fixed = settle(old, new)

    assert fixed == expected
    assert settled.gnomon.proxy.port == old.gnomon.proxy.port
    assert settled.gnomon.events.log == old.gnomon.events.log
    assert settled.gnomon.events.bodies == new.gnomon.events.bodies
    assert settled.gnomon.proxy.shutdown_seconds == new.gnomon.proxy.shutdown_seconds


async def test_subscriptions_follow_a_reload(tmp_path: Path) -> None:
    """A WebSocket endpoint that goes is let go, one that comes is listened to, and there is one connection to each."""
    async with upstreams(None) as nodes, listened(Node(), Node()) as (first, second):

        def text(node: Node) -> str:
            document = json.loads(configuration(nodes))
            entry = {"id": "ws", "endpoint": f"ws://127.0.0.1:{node.port}", "evm": {"chainId": CHAIN}}
            document["projects"][0]["upstreams"].append(entry)
            return json.dumps(document)

        async with running(text(first), tmp_path) as proxy:
            await proxy.until(lambda: len(first.listeners) == 1)
            assert await reload(proxy, text(second)) == "ok"
            await proxy.until(lambda: len(second.listeners) == 1 and not first.listeners)
            assert await reload(proxy, configuration(nodes)) == "ok"
            await proxy.until(lambda: not second.listeners)

            assert (first.n_connections, second.n_connections) == (1, 1)
