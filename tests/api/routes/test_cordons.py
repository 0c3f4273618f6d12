"""An upstream is kept out and let in over the API, at every proxy that runs."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from analytics.questions import load, names
from analytics.store import Result
from api.access import Access, Caller, Token
from gnomon.config.load import loads
from tests.api.calling import Answer, Api, FakeReader, result_of
from tests.proxy.scripted import Proxy, configuration, running, upstreams
from tests.proxy.test_cordoning import SECRET, served
from tests.proxy.test_gates import transitions
from tests.proxy.test_reload import named

ACCESS = Access(
    [
        Token(Caller("ann", "admin"), hashlib.sha256(b"ann").digest()),
        Token(Caller("bob", "sql"), hashlib.sha256(b"bob").digest()),
    ]
)
Talk = Callable[["Two"], Coroutine[Any, Any, None]]


def nothing(sql: str, bound: object) -> Result:
    return result_of(next(question for question in map(load, names()) if question.sql == sql))


class Two:
    """Two proxies over the same upstreams, and an API that knows both."""

    def __init__(self, proxies: list[Proxy], config: str, folder: Path, more: tuple[str, ...] = ()) -> None:
        self.proxies = proxies
        addresses = [f"http://127.0.0.1:{proxy.service.port}" for proxy in proxies]
        content = json.loads(config)
        (folder / "secret").write_text(SECRET)
        content["gnomon"] = {
            "proxy": {"controlSecretFile": "secret"},
            "alerts": {"proxies": [*addresses, *more]},
        }
        settings = loads(json.dumps(content), folder=folder, environment={})
        self._api = Api(FakeReader(nothing), settings, ACCESS, folder)

    async def ask(self, method: str, path: str, content: object = None, token: str = "ann") -> Answer:
        body = b"" if content is None else json.dumps(content).encode()
        headers = {"host": "127.0.0.1", "authorization": f"Bearer {token}", "content-type": "application/json"}
        return await self._api.send(method, path, "", headers, [body])

    async def cordon(self, upstream: str, token: str = "ann", **content: object) -> Answer:
        return await self.ask("PUT", f"/v1/upstreams/{upstream}/cordon", content, token)


def talk(folder: Path, conversation: Talk, more: tuple[str, ...] = ()) -> None:
    """Run a conversation with two proxies over p0, p1 and the shadow s0."""

    async def go() -> None:
        async with upstreams(named("a"), named("b"), None) as nodes:
            config = configuration(nodes[:2], shadows=nodes[2:])
            async with running(config, folder / "1", SECRET) as one, running(config, folder / "2", SECRET) as two:
                await conversation(Two([one, two], config, folder, more))

    asyncio.run(go())


def test_a_cordon_holds_at_every_proxy_and_shows(tmp_path: Path) -> None:
    """From the next request on, with who did it and why; until it is ended."""

    async def conversation(two: Two) -> None:
        done = await two.cordon("p0", comment="disk", **{"for": "2h"})
        said = done.json()
        during = [await served(proxy) for proxy in two.proxies]
        card = (await two.ask("GET", "/v1/upstreams/p0", token="bob")).json()
        ended = await two.ask("DELETE", "/v1/upstreams/p0/cordon")
        after = [await served(proxy) for proxy in two.proxies]

        assert (done.status, said["project"], said["network"]) == (200, "main", "evm:31337")
        assert said["remaining"] == {"primaries": 1, "fallbacks": 0}
        assert during == [("p1", "cordoned")] * 2
        assert [(at["cordon"]["author"], at["cordon"]["comment"]) for at in card["live"]] == [("ann", "disk")] * 2
        assert all(at["cordon"]["until"].endswith("Z") for at in card["live"])
        assert (ended.status, after) == (204, [("p0", "")] * 2)
        for proxy in two.proxies:
            assert [change[3] for change in transitions(proxy)] == ["cordoned", "cordoned"]
        assert (await two.ask("DELETE", "/v1/upstreams/p0/cordon")).problem == "not-found"

    talk(tmp_path, conversation)


def test_the_last_is_kept_unless_forced(tmp_path: Path) -> None:
    """409 from one of them changes none."""

    async def conversation(two: Two) -> None:
        await two.cordon("p0")
        refused = await two.cordon("p1")
        assert (refused.status, refused.problem) == (409, "conflict")
        assert [await served(proxy) for proxy in two.proxies] == [("p1", "cordoned")] * 2
        forced = await two.cordon("p1", force=True)
        assert (forced.status, forced.json()["remaining"]) == (200, {"primaries": 0, "fallbacks": 0})

    talk(tmp_path, conversation)


def test_who_may_not_and_what_cannot_be_is_refused(tmp_path: Path) -> None:
    """And no proxy hears of it."""

    async def conversation(two: Two) -> None:
        assert (await two.cordon("p0", token="bob")).problem == "forbidden"
        assert (await two.cordon("nobody")).problem == "not-found"
        assert (await two.cordon("s0")).problem == "conflict"
        assert (await two.cordon("p0", until="2020-01-01T00:00:00Z")).problem == "invalid-body"
        assert (await two.cordon("p0", nope=1)).problem == "invalid-body"
        assert all(transitions(proxy) == [] for proxy in two.proxies)

    talk(tmp_path, conversation)


def test_a_proxy_that_is_away_is_named_and_none_is_changed(tmp_path: Path) -> None:
    """503; how the others stand can be seen all the same."""

    async def conversation(two: Two) -> None:
        away = await two.cordon("p0")
        seen = (await two.ask("GET", "/v1/upstreams")).json()
        assert (away.status, away.problem) == (503, "proxy-away")
        assert "http://127.0.0.1:9" in away.json()["detail"]
        assert "nothing was changed" in away.json()["detail"]
        assert all(transitions(proxy) == [] for proxy in two.proxies)
        assert [bool(proxy["error"]) for proxy in seen["proxies"]] == [False, False, True]
        assert [len(item["live"]) for item in seen["items"]] == [2, 2, 2]

    talk(tmp_path, conversation, ("http://127.0.0.1:9",))


@pytest.mark.parametrize("has_secret", [True, False], ids=["port open", "no secret"])
def test_without_a_proxy_or_a_secret_the_way_out_is_named(tmp_path: Path, has_secret: bool) -> None:
    """503 either way."""
    content = json.loads(configuration([]))
    content["projects"][0]["upstreams"] = [{"id": "p0", "endpoint": "http://127.0.0.1:1", "evm": {"chainId": 31337}}]
    content["gnomon"] = {"proxy": {"port": 0 if has_secret else 9}}
    api = Api(FakeReader(nothing), loads(json.dumps(content), environment={}), ACCESS, tmp_path)
    answer = api.call("PUT", "/v1/upstreams/p0/cordon", body=b"{}", token="ann",
                      headers={"content-type": "application/json"})  # fmt: skip

    assert (answer.status, answer.problem) == (503, "proxy-away")
    assert ("gnomon.alerts.proxies" if has_secret else "controlSecretFile") in answer.json()["detail"]
