"""What the proxy itself refuses after it has read it: no upstream hears of it, and the event says why."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from gnomon.events.contract import VERSION, PrimaryResponse
from proxy.connections import now_ns
from proxy.core.requests import LIMIT_EXCEEDED, METHOD_NOT_FOUND, error_body
from proxy.emitter import now_ns as wall_ns

if TYPE_CHECKING:
    from gnomon.events.contract import ErrorClass
    from proxy.asked import Asked
    from proxy.core.limits import Refused

TOO_MANY_REQUESTS: Final = 429


def over_limit(asked: Asked, refused: Refused) -> None:
    """Refuse a request that is one too many: by HTTP 429, or in its place in the batch."""
    whose = refused.claim.whose
    data: dict[str, object] = {"class": "rate_limited"}
    lines = b""
    if refused.seconds < math.inf:
        seconds = max(1, math.ceil(refused.seconds))
        data["retryAfterSeconds"] = seconds
        lines = b"Retry-After: %d\r\n" % seconds
    body = error_body(LIMIT_EXCEEDED, f"limit exceeded: the rate limit of this {whose}", asked.rpc_id, data)
    asked.service.count("rate_limited")
    _refuse(asked, body, "rate_limited", f"rate limit of the {whose}", TOO_MANY_REQUESTS, lines)


def method_not_served(asked: Asked) -> None:
    """Refuse a method that the project does not serve."""
    name = asked.plan.method.name
    body = error_body(METHOD_NOT_FOUND, f"the method {name} is not served here", asked.rpc_id)
    asked.service.count("method_not_served")
    _refuse(asked, body, "method_not_found", "method not served by the project", 200, b"")


def _refuse(asked: Asked, body: bytes, error_class: ErrorClass, reason: str, status: int, lines: bytes) -> None:
    service, network = asked.service, asked.network
    emitter = service.emitter
    service.requests[network.id, "rejected"] += 1
    if not asked.rpc_id:
        body = b""  # a notification: nobody waits for an answer
    emitter.append(
        # Without the params: whoever asks too much must not fill the log with them.
        PrimaryResponse(
            v=VERSION,
            event_id=emitter.next_event_id(),
            at=wall_ns(),
            network=network.id,
            config_hash=network.config_hash,
            request_id=asked.request_id.decode(),
            batch_id=asked.batch.id.decode() if asked.batch is not None else "",
            project=network.project.id,
            user=asked.head.grant.user if asked.head.grant is not None else "",
            agent=asked.head.agent,
            method=asked.plan.method.name,
            rpc_id=asked.raw_id,
            request_bytes=len(asked.body),
            response_bytes=len(body),
            duration_us=(now_ns() - asked.started_ns) // 1000,
            outcome="rejected",
            error_class=error_class,
            heads=network.heads(None),
            reject_reason=reason,
        )
    )
    if asked.batch is not None:
        asked.batch.done(asked, body)
    else:
        lines = b"%bX-Gnomon-Request-Id: %b\r\n" % (lines, asked.request_id)
        asked.client.answer(asked.head, lines, body, status)
    asked.owner = asked.client = None  # type: ignore[assignment]  # a ring would wait for the collector
