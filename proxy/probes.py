"""
Probes: copies of clients' reads to upstreams that are kept out of routing, to see whether they are well again.

Kept out is who has an open breaker, is held for a quota, or syncs. Who asked for a rest itself (`Retry-After`) gets it.
Nothing is probed before a breaker's time has come: the probe is its trial then. What a probe comes to feeds the
breaker, and a result ends a hold for a quota (which is looked at every ten seconds); its answer reaches nobody. Each is
an `attempt` event of kind `probe`, so that its cost is seen. On for primaries and off for fallbacks unless
`routing.probe` says otherwise.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from proxy import records
from proxy.connections import Call, now_ns
from proxy.core import answers
from proxy.core.answers import NONE, RESULT, Reply
from proxy.core.breaker import FREE, Permit
from proxy.gates import RELAYED
from proxy.response_heads import ResponseHead

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proxy.asked import Asked
    from proxy.plans import Leg


def send(asked: Asked, legs: Sequence[Leg]) -> None:
    """Probe those of the legs that are still kept out and may be probed now; the client has its answer."""
    now = time.monotonic()
    for leg in legs:
        permit = _permit(leg, now)
        if permit is None:
            continue
        leg.upstream.probe_rate.take(now)
        Probe(asked, leg, permit).go()


def _permit(leg: Leg, now: float) -> Permit | None:
    """Return the breaker's permit for a probe; None: not now."""
    upstream, gate = leg.upstream, leg.gate
    if upstream.n_probes >= upstream.config.probe_concurrency or not upstream.probe_rate.has_room(now):
        return None
    if (
        not upstream.is_verified
        or upstream.is_cordoned
        or (upstream.held_cause and (upstream.is_resting or now < upstream.probe_from))
    ):
        return None
    is_open = gate is not None and not gate.is_closed
    if not (is_open or upstream.held_cause or (upstream.is_syncing and upstream.config.skip_when_syncing)):
        return None  # it is back since the plan was made
    if leg.share is not None and not leg.share.has_room(now):
        return None
    permit: Permit | None = FREE
    if gate is not None:
        if not gate.breaker.may_try(now):
            return None
        permit = gate.enter()
    if permit is not None and leg.share is not None:
        leg.share.count(now)
    return permit


class Probe(Call):
    """One probe on its way."""

    __slots__ = ("_asked", "_leg", "_permit")

    def __init__(self, asked: Asked, leg: Leg, permit: Permit) -> None:
        super().__init__(self, leg.upstream.pool, asked.body, "probe")
        self._asked = asked
        self._leg = leg
        self._permit = permit

    def go(self) -> None:
        """Send it."""
        service, upstream = self._asked.service, self._leg.upstream
        upstream.n_probes += 1
        upstream.n_calls += 1
        service.probes.add(self)
        try:
            self.launch(self._leg.lane)
        except Exception as error:
            service.unexpected("probe", error)
            if self in service.probes:
                if not hasattr(self, "bucket"):
                    self.started_ns, self.bucket = now_ns(), set()  # it was not even armed
                self.cancel()
                self._end("error", "internal", None)

    def answered(self, call: Call, head: ResponseHead, body: bytes) -> None:
        """Take an HTTP answer: what it means is told as for a client's attempt."""
        asked, leg = self._asked, self._leg
        network, upstream = asked.network, leg.upstream
        reply = answers.read(body, asked.sent_id, asked.plan.method, head.status, asked.service.emitter.proved)
        if upstream.is_relayed(head):
            self._end("error", RELAYED, reply)
            return
        if reply.kind is NONE:
            if reply.error_class == "parse":
                self.distrust()
            self._end("error", reply.error_class, reply)
        elif reply.kind is RESULT:
            if leg.lacks is not None and leg.lacks(reply.fragment):
                self._end("error", "validate", reply)
                return
            self._end("empty" if reply.is_empty else "result", "", reply)
        else:
            self._end("verdict" if reply.is_answer else "error", reply.error_class, reply)
        if reply.is_answer or reply.kind is RESULT:
            network.readmit(upstream)
        else:
            network.hold_for(upstream, reply.error_class, head)

    def failed(self, call: Call, error_class: str) -> None:
        """Take a call without an answer."""
        self._end(error_class if error_class in ("timeout", "transport") else "error", error_class, None)

    def cut(self) -> None:
        """End the call at shutdown."""
        self.cancel()
        self._end("cancelled", "cancelled", None)

    def _end(self, outcome: str, error_class: str, reply: Reply | None) -> None:
        asked, leg = self._asked, self._leg
        upstream, emitter = leg.upstream, asked.service.emitter
        self.owner = None  # type: ignore[assignment]  # a ring would wait for the collector
        asked.service.probes.discard(self)
        upstream.n_probes -= 1
        upstream.n_failed += outcome in ("error", "timeout", "transport")
        leg.leave(self._permit, error_class)
        made = records.attempt(self, upstream, outcome, error_class, reply, method=asked.plan.method.name)
        records.write_internal(emitter, asked.network, made, params=asked.raw_params, latest=asked.network.book.latest)
