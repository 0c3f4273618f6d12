"""Rate limits at work: who is refused, how it is told, and which upstreams are passed over."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.scripted import CHAIN, PATH, Proxy, Upstream, configuration, result, running, upstreams
from tests.proxy.test_reload import reload

BODY = b'{"jsonrpc":"2.0","id":7,"method":"%b","params":["0x1"]}'


def limited(
    nodes: list[Upstream],
    *rules: dict[str, Any],
    fallbacks: list[Upstream] | None = None,
    project: dict[str, Any] | None = None,
    network: dict[str, Any] | None = None,
    primary: dict[str, Any] | None = None,
    timeout: str = "300ms",
) -> str:
    """Return a configuration with a budget `b` of those rules; the others are members of what may name it."""
    config = json.loads(
        configuration(nodes, fallbacks, project=project, network=network, primary=primary, timeout=timeout)
    )
    config["rateLimiters"] = {"budgets": [{"id": "b", "rules": [{"period": "10s", **rule} for rule in rules]}]}
    return json.dumps(config)


B: dict[str, Any] = {"rateLimitBudget": "b"}
SECRETS = [{"type": "secret", "secret": {"id": name, "value": name, **B}} for name in ("ann", "bob")]


async def statuses(proxy: Proxy, n: int, method: bytes = b"eth_call", headers: str = "") -> list[int]:
    return [(await proxy.post(BODY % method, headers))[0] for _ in range(n)]


@pytest.mark.parametrize("place", ["project", "network"])
async def test_who_asks_too_much_is_told_when_to_come_back(place: str, tmp_path: Path) -> None:
    """HTTP 429 with Retry-After and a JSON-RPC error under the request's id; no upstream hears of it."""
    async with (
        upstreams(None) as nodes,
        running(limited(nodes, {"maxCount": 2}, **{place: B}), tmp_path) as proxy,  # type: ignore[arg-type]
    ):
        assert await statuses(proxy, 2) == [200, 200]
        status, headers, body = await proxy.post(BODY % b"eth_call")
        error = json.loads(body)["error"]
        metrics = await proxy.metrics()

        assert (status, json.loads(body)["id"], error["code"]) == (429, 7, -32005)
        assert error["message"] == f"limit exceeded: the rate limit of this {place}"
        assert 9 <= int(headers["retry-after"]) <= 10
        assert int(headers["retry-after"]) == error["data"]["retryAfterSeconds"]
        assert len(nodes[0].calls) == 2
        event = proxy.requests()[-1]
        assert (event.outcome, event.error_class, event.reject_reason) == (
            "rejected",
            "rate_limited",
            f"rate limit of the {place}",
        )
        assert (event.method, event.attempts, event.upstream) == ("eth_call", (), "")
        assert 'gnomon_requests_total{network="evm:31337",outcome="rejected"} 1' in metrics
        assert 'gnomon_client_refusals_total{reason="rate_limited"} 1' in metrics
        assert 'gnomon_rate_limit_refused_total{budget="b",of="clients"} 1' in metrics


async def test_room_comes_back(tmp_path: Path) -> None:
    """A period after a call its place is free."""
    async with (
        upstreams(None) as nodes,
        running(limited(nodes, {"maxCount": 1, "period": "400ms"}, project=B), tmp_path) as proxy,
    ):
        assert await statuses(proxy, 2) == [200, 429]
        await asyncio.sleep(0.41)

        assert await statuses(proxy, 2) == [200, 429]


async def test_a_rule_counts_the_methods_it_names(tmp_path: Path) -> None:
    async with (
        upstreams(None) as nodes,
        running(limited(nodes, {"maxCount": 1, "method": "eth_get*"}, project=B), tmp_path) as proxy,
    ):
        assert await statuses(proxy, 2, b"eth_getBalance") == [200, 429]
        assert await statuses(proxy, 2, b"eth_call") == [200, 200]


async def test_elements_of_a_batch_count_one_each(tmp_path: Path) -> None:
    """What is one too many has its error in its place; the others are answered."""
    async with (
        upstreams(None) as nodes,
        running(limited(nodes, {"maxCount": 2}, project=B), tmp_path) as proxy,
    ):
        batch = [{"jsonrpc": "2.0", "id": i, "method": "eth_call"} for i in range(3)]
        status, _, body = await proxy.post(json.dumps(batch).encode())

        assert status == 200
        assert [(a["id"], a.get("result"), a.get("error", {}).get("code")) for a in json.loads(body)] == [
            (0, "0x2a", None),
            (1, "0x2a", None),
            (2, None, -32005),
        ]
        assert len({event.batch_id for event in proxy.requests()}) == 1


async def test_a_user_has_a_budget_of_its_own(tmp_path: Path) -> None:
    """One user's calls leave another's alone, on whatever connection they come."""
    async with (
        upstreams(None) as nodes,
        running(limited(nodes, {"maxCount": 1}, project={"auth": {"strategies": SECRETS}}), tmp_path) as proxy,
    ):
        ann, bob = ("Authorization: Bearer ann\r\n", "Authorization: Bearer bob\r\n")

        assert await statuses(proxy, 2, headers=ann) == [200, 429]
        assert await statuses(proxy, 2, headers=bob) == [200, 429]
        assert [event.user for event in proxy.requests()] == ["ann", "ann", "bob", "bob"]
        assert proxy.requests()[-1].reject_reason == "rate limit of the user"


async def test_users_are_counted_apart_where_a_rule_says_so(tmp_path: Path) -> None:
    """`perUser` in a budget of the project."""
    strategies = [{"type": "secret", "secret": {"id": name, "value": name}} for name in ("ann", "bob")]
    project = {**B, "auth": {"strategies": strategies}}
    async with (
        upstreams(None) as nodes,
        running(limited(nodes, {"maxCount": 1, "perUser": True}, project=project), tmp_path) as proxy,
    ):
        for name in ("ann", "bob"):
            assert await statuses(proxy, 2, headers=f"X-Gnomon-Secret: {name}\r\n") == [200, 429]


@pytest.mark.parametrize(
    ("forwarders", "expected"),
    [(["127.0.0.1"], [200, 429, 200, 429, 200]), ([], [200, 429, 429, 429, 429])],
    ids=["trusted", "not trusted"],
)
async def test_addresses_are_counted_apart_where_a_rule_says_so(
    forwarders: list[str], expected: list[int], tmp_path: Path
) -> None:
    """`perIP`: whom a trusted proxy forwards for counts, and nobody else is believed. IPv6 counts by its network."""
    async with upstreams(None) as nodes:
        config = json.loads(limited(nodes, {"maxCount": 1, "perIP": True}, project=B))
        config["server"] = {"trustedIPForwarders": forwarders}
        async with running(json.dumps(config), tmp_path) as proxy:
            found = [
                (await statuses(proxy, 1, headers=f"X-Forwarded-For: {address}\r\n"))[0]
                for address in ("10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")
            ]

            assert found == expected


async def test_a_project_and_its_network_share_what_both_name(tmp_path: Path) -> None:
    """A request counts once."""
    async with (
        upstreams(None) as nodes,
        running(limited(nodes, {"maxCount": 2}, project=B, network=B), tmp_path) as proxy,
    ):
        assert await statuses(proxy, 3) == [200, 200, 429]


async def test_a_request_may_wait_for_room(tmp_path: Path) -> None:
    """`waitTime`: within it the answer comes late, beyond it there is none."""
    async with (
        upstreams(None) as nodes,
        running(limited(nodes, {"maxCount": 1, "period": "300ms", "waitTime": "400ms"}, project=B), tmp_path) as proxy,
    ):
        loop = asyncio.get_running_loop()
        started = loop.time()
        found = await asyncio.gather(*(proxy.post(BODY % b"eth_call") for _ in range(4)))
        events = proxy.requests()

        assert sorted(status for status, _, _ in found) == [200, 200, 429, 429]
        assert 0.25 <= loop.time() - started < 1.0
        assert max(event.duration_us for event in events) >= 250_000


async def test_who_waits_at_shutdown_is_recorded(tmp_path: Path) -> None:
    """As cancelled, like every request that is cut."""
    async with upstreams(None) as nodes:
        config = json.loads(limited(nodes, {"maxCount": 1, "period": "20s", "waitTime": "20s"}, project=B))
        config["gnomon"]["proxy"]["shutdown"] = "100ms"
        async with running(json.dumps(config), tmp_path) as proxy:
            await statuses(proxy, 1)
            waiting = asyncio.ensure_future(proxy.post(BODY % b"eth_call"))
            await proxy.until(lambda: proxy.service.emitter.n_requests == 2)
        with pytest.raises((ValueError, ConnectionError, IndexError)):
            await waiting

    assert [event.outcome for event in proxy.requests()] == ["result", "cancelled"]


async def test_an_upstream_over_its_budget_is_passed_over(tmp_path: Path) -> None:
    """The next one is asked, the escape included; its own head polls count but are never held back."""
    async with (
        upstreams(None, None, None) as nodes,
        running(limited(nodes[:2], {"maxCount": 2, "method": "eth_call"}, fallbacks=nodes[2:], primary=B), tmp_path)
        as proxy,
    ):  # fmt: skip
        n_polled = len(proxy.internal())

        assert await statuses(proxy, 3) == [200] * 3
        await proxy.until(lambda: len(proxy.internal()) > n_polled)
        assert [len(node.calls) for node in nodes] == [2, 0, 1]
        assert [(a.upstream, a.cause) for r in proxy.requests() for a in r.attempts] == [
            ("p0", ""),
            ("p0", ""),
            ("f0", "rate_limited"),
        ]


async def test_a_shadow_over_its_budget_gets_no_copy(tmp_path: Path) -> None:
    """The decision is `budget`; two shadows that name one budget share it."""
    async with upstreams(None, None, None) as nodes:
        config = json.loads(configuration(nodes[:1], None, nodes[1:], shadow={}))
        config["rateLimiters"] = {
            "budgets": [{"id": "b", "rules": [{"maxCount": 3, "period": "10s", "method": "eth_call"}]}]
        }
        for upstream in config["projects"][0]["upstreams"][1:]:
            upstream.update(B)
        async with running(json.dumps(config), tmp_path) as proxy:
            await statuses(proxy, 2)
            await proxy.until(lambda: len(proxy.mirrored()) == 3)

            assert [event.shadows for event in proxy.requests()] == [
                {"s0": "mirrored", "s1": "mirrored"},
                {"s0": "mirrored", "s1": "budget"},
            ]
            assert [len(node.calls) for node in nodes] == [2, 2, 1]


async def test_a_control_draws_on_the_budget_of_whom_it_asks_again(tmp_path: Path) -> None:
    """Its copy is one more call to that upstream."""
    async with upstreams(None) as nodes:
        config = json.loads(limited(nodes, {"maxCount": 3, "method": "eth_call"}, primary=B))
        control = {"id": "noise", "shadow": {"enabled": True, "control": True}, "evm": {"chainId": CHAIN}}
        config["projects"][0]["upstreams"].append(control)
        async with running(json.dumps(config), tmp_path) as proxy:
            await statuses(proxy, 2)

            assert [event.shadows for event in proxy.requests()] == [{"noise": "mirrored"}, {"noise": "budget"}]


async def test_head_polls_count_and_are_not_held_back(tmp_path: Path) -> None:
    """A budget that the polls use up leaves nothing for clients, and heads stay known."""
    rule = {"maxCount": 1, "method": "eth_getBlockByNumber"}
    async with (
        upstreams(None) as nodes,
        running(limited(nodes, rule, primary=B), tmp_path) as proxy,
    ):
        answer = await proxy.call("eth_getBlockByNumber", ["0x1", False])

        assert answer["error"]["message"] == "no upstream answered (rate_limited)"
        assert nodes[0].calls == []
        assert proxy.service.networks[0].book.latest == 100
        assert (await proxy.call("eth_call"))["result"] == "0x2a"


async def test_a_reload_keeps_the_counts_of_what_did_not_change(tmp_path: Path) -> None:
    """Reloading is no way around a limit; a rule that is another counts anew."""
    async with (
        upstreams(None) as nodes,
        running(limited(nodes, {"maxCount": 2}, project=B, primary=B), tmp_path) as proxy,
    ):
        assert await statuses(proxy, 2) == [200, 200]
        assert await reload(proxy, limited(nodes, {"maxCount": 2}, project=B, timeout="500ms")) == "ok"
        assert await statuses(proxy, 1) == [429]
        assert await reload(proxy, limited(nodes, {"maxCount": 3}, project=B)) == "ok"

        assert await statuses(proxy, 4) == [200, 200, 200, 429]


async def test_an_upstreams_budget_can_change_while_nothing_else_does(tmp_path: Path) -> None:
    """The network's state goes on; its calls draw on the new budget."""
    rule = {"method": "eth_call"}
    async with (
        upstreams(None, lambda request: result(request, "other")) as nodes,
        running(limited(nodes, {**rule, "maxCount": 1}, primary=B), tmp_path) as proxy,
    ):
        network = proxy.service.networks[0]
        assert [(await proxy.call("eth_call")).get("result") for _ in range(2)] == ["0x2a", None]
        assert await reload(proxy, limited(nodes, {**rule, "maxCount": 2}, primary=B)) == "ok"

        assert proxy.service.networks[0] is network
        assert [(await proxy.call("eth_call")).get("result") for _ in range(3)] == ["0x2a", "0x2a", None]


async def test_short_of_a_budget_nothing_changes(tmp_path: Path) -> None:
    """The answer is the one that there would be without, on the same connection too."""
    async with (
        upstreams(None) as nodes,
        running(limited(nodes, {"maxCount": 9}, project=B, primary=B), tmp_path) as proxy,
    ):
        one = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        body = BODY % b"eth_call"
        request = f"{one}{len(body)}\r\n\r\n".encode() + body
        last = request.replace(b"Host: localhost\r\n", b"Host: localhost\r\nConnection: close\r\n")
        raw = await proxy.send(request * 2 + last)

        assert raw.count(b'{"jsonrpc":"2.0","id":7,"result":"0x2a"}') == 3
