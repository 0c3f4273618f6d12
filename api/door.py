"""
One layer around the whole application: every request passes here first, and every answer last.

In order: an id, Host, Origin (a preflight ends here), who asks, how often, the body's size. What is refused here or
within becomes a problem; what nobody expected is logged with the id and becomes `internal`. HEAD is answered as GET
would be, without the body. Within, `scope["state"]` holds `request_id` and `caller` (None: a token is needed and none
was sent).
"""

import logging
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from api import origins, problems
from api.access import Caller
from api.errors import Refused
from api.limiter import Limiter
from api.metrics import Metrics
from api.state import Holder

log = logging.getLogger("gnomon.api")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS: Final = frozenset(("/healthcheck",))
"""Asked by what watches processes: not limited."""
NOBODY: Final = "?"
"""The bucket of all who sent no valid token."""
_ALWAYS: Final = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store"}
"""Where the answer itself says nothing else. With `no-referrer` the Origin of our own forms would be `null`."""


class Door:
    """The outermost ASGI application."""

    def __init__(self, app: App, holder: Holder, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            app: what is within.
            holder: the configuration in force.
            metrics: counted up.
            clock: monotonic.
        """
        self._app = app
        self._holder = holder
        self._metrics = metrics
        self._clock = clock
        self._limiter: tuple[object, Limiter] = (None, Limiter(0, 1))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        state = scope.setdefault("state", {})
        state["request_id"], state["caller"] = request_id, None
        answer = _Answer(send, {**_ALWAYS, "X-Request-Id": request_id}, has_body=scope["method"] != "HEAD")
        inner = scope if answer.has_body else {**scope, "method": "GET"}
        started = self._clock()
        self._metrics.add("gnomon_api_in_flight")
        try:
            if await self._greet(scope, headers, answer):
                limit = self._holder.value.api.limits.max_request_bytes
                await self._app(inner, _bounded(receive, headers, limit), answer)
        except Exception as error:
            refused = problems.refusal(error)
            if refused is None:
                log.exception("unexpected error request_id=%s path=%s", request_id, scope["path"])
                refused = Refused("internal", f"something unexpected happened; the log has it under {request_id}")
            if not answer.status:
                await refuse(answer, refused, scope)
            elif not answer.is_whole:  # too late: the connection is cut, so that nobody takes the half for the whole
                raise
        finally:
            scope["route"] = inner.get("route")
            self._count(scope, answer, self._clock() - started)

    async def _greet(self, scope: Scope, headers: Mapping[str, str], answer: "_Answer") -> bool:
        """Return whether the request may go on; raises Refused, or answers a preflight."""
        in_force = self._holder.value
        host, origin, cors = headers.get("host", ""), headers.get("origin", ""), in_force.api.cors
        origins.check_host(host, in_force.api.host)
        origins.check_origin(origin, host, cors)
        answer.headers.update(origins.headers(origin, cors))
        if cors is not None and origin and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await respond(answer, 204, origins.preflight(headers, cors), b"")
            return False
        if scope["path"] in OPEN_PATHS:
            return True
        try:
            caller = in_force.access.who(headers.get("authorization"), headers.get("cookie", ""))
        except Refused:
            self._limit(NOBODY)
            raise
        self._limit(NOBODY if caller is None else caller.name)
        scope["state"]["caller"] = caller
        return True

    def _limit(self, name: str) -> None:
        limits = self._holder.value.api.limits
        if self._limiter[0] != limits:
            self._limiter = (limits, Limiter(limits.requests_per_second, limits.burst))
        wait = self._limiter[1].wait_seconds(name, self._clock())
        if wait:
            raise Refused(
                "rate-limited",
                f"more than {limits.requests_per_second:g} requests a second; try again in {wait:.1f} s",
                headers={"Retry-After": str(math.ceil(wait))},
            )

    def _count(self, scope: Scope, answer: "_Answer", seconds: float) -> None:
        route = getattr(scope.get("route"), "path_format", "_OTHER")
        method = scope["method"] if scope["method"] in (*origins.METHODS, "HEAD", "OPTIONS") else "_OTHER"
        self._metrics.add("gnomon_api_in_flight", amount=-1)
        self._metrics.add("gnomon_api_requests_total", (route, method, str(answer.status)))
        self._metrics.add("gnomon_api_request_seconds_total", (route, method), seconds)
        problem = scope["state"].get("problem", "")
        if problem:
            self._metrics.add("gnomon_api_problems_total", (problem,))
        caller: Caller | None = scope["state"]["caller"]
        level = logging.WARNING if answer.status >= 500 else logging.DEBUG
        log.log(
            level, "answered request_id=%s method=%s path=%s status=%d problem=%s token=%s seconds=%.3f",
            scope["state"]["request_id"], method, scope["path"], answer.status, problem or "-",
            caller.name if caller and caller.name else "-", seconds,
        )  # fmt: skip

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, receive, send)


class _Answer:
    """Passes an answer on, our headers added, and notes what it was; without a body it has ended with its headers."""

    def __init__(self, send: Send, headers: dict[str, str], *, has_body: bool = True) -> None:
        self._send = send
        self.headers = headers
        self.has_body = has_body
        self.status = 0
        self.is_whole = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            said = {name.lower() for name, _ in message["headers"]}
            own = [(n.lower().encode(), v.encode("latin-1", "replace")) for n, v in self.headers.items()]
            message["headers"] = [*message["headers"], *((n, v) for n, v in own if n not in said)]
        elif self.is_whole:
            return
        await self._send(message)
        if not self.has_body and not self.is_whole:
            await self._send({"type": "http.response.body", "body": b""})
            self.is_whole = True
            return
        self.is_whole = message["type"] == "http.response.body" and not message.get("more_body", False)


async def refuse(answer: _Answer, refused: Refused, scope: Scope) -> None:
    """Answer with a problem."""
    scope["state"]["problem"] = refused.problem
    status, headers, body = problems.render(refused, scope["path"], scope["state"]["request_id"])
    await respond(answer, status, headers, body if scope["method"] != "HEAD" else b"", len(body))


async def respond(send: Send, status: int, headers: Mapping[str, str], body: bytes, n_bytes: int | None = None) -> None:
    """Send a whole answer."""
    pairs = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    if status != 204:
        pairs.append((b"content-length", b"%d" % (len(body) if n_bytes is None else n_bytes)))
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def _bounded(receive: Receive, headers: Mapping[str, str], limit: int) -> Receive:
    """Return `receive` that refuses a body above a limit, when its length says so or when it has come so far."""
    too_large = Refused("too-large", f"the body is larger than {limit} bytes (gnomon.api.limits.maxRequestBytes)")
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise too_large
    n_bytes = 0

    async def bounded() -> Message:
        nonlocal n_bytes
        message = await receive()
        if message["type"] == "http.request":
            n_bytes += len(message.get("body", b""))
            if n_bytes > limit:
                raise too_large
        return message

    return bounded
