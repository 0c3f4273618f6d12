"""How a call to an upstream stands in events: one place for all who make calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.events.contract import NO_BODY, VERSION, Attempt, InternalAttempt
from proxy.connections import Call, now_ns
from proxy.emitter import now_ns as wall_ns

if TYPE_CHECKING:
    from msgspec import Raw

    from proxy.core.answers import Reply
    from proxy.emitter import Emitter
    from proxy.networks import NetworkState
    from proxy.upstreams import UpstreamState


def attempt(
    call: Call,
    upstream: UpstreamState,
    outcome: str,
    error_class: str = "",
    reply: Reply | None = None,
    *,
    tier: str = "",
    method: str = "",
    since_ns: int | None = None,
) -> Attempt:
    """
    Return a call that has ended as events carry it.

    Args:
        upstream: who was called, and is paid.
        tier: where it is not the upstream's own.
        method: of a question of our own; empty for the request's.
        since_ns: when the request began; None for calls that no request caused.
    """
    config = upstream.config
    return Attempt(
        upstream=upstream.id,
        vendor=config.vendor,
        account=config.account,
        tier=tier or upstream.tier,  # type: ignore[arg-type]
        kind=call.kind,  # type: ignore[arg-type]
        cause=call.cause,  # type: ignore[arg-type]
        method=method,
        start_us=(call.started_ns - since_ns) // 1000 if since_ns is not None else 0,
        duration_us=(now_ns() - call.started_ns) // 1000,
        request_bytes=call.n_request,
        response_bytes=call.n_response,
        status=call.status,
        outcome=outcome,  # type: ignore[arg-type]
        error_class=error_class,  # type: ignore[arg-type]
        error_code=reply.code if reply is not None else None,
        is_empty=reply is not None and reply.is_empty,
        is_cancelled=outcome == "cancelled",
    )


def write_internal(
    emitter: Emitter, network: NetworkState, made: Attempt, *, params: Raw = NO_BODY, latest: int | None = None
) -> None:
    """Write the event of a call that no client asked for."""
    event_id = emitter.next_event_id()
    emitter.append(
        InternalAttempt(
            v=VERSION,
            event_id=event_id,
            at=wall_ns(),
            network=network.id,
            config_hash=network.config_hash,
            attempt_id=event_id,
            project=network.project.id,
            params=params,
            latest=latest,
            attempt=made,
        )
    )
