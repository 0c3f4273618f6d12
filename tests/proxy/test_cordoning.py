"""Upstreams kept out by hand while the proxy runs: at once, over reloads and restarts, never the last by mistake."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from proxy.cordoning import FILE
from tests.proxy.scripted import Proxy, configuration, result, running, upstreams
from tests.proxy.test_gates import BREAKER, bad_gateway, transitions
from tests.proxy.test_reload import named, reload

SECRET = "a secret that nobody guesses"


async def control(
    proxy: Proxy, method: str, content: object = None, secret: str = SECRET, host: str = "localhost"
) -> tuple[int, Any]:
    """Send one request to the control address; return status and content."""
    body = b"" if content is None else json.dumps(content).encode()
    head = f"{method} /cordons HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {secret}\r\n"
    raw = await proxy.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    top, _, rest = raw.partition(b"\r\n\r\n")
    return int(top.split()[1]), json.loads(rest)


async def put(proxy: Proxy, upstream: str, is_cordoned: bool, **more: object) -> tuple[int, Any]:
    wanted = {"project": "main", "upstream": upstream, "is_cordoned": is_cordoned, **more}
    return await control(proxy, "PUT", wanted)


async def served(proxy: Proxy) -> tuple[str, str]:
    """Ask a question; return who served it and why the primary was left."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x1","0x10"]}'
    _, headers, _ = await proxy.post(body)
    return headers.get("x-gnomon-upstream", ""), headers.get("x-gnomon-cause", "")


async def test_a_cordoned_upstream_gets_no_call_until_it_is_let_in(tmp_path: Path) -> None:
    """From the next request on; both changes are events with the cause, and calls say why they went elsewhere."""
    async with upstreams(named("a"), named("b")) as nodes, running(configuration(nodes), tmp_path, SECRET) as proxy:
        assert await served(proxy) == ("p0", "")
        status, said = await put(proxy, "p0", True, comment="disk", author="ann")
        n_calls = len(nodes[0].calls)
        during = [await served(proxy) for _ in range(3)]
        assert (await put(proxy, "p0", False))[0] == 200
        after = await served(proxy)

        assert (status, said["remaining"]) == (200, {"primaries": 1, "fallbacks": 0})
        assert (said["upstream"]["cordon"]["comment"], said["upstream"]["cordon"]["author"]) == ("disk", "ann")
        assert during == [("p1", "cordoned")] * 3
        assert len(nodes[0].calls) == n_calls + 1
        assert after == ("p0", "")
        assert transitions(proxy) == [("p0", "closed", "open", "cordoned"), ("p0", "open", "closed", "cordoned")]


async def test_all_primaries_out_means_the_paid_fallback_serves(tmp_path: Path) -> None:
    """With `cordoned` as the cause of the paid call; the metric and the health check show it."""
    async with upstreams(named("a"), named("paid")) as nodes:
        async with running(configuration(nodes[:1], nodes[1:]), tmp_path, SECRET) as proxy:
            status, said = await put(proxy, "p0", True)
            who = await served(proxy)
            metrics = await proxy.metrics()
            health = json.loads(proxy.service.health())

            assert (status, said["remaining"]) == (200, {"primaries": 0, "fallbacks": 1})
            assert who == ("f0", "cordoned")
            assert 'gnomon_upstream_cordoned{network="evm:31337",upstream="p0"} 1' in metrics
            assert health["networks"]["main/evm:31337"]["upstreams"]["p0"]["cordoned"] is True
            assert [a.cause for a in proxy.requests()[0].attempts] == ["cordoned"]


async def test_the_last_that_could_serve_stays_unless_forced(tmp_path: Path) -> None:
    """An upstream whose breaker is open does not count; a refusal changes nothing, force does."""
    config = configuration([], primary=BREAKER)
    async with upstreams(named("a"), bad_gateway) as nodes:
        config = configuration(nodes, primary=BREAKER)
        async with running(config, tmp_path, SECRET) as proxy:
            await put(proxy, "p0", True)
            for _ in range(4):
                await served(proxy)
            await put(proxy, "p0", False)
            status, said = await put(proxy, "p0", True)
            still = await served(proxy)
            forced, _ = await put(proxy, "p0", True, force=True)
            gone = await served(proxy)

            assert (status, "no upstream of the network could serve" in said["reason"]) == (409, True)
            assert still == ("p0", "")
            assert (forced, gone[0]) == (200, "")


async def test_a_cordon_survives_reloads(tmp_path: Path) -> None:
    """Of the same endpoint and of another one under the same name; an upstream that comes back is kept out still."""
    async with upstreams(named("a"), named("b"), named("c")) as nodes:
        a, b, c = nodes
        async with running(configuration([a, b]), tmp_path, SECRET) as proxy:
            await put(proxy, "p0", True)
            seen = []
            for change in (
                configuration([a, b], timeout="2s"), configuration([c, b]), configuration([a]), configuration([a, b]),
            ):  # fmt: skip
                assert await reload(proxy, change) == "ok"
                seen.append((await served(proxy))[0])

            assert seen == ["p1", "p1", "", "p1"]
            assert len(transitions(proxy)) == 1


async def test_a_cordon_survives_a_restart(tmp_path: Path) -> None:
    """Without a second event; it is let in by the next life."""
    async with upstreams(named("a"), named("b")) as nodes:
        config = configuration(nodes)
        async with running(config, tmp_path, SECRET) as proxy:
            await put(proxy, "p0", True, comment="disk")
        async with running(config, tmp_path, SECRET) as proxy:
            during = await served(proxy)
            _, report = await control(proxy, "GET")
            await put(proxy, "p0", False)

            assert during == ("p1", "cordoned")
            assert [u["cordon"] and u["cordon"]["comment"] for u in report["upstreams"]] == ["disk", None]
            assert await served(proxy) == ("p0", "")
            assert [change[1:] for change in transitions(proxy)] == [
                ("closed", "open", "cordoned"), ("open", "closed", "cordoned"),
            ]  # fmt: skip


async def test_a_cordon_ends_in_time(tmp_path: Path) -> None:
    """By itself, with its event, and it is not kept any more."""
    async with upstreams(named("a"), named("b")) as nodes, running(configuration(nodes), tmp_path, SECRET) as proxy:
        await put(proxy, "p0", True, until=time.time() + 0.3)
        await proxy.until(lambda: len(transitions(proxy)) == 2)

        assert await served(proxy) == ("p0", "")
        await proxy.until(lambda: b'"p0"' not in (tmp_path / FILE).read_bytes())


async def test_a_file_that_cannot_be_read_is_put_aside(tmp_path: Path) -> None:
    """The proxy starts, and the next cordon is kept."""
    (tmp_path / FILE).write_bytes(b"{")
    async with upstreams(named("a"), named("b")) as nodes, running(configuration(nodes), tmp_path, SECRET) as proxy:
        assert await served(proxy) == ("p0", "")
        assert (await put(proxy, "p0", True))[0] == 200
        assert (tmp_path / "cordons.unreadable").read_bytes() == b"{"


async def test_a_cordoned_upstream_is_not_probed(tmp_path: Path) -> None:
    """Whoever keeps it out by hand wants it left alone; its head is followed all the same."""
    async with upstreams(named("a"), named("b")) as nodes, running(configuration(nodes), tmp_path, SECRET) as proxy:
        await put(proxy, "p0", True)
        for _ in range(10):
            await served(proxy)
        nodes[0].latest = 200

        assert nodes[0].calls == []
        await proxy.until(lambda: proxy.service.networks[0].book.positions["p0"].latest == 200)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ({"project": "main", "upstream": "nobody", "is_cordoned": True}, 404),
        ({"project": "other", "upstream": "p0", "is_cordoned": True}, 404),
        ({"project": "main", "upstream": "s0", "is_cordoned": True}, 409),
        ({"project": "main", "upstream": "p0", "is_cordoned": False}, 404),
        ({"project": "main", "upstream": "p0", "is_cordoned": True, "until": 1.0}, 400),
        ({"project": "main", "upstream": "p0", "is_cordoned": True, "comment": "x" * 1001}, 400),
        ({"project": "main", "upstream": "p0", "is_cordoned": True, "nope": 1}, 400),
        ({"upstream": "p0", "is_cordoned": True}, 400),
        ([], 400),
    ],
    ids=["no upstream", "no project", "a shadow", "not cordoned", "in the past", "a long comment", "unknown", "lacks",
         "no object"],
)  # fmt: skip
async def test_what_cannot_be_is_refused(content: object, status: int, tmp_path: Path) -> None:
    """With a reason, and nothing changes."""
    async with upstreams(named("a"), named("b"), None) as nodes:
        config = configuration(nodes[:2], shadows=nodes[2:])
        async with running(config, tmp_path, SECRET) as proxy:
            found, said = await control(proxy, "PUT", content)

            assert (found, bool(said["reason"])) == (status, True)
            assert transitions(proxy) == []
            assert not (tmp_path / FILE).exists()


async def test_only_who_has_the_secret_is_answered(tmp_path: Path) -> None:
    """A wrong one and a page of another name are refused; without a secret there is no such address."""
    wanted = {"project": "main", "upstream": "p0", "is_cordoned": True}
    async with upstreams(named("a"), named("b")) as nodes:
        async with running(configuration(nodes), tmp_path / "one", SECRET) as proxy:
            assert (await control(proxy, "PUT", wanted, "wrong"))[0] == 401
            assert (await control(proxy, "GET", None, ""))[0] == 401
            assert (await control(proxy, "GET", None, SECRET))[0] == 200
            assert (await control(proxy, "GET", None, SECRET, "evil.example"))[0] == 403
        async with running(configuration(nodes), tmp_path / "two") as proxy:
            assert (await control(proxy, "PUT", wanted, ""))[0] == 404
            assert await served(proxy) == ("p0", "")


async def test_a_check_changes_nothing(tmp_path: Path) -> None:
    """It says what would come of it."""
    async with upstreams(named("a"), named("b")) as nodes, running(configuration(nodes), tmp_path, SECRET) as proxy:
        status, said = await put(proxy, "p0", True, only_check=True)

        assert (status, said["upstream"]["cordon"], said["remaining"]["primaries"]) == (200, None, 1)
        assert await served(proxy) == ("p0", "")
        assert transitions(proxy) == []


async def test_a_project_may_have_the_name(tmp_path: Path) -> None:
    """JSON-RPC comes by POST: `/cordons` as a project's address is not taken."""
    config = json.loads(configuration([]))
    async with upstreams(lambda request: result(request, "mine")) as nodes:
        config = json.loads(configuration(nodes))
        config["projects"][0]["id"] = "cordons"
        async with running(json.dumps(config), tmp_path, SECRET) as proxy:
            body = b'{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x1","0x10"]}'
            _, _, answer = await proxy.post(body, path="/cordons")

            assert json.loads(answer)["result"] == "mine"
