"""
Mirrored calls: a copy of a request to a shadow, after the client has its answer.

Each shadow has a pool of its own, bounded in calls and in bytes held, so that one that never answers starves nobody.
A call ends in exactly one `shadow_response`.

A control's copy goes to the upstream that served, again, on connections of the control's own: clients' calls to that
upstream never wait for it. What a paid fallback has served is not asked again (`budget`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import Raw

from gnomon.events.contract import VERSION, Answer, ShadowResponse
from gnomon.rpc import blocks
from proxy import records, templates
from proxy.connections import Call, now_ns
from proxy.core import answers
from proxy.core.answers import NONE, RESULT, Reply
from proxy.core.shadowing import (
    BUDGET,
    MIRRORED,
    OUT_OF_RANGE,
    SAMPLED_OUT,
    SHED,
    SIZE,
    is_in_range,
    is_sampled,
)
from proxy.emitter import now_ns as wall_ns
from proxy.response_heads import ResponseHead
from proxy.upstreams import UpstreamState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proxy.asked import Asked
    from proxy.shadow_legs import ShadowLeg


class PrimaryAnswer:
    """
    What a copy's answer is compared with: the primary's, its bytes held until then.

    upstream        who served it; None where nobody did
    fragment        raw result or error; empty where there is no JSON-RPC answer
    digest          of the fragment
    block           the member of the block that it names, for templates
    heads           the heads as known then, as JSON
    """

    __slots__ = (
        "block", "body", "digest", "duration_us", "error_class", "fragment", "heads", "outcome", "reply", "upstream",
    )  # fmt: skip

    def __init__(
        self,
        upstream: UpstreamState | None,
        outcome: str,
        error_class: str,
        body: bytes,
        fragment: bytes | memoryview | Raw,
        digest: str,
        block: bytes,
        duration_us: int,
        heads: bytes,
        reply: Reply | None = None,
    ) -> None:
        self.upstream = upstream
        self.outcome = outcome
        self.error_class = error_class
        self.body = body
        self.fragment = fragment
        self.digest = digest
        self.block = block
        self.duration_us = duration_us
        self.heads = heads
        self.reply = reply

    def as_reply(self) -> Reply | None:
        """Return the answer as it was read."""
        if self.reply is None and self.outcome == "result":
            self.reply = Reply(RESULT, self.body, self.fragment)
            self.reply.digest_ = self.digest
        return self.reply


class Mirror(Call):
    """One copy on its way; takes the call's end and writes the event."""

    __slots__ = ("_asked", "_cost", "_leg", "_n_held", "_primary")

    def __init__(self, asked: Asked, leg: ShadowLeg, primary: PrimaryAnswer) -> None:
        # `Call.__init__` is written out: this runs for each copy.
        upstream = leg.upstream
        self.owner = self
        self.pool = upstream.pool if not leg.is_control else leg.pool(primary.upstream)
        self.body = body = asked.body
        self.kind = "shadow"
        self.cause = ""
        self.can_resend = True
        self.sent = self.done = False
        self.n_response = self.status = 0
        self.connection = None
        self._asked = asked
        self._leg = leg
        self._primary = primary
        self._n_held = n_held = len(body) + len(primary.body)
        upstream.in_flight += 1
        upstream.in_flight_bytes += n_held
        if leg.allowance is not None:
            self._cost = _cost(asked, leg, primary.upstream) or 0
            leg.allowance.take(self._cost)

    def go(self) -> None:
        """Send the copy; what goes wrong is counted and never reaches the client."""
        service = self._asked.service
        try:
            service.mirrors.add(self)
            self._leg.upstream.n_calls += 1
            self.launch(self._leg.lane)
        except Exception as error:
            if not hasattr(self, "bucket"):
                self.started_ns, self.bucket = now_ns(), set()  # it was not even armed
            self._broke(error)

    def _broke(self, error: Exception) -> None:
        """Count a bug of ours, and let the call end with it, if it has not ended."""
        self._asked.service.unexpected("shadow", error)
        if self in self._asked.service.mirrors:
            self.cancel()
            self._end("error", "internal", None)

    def answered(self, call: Call, head: ResponseHead, body: bytes) -> None:
        """Take the shadow's HTTP answer."""
        asked, primary = self._asked, self._primary
        proved = asked.service.emitter.proved
        try:
            if head.status == 200 and primary.upstream is not None and primary.outcome == "result":
                found = answers.quick_result(body, asked.sent_id, proved)
                if found is not None and found[1] == primary.digest:
                    self._leave()
                    if self._leg.is_watched:
                        self._tell("result", "")
                    self._emit_same()
                    return
            reply = answers.read(body, asked.sent_id, asked.plan.method, head.status, proved)
            if reply.kind is NONE and reply.error_class == "parse":
                self.distrust()
        except Exception as error:
            self._broke(error)
            return
        if reply.kind is NONE:
            self._end("error", reply.error_class, reply)
        elif reply.kind is RESULT:
            self._end("empty" if reply.is_empty else "result", "", reply)
        else:
            self._end("verdict" if reply.is_answer else "error", reply.error_class, reply)

    def failed(self, call: Call, error_class: str) -> None:
        """Take a call without an answer."""
        self._end(error_class if error_class in ("timeout", "transport") else "error", error_class, None)

    def cut(self) -> None:
        """End the call at shutdown: it counts as cancelled."""
        self.cancel()
        self._end("cancelled", "cancelled", None)

    def _leave(self) -> None:
        """Give back the place in the shadow's pool."""
        upstream = self._leg.upstream
        upstream.in_flight -= 1
        upstream.in_flight_bytes -= self._n_held
        self._asked.service.mirrors.discard(self)
        self.owner = None  # type: ignore[assignment]  # a ring would wait for the collector

    def _tell(self, outcome: str, error_class: str) -> None:
        """Say how long the call was, and what it has cost."""
        leg = self._leg
        if outcome == "timeout":
            leg.ran_out()
        elif outcome in ("result", "empty", "verdict"):
            leg.took((now_ns() - self.started_ns) / 1e9)
        if leg.allowance is not None:
            served = self._primary.upstream
            actual = _cost(self._asked, leg, served, outcome, error_class, self.status) if self.sent else 0
            leg.allowance.settle(self._cost, actual or 0)

    def _end(self, outcome: str, error_class: str, reply: Reply | None) -> None:
        self._leave()
        if error_class:
            self._leg.upstream.n_failed += 1
        try:
            if self._leg.is_watched:
                self._tell(outcome, error_class)
            self._emit(outcome, error_class, reply)
        except Exception as error:
            self._asked.service.unexpected("shadow", error)

    def _emit_same(self) -> None:
        """Write that the shadow's result has the primary's very bytes."""
        asked, primary, leg = self._asked, self._primary, self._leg
        assert primary.upstream is not None
        emitter, params, started_ns = asked.service.emitter, asked.params, self.started_ns
        digest, n, block = primary.digest.encode(), len(primary.fragment), primary.block
        event = templates.SAME % (
            emitter.proc_bytes, emitter.seq, wall_ns(), asked.head.whose_plain, asked.request_id, asked.plan.member,
            b'"params":%b,' % params if params else b"", primary.duration_us, leg.pair(primary.upstream),
            digest, n, block, digest, n, block,
            leg.attempt if not leg.is_control else leg.attempt_at(primary.upstream),
            (started_ns - asked.started_ns) // 1000, (now_ns() - started_ns) // 1000, len(self.body), self.n_response,
            leg.heads(asked.network, primary.upstream), primary.heads,
        )  # fmt: skip
        emitter.seq += 1
        emitter.append_bytes(event)

    def _emit(self, outcome: str, error_class: str, reply: Reply | None) -> None:
        asked, leg, network = self._asked, self._leg, self._asked.network
        emitter, upstream = asked.service.emitter, self._leg.upstream
        grant = asked.head.grant
        assert grant is not None
        method, served = asked.plan.method, self._primary
        primary = served.as_reply()
        is_equal = (
            primary is not None and reply is not None and primary.kind is reply.kind and primary.digest == reply.digest
        )
        travels = emitter.bodies != "none" and not is_equal
        primary_answer = emitter.answer(primary, method, travels=travels)
        shadow_answer = _without_body(primary_answer) if is_equal else emitter.answer(reply, method, travels=travels)
        target = leg.target(served.upstream)
        assert target is not None
        emitter.append(
            ShadowResponse(
                v=VERSION,
                event_id=emitter.next_event_id(),
                at=wall_ns(),
                network=network.id,
                config_hash=network.config_hash,
                request_id=asked.request_id.decode(),
                project=grant.project.config.id,
                user=grant.user,
                method=method.name,
                params=asked.raw_params,
                primary_upstream=served.upstream.id if served.upstream is not None else "",
                primary_outcome=served.outcome,  # type: ignore[arg-type]
                primary_error_class=served.error_class,  # type: ignore[arg-type]
                primary_duration_us=served.duration_us,
                primary=primary_answer,
                shadow_upstream=upstream.id,
                shadow=shadow_answer,
                attempt=records.attempt(
                    self, target, outcome, error_class, reply, tier="shadow", since_ns=asked.started_ns
                ),
                heads=network.heads(upstream, served.upstream),
                primary_heads=network.heads_of_text(served.heads),
                ignore_fields=leg.ignore_fields,
                tolerate=leg.tolerate,
                is_control=leg.is_control,
            )
        )


def _without_body(answer: Answer) -> Answer:
    return Answer(kind=answer.kind, digest=answer.digest, n_bytes=answer.n_bytes, response_block=answer.response_block)


def decide(
    asked: Asked, n_answer: int, served: UpstreamState | None, *, is_cut: bool = False
) -> tuple[dict[str, str] | None, Sequence[ShadowLeg]]:
    """
    Return the decision for each shadow of the network, and whom to send a copy; rate limits count those now.

    Args:
        n_answer: bytes of the primary's answer, which a pending copy holds.
        served: who gave it; None where nobody did.
        is_cut: the request was given up before it came to an end.

    Returns:
        Shadow → decision (None: every one gets a copy), and those that get one.
    """
    limits, legs = asked.service.limits, asked.plan.shadows
    n_held = len(asked.body) + n_answer
    for leg in legs:
        upstream = leg.upstream
        if (
            not leg.is_plain
            or upstream.in_flight >= limits.shadow_in_flight
            or upstream.in_flight_bytes + n_held > limits.shadow_in_flight_bytes
            or not upstream.is_verified
        ):
            break
    else:
        if not is_cut:
            return None, legs
    decisions = {leg.upstream.id: _decision(asked, leg, n_held, served, is_cut=is_cut) for leg in legs}
    return decisions, [leg for leg in legs if decisions[leg.upstream.id] == MIRRORED]


def _decision(asked: Asked, leg: ShadowLeg, n_held: int, served: UpstreamState | None, *, is_cut: bool) -> str:
    limits, upstream = asked.service.limits, leg.upstream
    config, rate = upstream.config, leg.policy.sample_rate
    if leg.static:
        return leg.static
    if leg.is_bounded:
        reference = blocks.request_block(asked.plan.method, asked.params)
        number = 0 if reference.tag == "earliest" else reference.number
        if not is_in_range(number, config.lower, config.upper, asked.network.book.positions[upstream.id].latest):
            return OUT_OF_RANGE
    if rate < 1.0 and not is_sampled(rate, upstream.id, asked.plan.method.name, asked.params, asked.rpc_id):
        return SAMPLED_OUT
    target = leg.target(served)
    if is_cut or target is None or not upstream.is_verified:
        return SHED
    if leg.is_control and target.is_fallback:
        return BUDGET
    if leg.allowance is not None and not leg.allowance.has_room(_cost(asked, leg, served)):
        return BUDGET
    draws_on = leg.share_of(target, asked.plan.method)
    if draws_on is not None and not draws_on.has_room(time.monotonic()):
        return BUDGET
    is_too_large = n_held > limits.shadow_in_flight_bytes
    if upstream.in_flight >= limits.shadow_in_flight or (
        not is_too_large and upstream.in_flight_bytes + n_held > limits.shadow_in_flight_bytes
    ):
        return SHED
    if is_too_large:
        return SIZE
    if draws_on is not None:
        draws_on.count(time.monotonic())
    return MIRRORED


def _cost(
    asked: Asked,
    leg: ShadowLeg,
    served: UpstreamState | None,
    outcome: str = "result",
    error_class: str = "",
    status: int = 200,
) -> int | None:
    """Return what a copy costs (picodollars), where there is a budget to hold it against; None: nobody knows."""
    if leg.allowance is None or leg.allowance.budget is None:
        return 0
    target = leg.target(served)
    assert target is not None
    network = asked.network
    return asked.service.allowances.cost(
        network.project.id,
        network.id,
        target.config,
        asked.plan.method,
        asked.params,
        network.book.latest,
        outcome=outcome,
        error_class=error_class,
        status=status,
    )
