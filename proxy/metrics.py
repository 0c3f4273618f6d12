"""The closed list of the proxy's metrics, and their text for Prometheus."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gnomon import exposition
from gnomon.events.log.status import status
from gnomon.exposition import Definition
from proxy.shipper import metrics as shipper

if TYPE_CHECKING:
    from proxy.service import Service

_UPSTREAM: Final = ("network", "upstream")
_BREAKER: Final = (*_UPSTREAM, "methods")

DEFINITIONS: Final[tuple[Definition, ...]] = (
    Definition("gnomon_requests_total", "counter", ("network", "outcome"),
               "Client requests by network and outcome; batch elements count one each."),
    Definition("gnomon_client_connections", "gauge", (), "Open client connections."),
    Definition("gnomon_client_bytes", "gauge", (), "Bytes of request bodies held, from their arrival to their answer."),
    Definition("gnomon_client_refusals_total", "counter", ("reason",), "Requests and connections refused, by reason."),
    Definition("gnomon_hedged_requests_total", "counter", ("network",), "Hedges fired, by network."),
    Definition("gnomon_upstream_calls_total", "counter", (*_UPSTREAM, "tier"),
               "Calls to an upstream, mirrored ones included."),
    Definition("gnomon_upstream_failures_total", "counter", (*_UPSTREAM, "tier"),
               "Calls to an upstream that brought no answer."),
    Definition("gnomon_upstream_connections", "gauge", (*_UPSTREAM, "state"), "Connections to an upstream, by state."),
    Definition("gnomon_upstream_waiting", "gauge", _UPSTREAM, "Calls that wait for a connection to an upstream."),
    Definition("gnomon_upstream_verified", "gauge", _UPSTREAM, "1 when the upstream's chain id is the network's."),
    Definition("gnomon_upstream_trouble", "gauge", _UPSTREAM,
               "What puts a primary behind others: 4 failing, 2 lagging, 1 slow, added up."),
    Definition("gnomon_upstream_held", "gauge", _UPSTREAM,
               "1 while nobody calls the upstream, for a quota or a Retry-After."),
    Definition("gnomon_upstream_cordoned", "gauge", _UPSTREAM, "1 while the upstream is kept out of routing by hand."),
    Definition("gnomon_breaker_state", "gauge", _BREAKER, "0 closed, 1 half open, 2 open; by upstream and methods."),
    Definition("gnomon_breaker_calls_total", "counter", _BREAKER, "Calls that a breaker has watched."),
    Definition("gnomon_breaker_misses_total", "counter", _BREAKER, "Of those, the ones held against the upstream."),
    Definition("gnomon_breaker_skipped_total", "counter", _BREAKER,
               "Calls that an open breaker kept from the upstream."),
    Definition("gnomon_breaker_reasons_total", "counter", (*_BREAKER, "reason"),
               "What went wrong with the calls that a breaker has watched."),
    Definition("gnomon_rate_limit_calls_total", "counter", ("budget", "of"),
               "Calls that a rate limit let through, by budget and whose it is."),
    Definition("gnomon_rate_limit_refused_total", "counter", ("budget", "of"),
               "Calls that a rate limit kept back, by budget and whose it is."),
    Definition("gnomon_head_blocks", "gauge", (*_UPSTREAM, "axis"),
               "Head by network, upstream and axis; absent while unknown."),
    Definition("gnomon_head_lag_blocks", "gauge", _UPSTREAM,
               "Blocks behind the network's head; absent while either is unknown."),
    Definition("gnomon_head_lag_seconds", "gauge", _UPSTREAM,
               "For how long the network has had a block that the upstream lacks."),
    Definition("gnomon_shadow_in_flight", "gauge", _UPSTREAM, "Mirrored calls under way, by shadow."),
    Definition("gnomon_shadow_spent_usd", "gauge", _UPSTREAM,
               "What a shadow with a monthly budget has used of it, calls under way included."),
    Definition("gnomon_probes_in_flight", "gauge", _UPSTREAM,
               "Probes under way, by upstream that is kept out of routing."),
    Definition("gnomon_short_circuit_held_off", "gauge", _UPSTREAM,
               "1 for an upstream whose unknown head has future blocks dispatched."),
    Definition("gnomon_head_subscribed", "gauge", _UPSTREAM,
               "1 while heads of a WebSocket endpoint come by subscription."),
    Definition("gnomon_head_pollers", "gauge", (), "Poll loops; one for each upstream of an EVM network."),
    Definition("gnomon_events_total", "counter", (), "Events made by this process."),
    Definition("gnomon_event_bytes_total", "counter", (), "Bytes of events made by this process."),
    Definition("gnomon_events_dropped_total", "counter", (), "Events that the log could not take; they are lost."),
    Definition("gnomon_log_used_ratio", "gauge", (), "Share of the log's bound that its segments take, 0 to 1."),
    Definition("gnomon_log_unread_ratio", "gauge", (),
               "Share of the log's bound that events take which a consumer still needs, 0 to 1."),
    Definition("gnomon_log_written_total", "counter", (),
               "Events that the log has taken since it began, over all processes."),
    Definition("gnomon_log_dropped_total", "counter", (),
               "Events that a full log refused since it began, over all processes."),
    Definition("gnomon_log_lag_records", "gauge", ("consumer",), "Events in the log that a consumer has not had yet."),
    Definition("gnomon_config_reloads_total", "counter", ("result",),
               "Reloads of the configuration: ok, or invalid (the old one stays)."),
    Definition("gnomon_unexpected_errors_total", "counter", ("scope",),
               "Errors nobody expected, by scope; each is a bug."),
)  # fmt: skip


def render(service: Service) -> bytes:
    """Return all metrics in Prometheus' text format."""
    samples: dict[str, list[tuple[dict[str, str], float]]] = {d.name: [] for d in DEFINITIONS}

    def add(name: str, value: float, **labels: str) -> None:
        samples[name].append((labels, value))

    requests = service.requests.copy()
    for state in service.networks:
        requests[state.id, "result"] += state.n_results
    for (network, outcome), n in requests.items():
        add("gnomon_requests_total", n, network=network, outcome=outcome)
    add("gnomon_client_connections", len(service.clients))
    add("gnomon_client_bytes", service.in_flight_bytes)
    for reason, n in service.refusals.items():
        add("gnomon_client_refusals_total", n, reason=reason)
    for network, n in service.hedges.items():
        add("gnomon_hedged_requests_total", n, network=network)
    for result in ("ok", "invalid"):
        add("gnomon_config_reloads_total", service.reloads[result], result=result)
    for scope, n in service.errors.items():
        add("gnomon_unexpected_errors_total", n, scope=scope)
    for state in service.networks:
        for upstream in state.upstreams:
            labels = {"network": state.id, "upstream": upstream.id}
            if state.is_short_circuiting and upstream.config.shadow is None:
                add("gnomon_short_circuit_held_off", int(upstream.id in state.held_off_by), **labels)
            add("gnomon_upstream_calls_total", upstream.n_calls, tier=upstream.tier, **labels)
            add("gnomon_upstream_failures_total", upstream.n_failed, tier=upstream.tier, **labels)
            add("gnomon_upstream_connections", upstream.pool.n_idle, state="idle", **labels)
            add("gnomon_upstream_connections", upstream.pool.n_open - upstream.pool.n_idle, state="busy", **labels)
            add("gnomon_upstream_waiting", upstream.pool.n_waiting, **labels)
            add("gnomon_upstream_verified", int(upstream.is_verified), **labels)
            if upstream.config.shadow is None:
                add("gnomon_upstream_held", int(bool(upstream.held_cause)), **labels)
                add("gnomon_upstream_cordoned", int(upstream.is_cordoned), **labels)
                add("gnomon_upstream_trouble", state.trouble(upstream).weight, **labels)
            for gate in upstream.gates.values():
                breaker, own = gate.breaker, {**labels, "methods": gate.scope}
                add("gnomon_breaker_state", ("closed", "half_open", "open").index(breaker.state), **own)
                add("gnomon_breaker_calls_total", breaker.n_calls, **own)
                add("gnomon_breaker_misses_total", breaker.n_misses, **own)
                add("gnomon_breaker_skipped_total", breaker.n_skipped, **own)
                for reason, n in breaker.reasons.items():
                    add("gnomon_breaker_reasons_total", n, **own, reason=reason)
            if upstream.config.shadow is not None:
                add("gnomon_shadow_in_flight", upstream.in_flight, **labels)
                spent = service.allowances.spent_usd(state.project.id, upstream.id)
                if spent is not None:
                    add("gnomon_shadow_spent_usd", spent, **labels)
            elif upstream.is_probed:
                add("gnomon_probes_in_flight", upstream.n_probes, **labels)
            if upstream.is_listener:
                add("gnomon_head_subscribed", int(upstream.is_subscribed), **labels)
            lag, seconds = state.book.lag_blocks(upstream.id), state.book.lag_seconds(upstream.id, time.monotonic())
            if lag is not None and seconds is not None:
                add("gnomon_head_lag_blocks", lag, **labels)
                add("gnomon_head_lag_seconds", seconds, **labels)
            position = state.book.positions[upstream.id]
            for axis in ("latest", "safe", "finalized"):
                number = getattr(position, axis)
                if number is not None:
                    add("gnomon_head_blocks", number, axis=axis, **labels)
    for whose, budget in service.limiter:
        add("gnomon_rate_limit_calls_total", budget.n_calls, budget=budget.id, of=whose)
        add("gnomon_rate_limit_refused_total", budget.n_refused, budget=budget.id, of=whose)
    add("gnomon_head_pollers", service.n_pollers)
    add("gnomon_events_total", service.emitter.n_events)
    add("gnomon_event_bytes_total", service.emitter.n_bytes)
    add("gnomon_events_dropped_total", service.emitter.n_dropped)
    log = status(service.writer.path)
    add("gnomon_log_used_ratio", log.size_bytes / service.writer.max_bytes)
    add("gnomon_log_unread_ratio", log.unread_ratio(service.writer.max_bytes))
    add("gnomon_log_written_total", log.accepted)
    add("gnomon_log_dropped_total", log.dropped)
    for consumer, n in log.lag_by_consumer.items():
        add("gnomon_log_lag_records", n, consumer=consumer)
    text = exposition.render(DEFINITIONS, samples) + shipper.exposition(Path(service.writer.path))
    return text.encode()
