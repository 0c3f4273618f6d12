"""
The planted faults of the primary: an HTTP shim in front of it that forgets some blocks and refuses some calls.

A block look-up by number at a withheld height is answered with null, as by a node that lost the block; every
`REFUSE_EVERY`th query for logs is refused with HTTP 503, as by an overloaded one. Everything else passes unchanged.
"""

from collections.abc import Sequence
from typing import Final

import aiohttp
import msgspec
from aiohttp import web

from gnomon.demo.rpc_server import listening_url

WITHHOLD_EVERY: Final = 7
REFUSE_EVERY: Final = 25
LOOKUPS: Final = frozenset({"eth_getBlockByNumber", "eth_getBlockReceipts"})
_TIMEOUT: Final = aiohttp.ClientTimeout(total=15.0)


def is_withheld(height: int) -> bool:
    """Return whether the primary has lost the block at `height`."""
    return height % WITHHOLD_EVERY == 5


def asks_for_withheld(message: object) -> bool:
    """Return whether a decoded request looks up a withheld block by its number."""
    if not isinstance(message, dict) or message.get("method") not in LOOKUPS:
        return False
    params = message.get("params")
    if not isinstance(params, Sequence) or not params or not isinstance(params[0], str):
        return False
    try:
        return is_withheld(int(params[0], 16))
    except ValueError:
        return False  # a tag


class FaultShim:
    """Serves the node at `target` with the planted faults, on a free loopback port."""

    def __init__(self, session: aiohttp.ClientSession, target: str) -> None:
        self._session = session
        self._target = target
        self._runner: web.AppRunner | None = None
        self._log_queries = 0
        self.n_withheld = 0
        self.n_refused = 0
        self.url = ""

    async def start(self) -> str:
        """Listen; return the URL."""
        app = web.Application(client_max_size=4 << 20)
        app.router.add_post("/", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = listening_url(self._runner)
        return self.url

    async def stop(self) -> None:
        """Close the listener; does nothing when not started."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _refuses(self, message: object) -> bool:
        if not isinstance(message, dict) or message.get("method") != "eth_getLogs":
            return False
        self._log_queries += 1
        return self._log_queries % REFUSE_EVERY == 0

    async def _serve(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            message = msgspec.json.decode(body)
        except msgspec.DecodeError:
            return await self._pass(body)
        if self._refuses(message):
            self.n_refused += 1
            return web.Response(status=503, text="overloaded (planted by gnomon demo)")
        if isinstance(message, list):
            return await self._batch(body, message)
        if asks_for_withheld(message):
            self.n_withheld += 1
            return _null(message)
        return await self._pass(body)

    async def _batch(self, body: bytes, messages: list[object]) -> web.Response:
        """Pass a batch and put null where an element asked for a withheld block; ids pair the two."""
        withheld = [m.get("id") for m in messages if asks_for_withheld(m) and isinstance(m, dict)]
        response = await self._pass(body)
        if not withheld or response.status != 200:
            return response
        answers = msgspec.json.decode(response.body if isinstance(response.body, bytes) else b"")
        if not isinstance(answers, list):
            return response
        self.n_withheld += len(withheld)
        changed = [
            {"jsonrpc": "2.0", "id": answer.get("id"), "result": None} if answer.get("id") in withheld else answer
            for answer in answers
        ]
        return web.Response(body=msgspec.json.encode(changed), content_type="application/json")

    async def _pass(self, body: bytes) -> web.Response:
        headers = {"content-type": "application/json"}
        try:
            async with self._session.post(self._target, data=body, headers=headers, timeout=_TIMEOUT) as response:
                return web.Response(
                    status=response.status,
                    body=await response.read(),
                    headers={"content-type": response.headers.get("content-type", "application/json")},
                )
        except (aiohttp.ClientError, TimeoutError) as exc:
            return web.Response(status=502, text=f"the node does not answer: {exc or type(exc).__name__}")


def _null(message: object) -> web.Response:
    assert isinstance(message, dict)
    answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": None}
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json")
