"""What a request may ask of the routing."""

import json
from pathlib import Path

import pytest

from tests.proxy.scripted import PATH, Upstream, configuration, result, running

BODY = b'{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[]}'


async def three(tmp_path: Path) -> tuple[list[Upstream], str]:
    nodes = [
        await Upstream(lambda request, name=name: result(request, name)).start()  # type: ignore[misc]
        for name in ("p0", "p1", "f0", "s0")
    ]
    return nodes, configuration(nodes[:2], nodes[2:3], nodes[3:])


@pytest.mark.parametrize(
    ("headers", "query", "served"),
    [
        ("", "", "p0"),
        ("X-ERPC-Use-Upstream: p1\r\n", "", "p1"),
        ("X-Gnomon-Use-Upstream: p1\r\n", "", "p1"),
        ("", "?use-upstream=f0", "f0"),
        ("X-ERPC-Use-Upstream: p1\r\n", "?use-upstream=f0", "f0"),
        ("X-ERPC-Skip-Cache-Read: true\r\n", "?skip-cache-read=true", "p0"),
    ],
)
async def test_a_request_may_name_its_upstream(headers: str, query: str, served: str, tmp_path: Path) -> None:
    """By header or query, which wins; a fallback too. `skip-cache-read` is accepted and void."""
    nodes, config = await three(tmp_path)
    async with running(config, tmp_path) as proxy:
        status, _, answer = await proxy.post(BODY, headers, path=PATH + query)

        assert (status, json.loads(answer)["result"]) == (200, served)
        assert [len(node.calls) for node in nodes[:3]] == [int(name == served) for name in ("p0", "p1", "f0")]
    for node in nodes:
        await node.stop()


async def test_who_is_named_is_the_only_one_asked(tmp_path: Path) -> None:
    """Its failure is the request's: the others were not wanted."""
    nodes, config = await three(tmp_path)
    nodes[1].script = lambda _: b""
    async with running(config, tmp_path) as proxy:
        _, _, answer = await proxy.post(BODY, path=f"{PATH}?use-upstream=p1")

        assert json.loads(answer)["error"]["data"]["class"] == "transport"
        assert [a.upstream for a in proxy.requests()[0].attempts] == ["p1"]
        assert (nodes[0].calls, nodes[2].calls) == ([], [])
    for node in nodes:
        await node.stop()


@pytest.mark.parametrize("name", ["s0", "nobody"])
async def test_neither_a_shadow_nor_a_stranger_can_be_named(name: str, tmp_path: Path) -> None:
    """404, and nobody is asked."""
    nodes, config = await three(tmp_path)
    async with running(config, tmp_path) as proxy:
        status, _, answer = await proxy.post(BODY, f"X-ERPC-Use-Upstream: {name}\r\n")

        assert status == 404
        assert name in json.loads(answer)["error"]["message"]
        assert [node.calls for node in nodes] == [[], [], [], []]
    for node in nodes:
        await node.stop()
