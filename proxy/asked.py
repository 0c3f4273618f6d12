"""
A request as it was asked, and the shortest way to its answer.

Most requests end like this: the first primary answers with a result. `Asked` carries that case alone: it is its own
first call, writes one event, answers, mirrors. Whatever else happens (a miss, an error, a time-out, a hedge that is
due, a client that has gone) it hands itself to an `Exchange`, whose flight takes the decisions from there; nothing is
decided here but that a result is served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw

from gnomon.events.contract import NO_BODY
from gnomon.rpc.blocks import request_block, response_block
from proxy import probes, templates
from proxy.clients import Client, RequestHead
from proxy.connections import Call, now_ns
from proxy.core import tips
from proxy.core.answers import quick_result
from proxy.emitter import now_ns as wall_ns
from proxy.mirrors import Mirror, PrimaryAnswer, decide
from proxy.networks import NetworkState
from proxy.plans import Plan
from proxy.refusals import method_not_served
from proxy.response_heads import ResponseHead
from proxy.wheel import Expiring

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proxy.batches import Batch
    from proxy.dispatch import Exchange
    from proxy.service import Service


class Asked(Call):
    """
    rpc_id, params     raw JSON as the client wrote it; empty where absent
    request_id         ours
    sent_id            the id that goes to upstreams: the client's, but for notifications
    """

    __slots__ = (
        "_hedge", "_leg", "batch", "client", "head", "network", "params", "plan", "request_id", "rpc_id", "sent_id",
        "service",
    )  # fmt: skip

    def __init__(
        self,
        service: Service,
        client: Client,
        head: RequestHead,
        network: NetworkState,
        method: str,
        rpc_id: bytes,
        params: bytes,
        body: bytes,
        batch: Batch | None = None,
    ) -> None:
        # `Call.__init__` is written out: this runs for each request.
        self.body = body
        self.kind = "client"
        self.sent = self.done = False
        self.n_response = self.status = 0
        self.connection = None
        self.service = service
        self.client = client
        self.head = head
        self.network = network
        self.rpc_id = self.sent_id = rpc_id
        self.params = params
        self.batch = batch
        emitter = service.emitter
        emitter.n_requests = n = emitter.n_requests + 1
        self.request_id = b"%b-%x" % (emitter.proc_bytes, n)
        plan = network.plans.get(method)
        if plan is None or plan.expires_at is not None:
            plan = network.planner.plan(method)
        self.plan: Plan = plan
        self._hedge: set[Expiring] | None = None
        self.started_ns = now_ns()

    @property
    def raw_params(self) -> Raw:
        """The params as structs carry them."""
        return Raw(self.params) if self.params else NO_BODY

    @property
    def raw_id(self) -> Raw:
        """The client's id as structs carry it."""
        return Raw(self.rpc_id) if self.rpc_id else NO_BODY

    def start(self) -> None:
        """Go the short way where there is one, else the whole one."""
        plan = self.plan
        if plan.is_foreseen:
            if self._foresee():
                return
            plan = self.plan
        leg = plan.direct
        if leg is None or self.head.is_choosy or self.rpc_id is not self.sent_id:
            if plan.is_refused:
                method_not_served(self)
            else:
                self.service.exchange(self).start()
            return
        self._leg = leg
        upstream = leg.upstream
        upstream.n_calls += 1
        self.owner = self
        self.pool = upstream.pool
        self.cause = plan.first_cause
        self.can_resend = plan.can_resend
        if plan.hedge_lane is not None:
            self._hedge = plan.hedge_lane.bucket
            self._hedge.add(self)
        bucket = self.bucket = leg.lane.bucket
        bucket.add(self)
        upstream.pool.send(self)

    def _foresee(self) -> bool:
        """Write `latest` out where that is wanted; return whether the block is nobody's yet, and was answered so."""
        network, method = self.network, self.plan.method
        if self.plan.is_by_finality:
            self.plan = network.planner.plan_for(method, self.params)
        if network.has_served_tip and not self.head.skips_interpolation:
            tip = network.tip
            params = tips.written_out(method.block_paths, self.params, tip) if tip is not None and self.params else None
            if params is not None:
                self.params = params
                self.body = b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (
                    self.sent_id, templates.text(method.name), params,
                )  # fmt: skip
        if not network.is_short_circuiting or method.name != "eth_getBlockByNumber":
            return False
        ceiling = network.ceiling
        number = request_block(method, self.params).number if ceiling is not None else None
        if ceiling is None or number is None or number <= ceiling:
            return False
        self.service.exchange(self).short_circuit()
        return True

    def expired(self) -> None:
        """The hedge is due, or else the attempt's time is up: `Plan` arms hedges that come before the time-out only."""
        if self._hedge is not None:
            self._hedge = None  # it is due now: the exchange must not expect it once more
            self._give_over().hedge()
        else:
            super().expired()

    def cut(self) -> None:
        """End the request at shutdown: it is recorded as cancelled."""
        self._give_over().cut()

    def start_late(self) -> None:
        """Start once somebody can serve: who that is was not known when the request came."""
        self.plan = self.network.planner.plan(self.plan.method.name)
        self.start()

    def answered(self, call: Call, head: ResponseHead, body: bytes) -> None:
        """Take the first upstream's answer."""
        service, client = self.service, self.client
        emitter = service.emitter
        found = quick_result(body, self.rpc_id, emitter.proved) if head.status == 200 else None
        if found is None or not client.is_open:
            self._give_over().answered(self, head, body)
            return
        fragment, digest = found
        plan, leg, network = self.plan, self._leg, self.network
        duration_us = (now_ns() - self.started_ns) // 1000
        if self._hedge is not None:
            self._hedge.discard(self)
            self._hedge = None
        if plan.latencies is not None:
            plan.latencies.add(duration_us / 1e6)
        block = b""
        if plan.method.response_block_path is not None:
            number = response_block(plan.method, fragment)
            block = templates.block_member(number)
            service.learn(network, leg.upstream, number, self.params)
        if leg.gate is not None:
            leg.gate.served()
        if leg.version != network.book.version:
            leg.refresh(network)
        copies: Sequence[Mirror] = ()
        shadows = b""
        if plan.shadows:
            shadows, copies = self._copies(body, fragment, digest, duration_us, block)
        travels = digest not in emitter.sent and emitter.travels(fragment, digest)
        request_id, n_request, n_response, params = self.request_id, len(self.body), len(body), self.params
        asker, batch = self.head, self.batch
        event = templates.PRIMARY % (
            emitter.proc_bytes, emitter.seq, wall_ns(), asker.whose, request_id,
            batch.member if batch is not None else b"",
            plan.member, b'"params":%b,' % params if params else b"", self.rpc_id, n_request, n_response, duration_us,
            leg.served, digest.encode(), len(fragment), block, b"".join((b',"body":', fragment)) if travels else b"",
            leg.attempt, duration_us, n_request, n_response, leg.heads, shadows,
        )  # fmt: skip
        emitter.seq += 1
        emitter.n_bytes += len(event)
        if emitter.store(event) < 0:
            emitter.dropped()
        network.n_results += 1
        if batch is not None:
            batch.done(self, body)
        else:
            client.serve(asker, leg.lines, request_id, body)
        self.owner = self.client = None  # type: ignore[assignment]  # a ring would wait for the collector
        for copy in copies:
            copy.go()
        if plan.probes:
            probes.send(self, plan.probes)

    def failed(self, call: Call, error_class: str) -> None:
        """Take a first call without an answer."""
        self._give_over().failed(self, error_class)

    def _copies(
        self, body: bytes, fragment: bytes | memoryview, digest: str, duration_us: int, block: bytes
    ) -> tuple[bytes, Sequence[Mirror]]:
        """Return what the event says of the shadows, and the copies to send."""
        plan, primary, heads = self.plan, self._leg.upstream, self._leg.heads
        decisions, legs = decide(self, len(body), primary)
        primary_answer = PrimaryAnswer(primary, "result", "", body, fragment, digest, block, duration_us, heads)
        copies = [Mirror(self, leg, primary_answer) for leg in legs]
        if decisions is None:
            return plan.all_mirrored, copies
        return b',"shadows":' + templates.text(decisions), copies

    def _give_over(self) -> Exchange:
        """Let an exchange go on with this request and its first call."""
        exchange = self.service.exchange(self)
        exchange.adopt(self, self._leg)
        if self._hedge is not None:
            self._hedge.discard(self)
            exchange.expect_hedge(self._hedge)
            self._hedge = None
        return exchange
