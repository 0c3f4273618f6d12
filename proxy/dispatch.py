"""
A request for which there is something to decide: flight → calls → reply → event → answer → shadows.

`Exchange` is the shell around one `Flight`: it makes the calls that the flight asks for, reads what comes back, writes
the event, answers the client, and only then mirrors.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final

from gnomon.events.contract import VERSION, Attempt, PrimaryResponse
from gnomon.rpc import blocks
from proxy import probes, records, templates
from proxy.connections import Call, now_ns
from proxy.core import answers
from proxy.core.answers import ERROR, NONE, RESULT, Reply
from proxy.core.breaker import FREE, Permit
from proxy.core.flight import ANSWERED, FAIL, FAILED, MISSED, PAUSE, REFUSED, SERVE, SERVE_MISS, TRY, Command, Flight
from proxy.core.requests import INTERNAL_ERROR, NULL, error_body
from proxy.core.shadowing import MIRRORED, SHORT_CIRCUITED
from proxy.emitter import now_ns as wall_ns
from proxy.gates import RELAYED
from proxy.mirrors import Mirror, PrimaryAnswer, decide
from proxy.plans import Leg
from proxy.response_heads import ResponseHead
from proxy.timers import Timer
from proxy.upstreams import UpstreamState
from proxy.wheel import Expiring

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proxy.asked import Asked
    from proxy.service import Service
    from proxy.shadow_legs import ShadowLeg

_GATE_CLASSES: Final = frozenset(("rate_limited", "quota", "unauthorized", "method_not_found", "range_limit"))
"""Errors by which the node surely did not carry the request out."""


_OVERRUN: Final = 2.0
"""What ran out of time took longer, nobody knows how much: so many times its timeout, or no timeout would grow."""


class Exchange:
    """One request on the whole way; `start` begins it, `adopt` goes on with one whose first call is out."""

    __slots__ = (
        "_asked", "_attempts", "_deadline", "_done", "_flight", "_hedge_timer", "_is_short_circuited", "_live",
        "_miss", "_n_skipped", "_pause", "_refusal", "_service", "_skip_cause",
    )  # fmt: skip

    def __init__(self, service: Service, asked: Asked) -> None:
        self._service = service
        self._asked = asked
        self._attempts: list[Attempt] = []
        self._live: list[tuple[Call, Leg, Permit]] = []
        self._n_skipped = 0
        self._skip_cause = ""
        self._is_short_circuited = False
        self._done = False
        self._miss: tuple[Reply, UpstreamState, int] | None = None
        self._refusal: tuple[Reply, UpstreamState, int] | None = None
        self._hedge_timer: Timer | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._flight = self._make_flight()
        network = asked.network
        elapsed_seconds = (now_ns() - asked.started_ns) / 1e9
        self._deadline = Timer(network.deadline_lane(elapsed_seconds).bucket, self._overdue)

    def _make_flight(self) -> Flight[Leg]:
        asked = self._asked
        plan = asked.plan
        primaries, fallbacks = plan.primaries, plan.fallbacks
        grant = asked.head.grant
        if grant is not None and grant.use_upstream:
            primaries = tuple(leg for leg in (*primaries, *fallbacks) if leg.upstream.id == grant.use_upstream)
            fallbacks = ()
        return Flight(
            primaries,
            fallbacks,
            rounds=plan.rounds,
            empty_rounds=plan.empty_rounds if asked.head.insists else 1,
            hedges=plan.hedges,
            is_write=plan.method.is_write,
            first_cause=plan.first_cause,
            escape_cause=plan.escape_cause,
        )

    # --- running the flight -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Send the first attempt."""
        lane = self._asked.plan.hedge_lane
        if lane is not None:
            self._hedge_timer = Timer(lane.bucket, self.hedge)
        self._run(self._flight.start())

    def hold_back(self, seconds: float) -> None:
        """Let the request start after a wait: its place within a rate limit comes then."""
        self._pause = asyncio.get_running_loop().call_later(seconds, self._admitted)

    def _admitted(self) -> None:
        self._deadline.cancel()
        self._pause = None
        self._done = True
        asked = self._asked
        if asked.network.is_checked:
            asked.start_late()
        else:
            asked.network.waiting.append(asked.start_late)

    def short_circuit(self) -> None:
        """Answer null, for nobody has the block yet: no upstream hears of the request."""
        self._is_short_circuited = True
        body = b'{"jsonrpc":"2.0","id":%b,"result":null}' % (self._asked.rpc_id or NULL)
        self._finish(Reply(RESULT, body, NULL), None, "")

    def expect_hedge(self, bucket: set[Expiring]) -> None:
        """Fire a hedge when that bucket of the wheel comes by."""
        self._hedge_timer = Timer(bucket, self.hedge)

    def adopt(self, call: Call, leg: Leg) -> None:
        """Go on with a first call that is out: the flight's first command is carried out already."""
        first = self._flight.start()
        assert first.op == TRY
        assert first.upstream is leg
        call.owner = self
        self._live.append((call, leg, FREE))

    def _run(self, command: Command[Leg], reply: Reply | None = None, upstream: UpstreamState | None = None) -> None:
        plan = self._asked.plan
        while command.op == TRY:
            leg = command.upstream
            assert leg is not None
            cause, permit = leg.enter()
            if not cause:
                self._send(command, leg, permit)
                return
            self._skip_cause = cause
            self._n_skipped += cause == "breaker_open"
            command = self._flight.skipped(command, cause)
        op = command.op
        if op == SERVE:
            self._finish(reply, upstream, "", len(self._attempts))
        elif op == SERVE_MISS:
            assert self._miss is not None
            self._finish(*self._miss[:2], "", self._miss[2])
        elif op == PAUSE:
            wait = plan.waits[self._flight.round - 1] + random.random() * plan.jitter_seconds
            if wait > 0:
                self._pause = asyncio.get_running_loop().call_later(wait, self._resume)
            else:
                self._run(self._flight.resume())
        elif op == FAIL:
            # A write that was refused by one and lost at the next may be on its way: the refusal would deny that.
            is_last_word = not plan.method.is_write or (self._refusal or (0, 0, 0))[2] == len(self._attempts)
            if self._refusal is not None and is_last_word:
                self._finish(*self._refusal[:2], "", self._refusal[2])
            else:
                self._finish(None, None, self._last_error_class())

    def _last_error_class(self) -> str:
        """Return why nobody answered: the last attempt's class, else why nobody was asked."""
        if self._attempts:
            return self._attempts[-1].error_class
        return self._skip_cause if self._skip_cause in ("quota", "rate_limited") else "no_upstream"

    def _send(self, command: Command[Leg], leg: Leg, permit: Permit) -> None:
        asked, target = self._asked, leg.upstream
        if not asked.client.is_open and self._attempts:
            leg.leave(permit, "cancelled")
            self._finish(None, None, "cancelled")
            return
        call = Call(self, target.pool, asked.body, command.kind, command.cause, asked.plan.can_resend)
        self._live.append((call, leg, permit))
        target.n_calls += 1
        call.launch(leg.lane)

    def _resume(self) -> None:
        self._pause = None
        self._run(self._flight.resume())

    def hedge(self) -> None:
        """Fire a hedge, if the flight wants one: its delay has passed."""
        self._hedge_timer = None
        if self._done:
            return
        command = self._flight.hedge()
        if command.op == TRY:
            n_live = self._flight.n_live - 1
            self._run(command)
            if self._flight.n_live > n_live:
                self._service.count_hedge(self._asked.network)
            lane = self._asked.plan.hedge_lane
            if not self._done and self._flight.hedges_left and lane is not None:
                self._hedge_timer = Timer(lane.bucket, self.hedge)

    def _overdue(self) -> None:
        if self._done:
            return
        if self._miss is not None:
            self._finish(*self._miss[:2], "", self._miss[2])
        else:
            self._finish(None, None, "timeout")

    def cut(self) -> None:
        """End the request at shutdown: it is recorded as cancelled."""
        if not self._done:
            self._finish(None, None, "cancelled")

    # --- ends of calls ------------------------------------------------------------------------------------------------

    def answered(self, call: Call, head: ResponseHead, body: bytes) -> None:
        """Take a whole HTTP answer."""
        leg, permit = self._land(call)
        upstream = leg.upstream
        asked, service = self._asked, self._service
        plan = asked.plan
        reply = answers.read(body, asked.sent_id, plan.method, head.status, service.emitter.proved)
        if upstream.is_relayed(head):
            self._relayed(call, leg, permit, reply)
            return
        if reply.kind is NONE:
            if reply.error_class == "parse":
                call.distrust()
            self._fell(call, leg, permit, reply.error_class, reply, head)
            return
        if reply.kind is RESULT and leg.lacks is not None and leg.lacks(reply.fragment):
            self._fell(call, leg, permit, "validate", reply, head)
            return
        leg.leave(permit, reply.error_class)
        if plan.accepts_empty or asked.head.accepts_empty:
            reply.is_miss = False
        duration_ns = now_ns() - call.started_ns
        latencies = plan.latencies
        if latencies is not None:
            latencies.add(duration_ns / 1e9)
        if reply.kind is RESULT:
            self._attempts.append(self._record(call, upstream, "empty" if reply.is_empty else "result", reply=reply))
            if not reply.is_miss:
                if plan.method.response_block_path is not None:
                    block = blocks.response_block(plan.method, reply.fragment)
                    service.learn(asked.network, upstream, block, asked.params)
                command = self._flight.finished(ANSWERED)
            else:
                self._miss = (reply, upstream, len(self._attempts))
                command = self._flight.finished(MISSED, beyond_head=self._is_beyond_head())
        else:
            verdict = reply.verdict
            assert verdict is not None
            kind = "verdict" if verdict.is_verdict else "error"
            self._attempts.append(self._record(call, upstream, kind, reply.error_class, reply))
            if verdict.is_verdict or not verdict.try_elsewhere:
                command = self._flight.finished(ANSWERED)
            else:
                upstream.n_failed += 1
                asked.network.hold_for(upstream, reply.error_class, head)
                self._refusal = (reply, upstream, len(self._attempts))
                outcome = REFUSED if reply.error_class in _GATE_CLASSES else FAILED
                command = self._flight.finished(outcome, reply.error_class)
        self._run(command, reply, upstream)

    def failed(self, call: Call, error_class: str) -> None:
        """Take a call that brought no HTTP answer."""
        self._fell(call, *self._land(call), error_class, None)

    def _relayed(self, call: Call, leg: Leg, permit: Permit, reply: Reply) -> None:
        """Take a node's error that a relay passed on: others are asked, and it is served if nobody else answers."""
        leg.leave(permit, RELAYED)
        reply.error_class = RELAYED
        self._attempts.append(self._record(call, leg.upstream, "error", RELAYED, reply))
        if reply.kind is ERROR:
            self._refusal = (reply, leg.upstream, len(self._attempts))
        self._run(self._flight.finished(FAILED, RELAYED))

    def _fell(
        self,
        call: Call,
        leg: Leg,
        permit: Permit,
        error_class: str,
        reply: Reply | None,
        head: ResponseHead | None = None,
    ) -> None:
        upstream = leg.upstream
        upstream.n_failed += 1
        leg.leave(permit, error_class)
        latencies = self._asked.plan.latencies
        if latencies is not None and error_class == "timeout":
            latencies.add(_OVERRUN * leg.lane.seconds)
        if head is not None:
            self._asked.network.hold_for(upstream, error_class, head)
        outcome = error_class if error_class in ("timeout", "transport") else "error"
        self._attempts.append(self._record(call, upstream, outcome, error_class, reply))
        is_refused = not call.sent or (call.status >= 400 and error_class in _GATE_CLASSES)
        self._run(self._flight.finished(REFUSED if is_refused else FAILED, error_class))

    def _land(self, call: Call) -> tuple[Leg, Permit]:
        for i, (live, leg, permit) in enumerate(self._live):
            if live is call:
                del self._live[i]
                return leg, permit
        raise AssertionError("a call ended that was not under way")

    def _is_beyond_head(self) -> bool:
        asked, network = self._asked, self._asked.network
        config = network.config
        if not config.accept_empty_beyond_head or not network.is_evm:
            return False
        reference = blocks.request_block(asked.plan.method, asked.params)
        if reference.number is None or reference.is_range:
            return False
        return network.book.is_beyond(reference.number, finalized=config.empty_result_confidence == "finalizedBlock")

    def _record(
        self, call: Call, upstream: UpstreamState, outcome: str, error_class: str = "", reply: Reply | None = None
    ) -> Attempt:
        return records.attempt(call, upstream, outcome, error_class, reply, since_ns=self._asked.started_ns)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _finish(
        self, reply: Reply | None, upstream: UpstreamState | None, error_class: str, n_attempt: int = 0
    ) -> None:
        """End the request; `n_attempt` is the served attempt's number, from 1."""
        asked = self._asked
        self._done = True
        self._deadline.cancel()
        if self._hedge_timer is not None:
            self._hedge_timer.cancel()
        if self._pause is not None:
            self._pause.cancel()
        for call, leg, permit in self._live:
            call.cancel()
            leg.leave(permit, "cancelled")
            self._attempts.append(self._record(call, leg.upstream, "cancelled", "cancelled"))
        self._live.clear()
        outcome, body = "error", b""
        cause = ""
        if reply is not None:
            error_class = reply.error_class
            outcome = "result" if reply.kind is RESULT else "verdict" if reply.is_answer else "error"
            cause = self._attempts[n_attempt - 1].cause if n_attempt else ""
            body = reply.body if reply.is_bound else _rebound(reply, asked.rpc_id)
        elif error_class == "cancelled":
            outcome = "cancelled"
        else:
            body = self._own_error(error_class)
        is_cut = outcome == "cancelled"
        if not asked.client.is_open and asked.batch is None:
            outcome = "cancelled"
        self._service.requests[asked.network.id, outcome] += 1
        if not asked.rpc_id:
            body = b""  # a notification: nobody waits for an answer
        copies = self._emit(reply, upstream, outcome, error_class, cause, len(body), is_cut=is_cut)
        if asked.batch is not None:
            asked.batch.done(asked, body)
        else:
            asked.client.answer(asked.head, self._lines(upstream, cause), body)
        asked.owner = asked.client = None  # type: ignore[assignment]  # a ring would wait for the collector
        for copy in copies:
            copy.go()
        if asked.plan.probes and not is_cut and not self._is_short_circuited:
            probes.send(asked, asked.plan.probes)

    def _emit(
        self,
        reply: Reply | None,
        upstream: UpstreamState | None,
        outcome: str,
        error_class: str,
        cause: str,
        n: int,
        *,
        is_cut: bool,
    ) -> list[Mirror]:
        """Write the event; return the mirrored calls that it announces, not yet sent."""
        asked, emitter = self._asked, self._service.emitter
        plan, network, method = asked.plan, asked.network, asked.plan.method
        grant = asked.head.grant
        assert grant is not None
        n_answer = len(reply.body) if reply is not None else 0
        decisions: dict[str, str] | None
        legs: Sequence[ShadowLeg]
        if self._is_short_circuited:
            decisions, legs = {leg.upstream.id: SHORT_CIRCUITED for leg in plan.shadows}, ()
        else:
            decisions, legs = decide(asked, n_answer, upstream, is_cut=is_cut) if plan.shadows else ({}, ())
        if decisions is None:
            decisions = {leg.upstream.id: MIRRORED for leg in legs}
        answer = emitter.answer(reply, method, travels=emitter.bodies == "all", is_primary=True)
        duration_us = (now_ns() - asked.started_ns) // 1000
        heads = network.heads_of_all() if self._is_short_circuited else network.heads(upstream)
        emitter.append(
            PrimaryResponse(
                v=VERSION,
                event_id=emitter.next_event_id(),
                at=wall_ns(),
                network=network.id,
                config_hash=network.config_hash,
                request_id=asked.request_id.decode(),
                batch_id=asked.batch.id.decode() if asked.batch is not None else "",
                project=grant.project.config.id,
                user=grant.user,
                agent=asked.head.agent,
                method=method.name,
                params=asked.raw_params,
                rpc_id=asked.raw_id,
                request_bytes=len(asked.body),
                response_bytes=n,
                duration_us=duration_us,
                outcome=outcome,  # type: ignore[arg-type]
                error_class=error_class,  # type: ignore[arg-type]
                upstream=upstream.id if upstream is not None else "",
                tier=upstream.tier if upstream is not None else "",
                cause=cause,  # type: ignore[arg-type]
                answer=answer,
                attempts=tuple(self._attempts),
                heads=heads,
                short_circuited=self._is_short_circuited,
                beyond_head=self._flight.beyond_head,
                escaped=self._flight.escaped,
                n_skipped_open=self._n_skipped,
                shadows=decisions,  # type: ignore[arg-type]
            )
        )
        primary = PrimaryAnswer(
            upstream,
            outcome,
            error_class,
            reply.body if reply is not None else b"",
            reply.fragment if reply is not None else b"",
            answer.digest,
            templates.block_member(answer.response_block),
            duration_us,
            templates.text(heads),
            reply,
        )
        return [Mirror(asked, leg, primary) for leg in legs]

    def _own_error(self, error_class: str) -> bytes:
        asked = self._asked
        tried = [{"upstream": a.upstream, "class": a.error_class or a.outcome} for a in self._attempts]
        if error_class == "no_upstream":
            message = f"no upstream of {asked.network.id} can serve {asked.plan.method.name}"
        else:
            message = f"no upstream answered ({error_class})"
        return error_body(INTERNAL_ERROR, message, asked.rpc_id, {"class": error_class, "attempts": tried})

    def _lines(self, upstream: UpstreamState | None, cause: str) -> bytes:
        extra = b"X-Gnomon-Cause: %b\r\n" % cause.encode() if cause else b""
        return b"%bX-Gnomon-Attempts: %d\r\nX-Gnomon-Request-Id: %b\r\n%b" % (
            self._asked.network.lines(upstream),
            len(self._attempts),
            self._asked.request_id,
            extra,
        )


def _rebound(reply: Reply, rpc_id: bytes) -> bytes:
    """Return an error that came without an id, under the client's."""
    member = b"error" if reply.kind is ERROR else b"result"
    return b'{"jsonrpc":"2.0","id":%b,"%b":%b}' % (rpc_id or b"null", member, bytes(reply.fragment))
