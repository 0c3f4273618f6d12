"""The mix of calls, by both clients, against the simulated chain."""

import asyncio
import random
from collections.abc import Callable

import aiohttp
import pytest

from gnomon.demo.clients import CallFailed, Client, PlainClient, Web3Client, kept_recursion_limit, open_client
from gnomon.demo.simulated import SimulatedWorld
from gnomon.demo.traffic import MIX, Scene, Traffic


def in_world(scenario: Callable[[SimulatedWorld], object]) -> None:
    """Run a scenario in a thread beside a simulated world."""

    async def go() -> None:
        async with aiohttp.ClientSession() as session:
            world = await SimulatedWorld.open(session)
            try:
                await asyncio.to_thread(scenario, world)
            finally:
                await world.stop()

    asyncio.run(go())


def close(client: Client) -> None:
    client.close()


@pytest.fixture(params=["plain", "web3"])
def client_of(request: pytest.FixtureRequest) -> Callable[[str], Client]:
    """Return the constructor of one of the two clients."""
    if request.param == "web3":
        with kept_recursion_limit():
            pytest.importorskip("web3")
        return Web3Client
    return PlainClient


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_every_call_of_the_mix_is_answered(client_of: Callable[[str], Client]) -> None:
    """Each call works many times; the one that asks for a revert gets it."""

    def scenario(world: SimulatedWorld) -> None:
        client, dice = client_of(world.fallback.url), random.Random(7)
        scene = Scene(world.register, world.accounts, world.height)
        for _, what, call in MIX:
            for _ in range(5):
                if what == "a call that reverts":
                    with pytest.raises(CallFailed, match="asked to fail"):
                        call(client, scene, dice)
                else:
                    assert call(client, scene, dice) is not None, what
        client.close()

    in_world(scenario)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_both_clients_read_the_same(client_of: Callable[[str], Client]) -> None:
    """Numbers and bytes come out decoded, and what is not there is None."""

    def scenario(world: SimulatedWorld) -> None:
        client, account = client_of(world.fallback.url), world.accounts[0]
        assert client.balance(account, 0) == 10_000 * 10**18
        assert client.block(0xFFFF, False) is None
        assert client.receipt("0x" + "11" * 32) is None
        assert len(client.storage(world.register, 1, 1)) == 32
        assert client.code(world.register, 0) == b""
        assert client.batch([1, 2, 3]) == 3
        client.close()

    in_world(scenario)


def test_the_best_client_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without web3.py the plain client takes its place."""
    import sys

    monkeypatch.setitem(sys.modules, "web3", None)
    client = open_client("http://127.0.0.1:1")
    close(client)

    assert client.name == "plain client"


def test_traffic_goes_on_over_failures() -> None:
    """An endpoint that does not answer costs calls, not the traffic; stop ends the threads."""
    scene = Scene("0x" + "00" * 20, ["0x" + "01" * 20], 10)
    traffic = Traffic(lambda: PlainClient("http://127.0.0.1:1"), scene, per_second=200.0, threads=2)
    traffic.start()
    for _ in range(500):
        if traffic.calls >= 5:
            break
        traffic.join(0.01)
    traffic.stop()
    traffic.join(5.0)

    assert traffic.calls >= 5
    assert traffic.failed > 0
    assert "refused" in traffic.last_failure.lower()
    assert not [thread for thread in traffic._threads if thread.is_alive()]
