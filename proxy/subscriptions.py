"""
Listens for heads at WebSocket endpoints: one connection with one `newHeads` subscription for each.

    wanted? ──► connect ──► eth_chainId ──► eth_subscribe ──► heads … ──► lost, silent or no longer wanted
       ▲                                                                        │
       └──────────────────── wait, longer with each failure ◄───────────────────┘

Every question is an attempt event. So is every push of a vendor's, since vendors bill them; those of own nodes are
rows of `heads` only.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import TYPE_CHECKING, Final

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from gnomon.events.contract import Attempt
from gnomon.rpc.blocks import parse_number
from proxy import records
from proxy.connections import now_ns
from proxy.core import listening
from proxy.core.listening import Answered, Passed, Pushed
from proxy.polling import publish

if TYPE_CHECKING:
    from gnomon.events.contract import AttemptOutcome, ErrorClass, Kind
    from proxy.networks import NetworkState
    from proxy.service import Service
    from proxy.upstreams import UpstreamState

log = logging.getLogger("gnomon.proxy")

TICK_SECONDS: Final = 1.0
"""How often a listener looks whether it is still wanted."""
CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 5.0
PING_SECONDS: Final = 20.0
MAX_MESSAGE_BYTES: Final = 1 << 20
"""A header has some kilobytes."""


_SUBSCRIBE: Final = '["newHeads"]'


class _Lost(Exception):
    """The connection is of no use any more; the message says why."""


async def listen(service: Service, network: NetworkState, upstream: UpstreamState) -> None:
    """Keep an endpoint listened to while it is wanted, for ever: what goes wrong costs one try."""
    n_failures = 0
    if upstream.is_fallback:
        await asyncio.sleep(listening.FRESH_SECONDS)  # primaries are not yet up at the start
    while True:
        if not _is_wanted(network, upstream):
            await asyncio.sleep(TICK_SECONDS)
            continue
        before = network.book.positions[upstream.id].seen_at["latest"]
        try:
            await _Session(service, network, upstream).run()
            n_failures = 0
            continue
        except (_Lost, OSError, TimeoutError, WebSocketException) as error:
            reason = str(error) or type(error).__name__
        except Exception as error:
            service.unexpected("subscription", error)
            reason = "unexpected error"
        finally:
            upstream.is_subscribed = False
        n_failures = 1 if network.book.positions[upstream.id].seen_at["latest"] > before else n_failures + 1
        wait = listening.wait_seconds(n_failures, random.random())
        log.warning("no heads of %s by subscription: %s; trying again in %.1f s", upstream.id, reason, wait)
        await asyncio.sleep(wait)


def _is_wanted(network: NetworkState, upstream: UpstreamState) -> bool:
    return listening.is_wanted(upstream.is_fallback, (is_up(network, u) for u in network.followed if not u.is_fallback))


def is_up(network: NetworkState, upstream: UpstreamState) -> bool:
    """Say whether an upstream tells its head now: by its subscription, or by its polls."""
    if upstream.is_listener:
        return upstream.is_subscribed
    position = network.book.positions[upstream.id]
    age = None if position.latest is None else time.monotonic() - position.seen_at["latest"]
    return upstream.is_verified and listening.is_fresh(age, upstream.config.poll_interval_seconds)


class _Session:
    """One connection, from its opening to its end."""

    def __init__(self, service: Service, network: NetworkState, upstream: UpstreamState) -> None:
        self._service = service
        self._network = network
        self._upstream = upstream
        self._subscription = ""
        self._n_asked = 0
        self._early: list[bytes | str] = []

    async def run(self) -> None:
        """
        Take heads until nobody wants them.

        Raises:
            _Lost, OSError, TimeoutError, WebSocketException: the connection is of no use any more.
        """
        config = self._upstream.config
        async with connect(
            config.endpoint,
            additional_headers=config.headers,
            user_agent_header="gnomon",
            open_timeout=CONNECT_SECONDS,
            close_timeout=TICK_SECONDS,
            ping_interval=PING_SECONDS,
            ping_timeout=PING_SECONDS,
            max_size=MAX_MESSAGE_BYTES,
            compression=None,
            proxy=None,
        ) as connection:
            try:
                await self._check_chain(connection)
                answer = await self._ask(connection, "eth_subscribe", _SUBSCRIBE, "subscription")
                self._subscription = str(msgspec.json.decode(answer, type=str | int))
                self._upstream.is_subscribed = True
                log.info("heads of %s come by subscription", self._upstream.id)
                await self._take_heads(connection)
                log.info("heads of %s are no longer listened to", self._upstream.id)
            finally:
                await connection.close()

    async def _check_chain(self, connection: ClientConnection) -> None:
        upstream, expected = self._upstream, self._network.config.chain_id
        answer = await self._ask(connection, "eth_chainId", "[]", "chain_check")
        try:
            chain_id = parse_number(msgspec.json.decode(answer, type=str | int))
        except msgspec.DecodeError:
            chain_id = None
        upstream.is_verified = chain_id == expected
        self._network.book.leave_out(upstream.id, not upstream.is_verified)
        if not upstream.is_verified:
            upstream.chain_error = f"chain id {chain_id}, not {expected}"
            raise _Lost(upstream.chain_error)
        upstream.chain_error = ""

    async def _take_heads(self, connection: ClientConnection) -> None:
        heard_at = time.monotonic()
        position, book = self._network.book.positions[self._upstream.id], self._network.book
        while _is_wanted(self._network, self._upstream):
            message = await self._next(connection)
            now = time.monotonic()
            if message is not None:
                found = listening.read(message, self._subscription)
                if isinstance(found, Pushed):
                    heard_at = now
                    self._take(found)
                if isinstance(found, Pushed | Passed) and self._upstream.config.vendor:
                    size = listening.n_bytes(message)
                    self._record("subscription", "eth_subscription", 0, len(_SUBSCRIBE), size, "result")
            elif listening.is_silent(now - heard_at, position.latest, book.latest):
                raise _Lost(f"nothing said for {now - heard_at:.0f} s while others went on")

    async def _next(self, connection: ClientConnection) -> bytes | str | None:
        """Return the next message, or None after a tick without one."""
        if self._early:
            return self._early.pop(0)
        try:
            async with asyncio.timeout(TICK_SECONDS):
                return await connection.recv()
        except TimeoutError:
            return None

    def _take(self, head: Pushed) -> None:
        publish(
            self._service,
            self._network,
            self._upstream,
            "latest",
            head.number,
            head.hash,
            head.parent_hash,
            "subscription",
        )

    async def _ask(self, connection: ClientConnection, method: str, params: str, kind: Kind) -> bytes:
        """Ask a question and return the raw result; heads that come first are kept for later."""
        self._n_asked += 1
        body = f'{{"jsonrpc":"2.0","id":{self._n_asked},"method":"{method}","params":{params}}}'
        started = now_ns()
        outcome: AttemptOutcome = "transport"
        n_response = 0
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await connection.send(body)
                while True:
                    message = await connection.recv()
                    found = listening.read(message, self._subscription)
                    if isinstance(found, Answered) and found.id == self._n_asked:
                        break
                    self._early.append(message)
            n_response = listening.n_bytes(message)
            outcome = "result" if found.result else "error"
        except TimeoutError:
            outcome = "timeout"
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            self._record(kind, method, (now_ns() - started) // 1000, len(body), n_response, outcome)
        if not found.result:
            raise _Lost(f"{method} was refused")
        return found.result

    def _record(
        self, kind: Kind, method: str, duration_us: int, n_request: int, n_response: int, outcome: AttemptOutcome
    ) -> None:
        config = self._upstream.config
        error_class: ErrorClass = ""
        if outcome in ("timeout", "transport", "cancelled"):
            error_class = outcome
        elif outcome == "error":
            error_class = "internal"
        made = Attempt(
            upstream=config.id,
            vendor=config.vendor,
            account=config.account,
            tier=config.tier,
            kind=kind,
            method=method,
            duration_us=duration_us,
            request_bytes=n_request,
            response_bytes=n_response,
            outcome=outcome,
            error_class=error_class,
            is_cancelled=outcome == "cancelled",
        )
        records.write_internal(self._service.emitter, self._network, made)
