"""A small JSON-RPC 2.0 server on loopback: single calls and batches, one callable behind it."""

from collections.abc import Callable, Sequence

import msgspec
from aiohttp import web

from gnomon.demo.chain import RpcFault

Answer = Callable[[str, Sequence[object]], object]
_MAX_BODY_BYTES = 4 << 20


class RpcServer:
    """
    Serves `answer` over HTTP on a free port.

    `answer` runs in the event loop, so it must not block; it raises `RpcFault` for an error answer.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self) -> str:
        """Listen; return the URL."""
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.router.add_post("/", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = listening_url(self._runner)
        return self.url

    async def stop(self) -> None:
        """Close the listener and its connections; does nothing when not started."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _serve(self, request: web.Request) -> web.Response:
        try:
            message = msgspec.json.decode(await request.read())
        except msgspec.DecodeError as exc:
            return _json({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": f"parse error: {exc}"}})
        if isinstance(message, list):
            return _json([self.respond(each) for each in message])
        return _json(self.respond(message))

    def respond(self, message: object) -> dict[str, object]:
        """Return the JSON-RPC response to one decoded request."""
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "invalid request"}}
        head = {"jsonrpc": "2.0", "id": message.get("id")}
        params = message.get("params") or []
        if not isinstance(params, list):
            return {**head, "error": {"code": -32602, "message": "params must be a list"}}
        try:
            return {**head, "result": self._answer(message["method"], params)}
        except RpcFault as fault:
            error: dict[str, object] = {"code": fault.code, "message": fault.message}
            if fault.data is not None:
                error["data"] = fault.data
            return {**head, "error": error}


def listening_url(runner: web.AppRunner) -> str:
    """Return the URL of the first address on which the runner listens."""
    host, port = runner.addresses[0][:2]
    return f"http://{host}:{port}"


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
