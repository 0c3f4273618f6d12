"""
Polls heads and chain ids: one loop for each upstream.

An upstream serves nobody before its chain id was seen to be the network's; while its endpoint does not answer, the
check is repeated with the polls. Every call is an `attempt` event: it costs money too.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from gnomon.events.contract import VERSION, HeadUpdate, Reorg
from gnomon.rpc.blocks import parse_number
from gnomon.rpc.methods import Method, lookup
from proxy import records
from proxy.connections import Call, now_ns
from proxy.core import answers
from proxy.core.answers import ERROR, NONE, RESULT, Reply
from proxy.core.heads import HeadChange, ReorgSeen
from proxy.core.limits import share
from proxy.emitter import now_ns as wall_ns
from proxy.networks import NetworkState
from proxy.response_heads import ResponseHead
from proxy.upstreams import UpstreamState

if TYPE_CHECKING:
    from proxy.core.heads import Axis
    from proxy.service import Service

log = logging.getLogger("gnomon.proxy")

POLL_TIMEOUT_SECONDS: Final = 5.0
JITTER: Final = 0.1
"""Share of the interval by which polls are spread."""
CHAIN_CHECK_SECONDS: Final = 300.0
_REFUSALS_BEFORE_GIVING_UP: Final = 3
"""So often must a node refuse an axis (`safe`, `finalized`) before it is not asked again until the next chain check."""
_REFUSING: Final = frozenset(("invalid_params", "method_not_found"))
"""Errors by which it refuses; others (a rate limit, a node just started) pass."""

_HASH_CHARACTERS: Final = 66
_ID: Final = b"1"


class _Block(Struct):
    number: str = ""
    hash: str = ""
    parentHash: str = ""


_decode_block = msgspec.json.Decoder(_Block | None).decode
_decode_text = msgspec.json.Decoder(str | int).decode


class Ask:
    """One internal call; its future gets the reply."""

    __slots__ = ("future", "kind", "method", "network", "service", "upstream")

    def __init__(self, service: Service, network: NetworkState, upstream: UpstreamState, method: Method, kind: str):
        self.service = service
        self.network = network
        self.upstream = upstream
        self.method = method
        self.kind = kind
        self.future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def answered(self, call: Call, head: ResponseHead, body: bytes) -> None:
        reply = answers.read(body, _ID, self.method, head.status, self.service.emitter.proved)
        if reply.error_class == "parse":
            call.distrust()
        self._end(call, reply)

    def failed(self, call: Call, error_class: str) -> None:
        self._end(call, answers.no_answer(error_class))

    def cut(self, call: Call) -> None:
        """End the call at shutdown: it went out, so it is recorded."""
        call.cancel()
        self._end(call, answers.no_answer("cancelled"))

    def _end(self, call: Call, reply: Reply) -> None:
        upstream, emitter = self.upstream, self.service.emitter
        self.service.asks.pop(call, None)
        if reply.kind is RESULT:
            outcome = "empty" if reply.is_empty else "result"
        elif reply.kind is ERROR:
            outcome = "verdict" if reply.is_answer else "error"
        else:
            outcome = reply.error_class if reply.error_class in ("timeout", "transport", "cancelled") else "error"
        if self.kind == "head_poll" and outcome != "cancelled":
            self.network.polled(upstream, (now_ns() - call.started_ns) / 1e9)
        made = records.attempt(call, upstream, outcome, reply.error_class, reply, method=self.method.name)
        records.write_internal(emitter, self.network, made)
        if not self.future.done():
            self.future.set_result(reply)


async def ask(
    service: Service, network: NetworkState, upstream: UpstreamState, name: str, params: str, kind: str
) -> Reply:
    """Ask one upstream one question of our own and return what came; never raises for the upstream's sake."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"%b","params":%b}' % (name.encode(), params.encode())
    draws_on = share(upstream.claim, name)
    if draws_on is not None:
        draws_on.count(time.monotonic())
    question = Ask(service, network, upstream, lookup(name), kind)
    call = Call(question, upstream.pool, body, kind)
    service.asks[call] = question
    call.launch(service.wheel.lane(POLL_TIMEOUT_SECONDS))
    return await question.future


async def poll(service: Service, network: NetworkState, upstream: UpstreamState) -> None:
    """Keep one upstream's chain id checked and its heads known, for ever: what goes wrong costs one turn."""
    interval = upstream.config.poll_interval_seconds
    refusals = {"finalized": 0, "safe": 0}
    checked_at = -CHAIN_CHECK_SECONDS
    while True:
        started = time.monotonic()
        try:
            if started - checked_at >= CHAIN_CHECK_SECONDS or not upstream.is_verified:
                if await check_chain(service, network, upstream):
                    checked_at = started
                    refusals = {"finalized": 0, "safe": 0}  # a node may have learnt them since
                network.chain_checked(upstream)
            if upstream.is_verified:
                if upstream.config.skip_when_syncing:
                    await _poll_syncing(service, network, upstream)
                await _poll_axis(service, network, upstream, "latest", refusals)
                for axis in ("finalized", "safe"):
                    if refusals[axis] < _REFUSALS_BEFORE_GIVING_UP and (
                        axis == "finalized" or not upstream.is_fallback
                    ):
                        await _poll_axis(service, network, upstream, axis, refusals)
            network.book.expire(time.monotonic())
        except Exception as error:
            service.unexpected("poll", error)
        spread = 1 + JITTER * (2 * random.random() - 1)
        await asyncio.sleep(max(0.01, interval * spread - (time.monotonic() - started)))


async def check_chain(service: Service, network: NetworkState, upstream: UpstreamState) -> bool:
    """Ask for the chain id; return whether there was an answer. Whether the upstream may serve follows from it."""
    reply = await ask(service, network, upstream, "eth_chainId", "[]", "chain_check")
    if reply.kind is ERROR and reply.error_class == "method_not_found":
        reply = await ask(service, network, upstream, "net_version", "[]", "chain_check")
    if reply.kind is not RESULT:
        upstream.chain_error = reply.error_class or "no chain id"
        return False
    try:
        chain_id = parse_number(_decode_text(bytes(reply.fragment)))
    except ValueError:
        chain_id = None
    if chain_id is None:
        upstream.chain_error = "chain id cannot be read"
        return False
    expected = network.config.chain_id
    is_right = chain_id == expected
    if not is_right:
        upstream.chain_error = f"chain id {chain_id}, not {expected}"
        log.error("upstream is on another chain", extra={"upstream": upstream.id, "chain": chain_id})
    network.book.leave_out(upstream.id, not is_right)
    if is_right != upstream.is_verified:
        upstream.is_verified = is_right
        network.replan()
    if is_right:
        upstream.chain_error = ""
    return True


async def _poll_syncing(service: Service, network: NetworkState, upstream: UpstreamState) -> None:
    """Ask whether the node is catching up: `false`, or an object that says how far it is."""
    reply = await ask(service, network, upstream, "eth_syncing", "[]", "head_poll")
    if reply.kind is not RESULT:
        return
    is_syncing = bytes(reply.fragment).strip() not in (b"false", b"null")
    if is_syncing != upstream.is_syncing:
        upstream.is_syncing = is_syncing
        network.replan()
        log.warning("upstream %s of %s %s", upstream.id, network.id, "is syncing" if is_syncing else "has caught up")


async def _poll_axis(
    service: Service, network: NetworkState, upstream: UpstreamState, axis: Axis, refusals: dict[str, int]
) -> None:
    reply = await ask(service, network, upstream, "eth_getBlockByNumber", f'["{axis}",false]', "head_poll")
    if reply.kind is NONE:
        return
    block = None
    if reply.kind is RESULT:
        try:
            block = _decode_block(bytes(reply.fragment))
        except ValueError:
            block = None
    number = parse_number(block.number) if block is not None and block.number.startswith("0x") else None
    if block is None or number is None:
        if axis in refusals and (reply.kind is RESULT or reply.error_class in _REFUSING):
            refusals[axis] += 1
        return
    if axis in refusals:
        refusals[axis] = 0
    # A longer text is no hash; hundreds of them are remembered.
    own, parent = (text if len(text) <= _HASH_CHARACTERS else "" for text in (block.hash, block.parentHash))
    publish(service, network, upstream, axis, number, own, parent, "poll")


def publish(
    service: Service,
    network: NetworkState,
    upstream: UpstreamState,
    axis: Axis,
    number: int,
    block_hash: str = "",
    parent_hash: str = "",
    source: str = "poll",
) -> None:
    """Take a head into the book and write what changed."""
    changes = network.book.observe(
        upstream.id,
        axis,
        number,
        time.monotonic(),
        block_hash=block_hash,
        parent_hash=parent_hash,
        source=source,
    )
    emitter = service.emitter
    for change in changes:
        envelope = {
            "v": VERSION,
            "event_id": emitter.next_event_id(),
            "at": wall_ns(),
            "network": network.id,
            "config_hash": network.config_hash,
        }
        if isinstance(change, HeadChange):
            emitter.append(
                HeadUpdate(
                    **envelope,  # type: ignore[arg-type]
                    upstream=change.upstream,
                    axis=change.axis,
                    number=change.number,
                    hash=change.hash,
                    parent_hash=change.parent_hash,
                    source=change.source,  # type: ignore[arg-type]
                    is_outlier=change.is_outlier,
                )
            )
        elif isinstance(change, ReorgSeen):
            emitter.append(
                Reorg(
                    **envelope,  # type: ignore[arg-type]
                    upstream=change.upstream,
                    number=change.number,
                    depth=change.depth,
                    old_hash=change.old_hash,
                    new_hash=change.new_hash,
                )
            )
