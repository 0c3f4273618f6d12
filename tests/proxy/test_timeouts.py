"""How long an attempt may take, and a request with all its attempts."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.scripted import configuration, result, running, upstreams


def silent(_: dict[str, Any]) -> None:
    return None


def entry(duration: object) -> dict[str, Any]:
    return {"failsafe": [{"matchMethod": "*", "timeout": {"duration": duration}}]}


@pytest.mark.parametrize(
    ("of_network", "of_upstream", "least", "most"),
    [("100ms", None, 0.1, 3.0), ("5s", "100ms", 0.1, 3.0), ("100ms", "5s", 0.1, 3.0)],
    ids=["network", "upstream shorter", "network shorter"],
)
async def test_the_shorter_of_both_timeouts_ends_an_attempt(
    of_network: str, of_upstream: str | None, least: float, most: float, tmp_path: Path
) -> None:
    """The next upstream is asked then, with the cause."""
    async with upstreams(silent, None) as nodes:
        config = json.loads(configuration(nodes, network=entry(of_network)))
        if of_upstream is not None:
            config["projects"][0]["upstreams"][0].update(entry(of_upstream))
        async with running(json.dumps(config), tmp_path) as proxy:
            assert (await proxy.call("eth_call"))["result"] == "0x2a"
            first, second = proxy.requests()[0].attempts

            assert (first.outcome, first.error_class, second.cause) == ("timeout", "timeout", "timeout")
            assert least <= first.duration_us / 1e6 < most


@pytest.mark.parametrize("place", ["network", "primary"])
async def test_a_timeout_may_follow_the_methods_own_latencies(place: str, tmp_path: Path) -> None:
    """On the network and on the upstream: a quantile, within its bounds, learnt for each method apart."""
    learnt = entry({"quantile": 0.9, "min": "60ms", "max": "2s"})
    config = {"network": learnt} if place == "network" else {"network": entry("5s"), "primary": learnt}
    async with (
        upstreams(None, lambda request: result(request, "other")) as nodes,
        running(configuration(nodes, **config), tmp_path) as proxy,  # type: ignore[arg-type]
    ):
        for seconds in (0.9, 0.6, 0.6):  # the later ones well below what may be learnt meanwhile
            nodes[0].delay_seconds = seconds
            assert (await proxy.call("eth_getLogs", [{}]))["result"] == "0x2a"
        nodes[0].delay_seconds = 0.0
        for _ in range(3):
            await proxy.call("eth_call")
        await asyncio.sleep(1.05)  # delays are learnt once a second
        nodes[0].delay_seconds = 0.4
        assert (await proxy.call("eth_getLogs", [{}]))["result"] == "0x2a"
        assert (await proxy.call("eth_call"))["result"] == "other"
        first = proxy.requests()[-1].attempts[0]

        assert first.error_class == "timeout"
        assert 0.05 <= first.duration_us / 1e6 < 0.4


async def test_a_learnt_timeout_grows_when_everything_takes_longer(tmp_path: Path) -> None:
    """Calls that ran out of time took longer than that: they count for more, so the timeout cannot lock itself in."""
    async with (
        upstreams(None) as nodes,
        running(configuration(nodes, network=entry({"quantile": 0.5, "min": "50ms", "max": "2s"})), tmp_path) as proxy,
    ):
        await proxy.call("eth_call")
        await asyncio.sleep(1.05)
        nodes[0].delay_seconds = 0.15
        answers: list[object] = []
        async with asyncio.timeout(10):
            while not answers or answers[-1] is None:
                answers.append((await proxy.call("eth_call")).get("result"))
                await asyncio.sleep(0.2)

        assert answers[0] is None
        assert answers[-1] == "0x2a"


async def test_a_request_has_a_time_for_all_its_attempts(tmp_path: Path) -> None:
    """`server.maxTimeout`: what is under way then is cancelled, and the client hears of the time."""
    retry = {"maxAttempts": 50, "delay": "0ms"}
    network = {"failsafe": [{"matchMethod": "*", "timeout": {"duration": "300ms"}, "retry": retry}]}
    async with upstreams(silent) as nodes:
        config = json.loads(configuration(nodes, network=network))
        config["server"] = {"maxTimeout": "1s"}
        async with running(json.dumps(config), tmp_path) as proxy:
            started = asyncio.get_running_loop().time()
            answer = await proxy.call("eth_call")
            took = asyncio.get_running_loop().time() - started
            [event] = proxy.requests()

            assert answer["error"]["data"]["class"] == "timeout"
            assert 0.9 <= took < 10
            assert [a.outcome for a in event.attempts[:-1]] == ["timeout"] * (len(event.attempts) - 1)
            assert event.attempts[-1].outcome == "cancelled"
            assert (event.outcome, event.error_class) == ("error", "timeout")
