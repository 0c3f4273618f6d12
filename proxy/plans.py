"""
Plans: how a method is routed now. A plan is made once and used until something changes: an upstream comes or goes, a
breaker opens, an order moves, a learnt delay is a second old.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gnomon.config.model import Failsafe, Quantile
from gnomon.config.patterns import matches
from gnomon.rpc.blocks import request_block
from gnomon.rpc.finality import Finality
from gnomon.rpc.finality import finality as finality_of
from gnomon.rpc.methods import Method, lookup
from proxy.core import validation
from proxy.core.backoff import waits
from proxy.core.breaker import FREE, Permit
from proxy.core.latency import Latencies, delay_for
from proxy.core.limits import Share, share
from proxy.core.shadowing import is_allowed
from proxy.core.validation import Fragment
from proxy.gates import Gate, scope_of
from proxy.shadow_legs import ShadowLeg
from proxy.templates import attempt_of, closed, members, text
from proxy.upstreams import UpstreamState
from proxy.wheel import Lane, Wheel

if TYPE_CHECKING:
    from proxy.networks import NetworkState

DEFAULT_ATTEMPT_SECONDS: Final = 30.0
_ADAPT_SECONDS: Final = 1.0
_PLANS_LIMIT: Final = 4096


class Leg:
    """
    One upstream within a plan, with its timeout for the plan's method.

    served, attempt    what events say of it where it answers a request's first attempt (see `templates`)
    lines, heads       header lines of that answer, and the heads for its event: as of `version` of the heads
    gate               the breaker for the method, if there is one
    share              what the method draws on of the upstream's rate limit, if there is one
    lacks              says whether a result lacks what it must have; None: nothing is asked of it
    """

    __slots__ = (
        "_cause_line", "attempt", "gate", "heads", "lacks", "lane", "lines", "served", "share", "upstream", "version",
    )  # fmt: skip

    def __init__(
        self,
        upstream: UpstreamState,
        lane: Lane,
        cause: str,
        gate: Gate | None = None,
        lacks: Callable[[Fragment], bool] | None = None,
        share: Share | None = None,
    ) -> None:
        self.upstream = upstream
        self.lane = lane
        self.gate = gate
        self.share = share
        self.lacks = lacks
        self.served = closed(members(upstream=upstream.id, cause=cause) + b',"tier":"%b"' % upstream.tier.encode())
        self.attempt = attempt_of(upstream.config, cause=cause)
        self._cause_line = b"X-Gnomon-Cause: %b\r\n" % cause.encode() if cause else b""
        self.lines = self.heads = b""
        self.version = -1

    @property
    def is_free(self) -> bool:
        """Nothing keeps calls from it, and nothing counts them."""
        upstream = self.upstream
        is_held = upstream.held_cause or upstream.is_cordoned
        return (self.gate is None or self.gate.is_closed) and not is_held and self.share is None

    def enter(self) -> tuple[str, Permit]:
        """Return why the upstream is not to be called now ("": it is), and the permit for a call."""
        upstream = self.upstream
        if upstream.is_cordoned:
            return "cordoned", FREE
        if upstream.held_cause and time.monotonic() < upstream.held_until:
            return upstream.held_cause, FREE
        if self.share is not None and not self.share.has_room(time.monotonic()):
            return "rate_limited", FREE
        permit = self.gate.enter() if self.gate is not None else FREE
        if permit is None:
            return "breaker_open", FREE
        if self.share is not None:
            self.share.count(time.monotonic())
        return "", permit

    def leave(self, permit: Permit, error_class: str) -> None:
        """Tell the breaker what a call came to; its class is empty for a result."""
        if self.gate is not None:
            self.gate.leave(permit, error_class)

    def refresh(self, network: NetworkState) -> None:
        """Take the heads as they are now."""
        self.version = network.book.version
        self.lines = b"%bX-Gnomon-Attempts: 1\r\n%b" % (network.lines(self.upstream), self._cause_line)
        self.heads = text(network.heads(self.upstream))


class Plan:
    """How one method is routed now: who, in which order, with which limits."""

    __slots__ = (
        "accepts_empty", "all_mirrored", "can_resend", "direct", "empty_rounds", "escape_cause", "expires_at",
        "fallbacks", "first_cause", "hedge_lane", "hedges", "is_by_finality", "is_foreseen", "is_refused",
        "jitter_seconds", "latencies", "member", "method", "primaries", "probes",
        "rounds", "shadows", "waits",
    )  # fmt: skip

    def __init__(self, method: Method) -> None:
        self.method = method
        self.member = b'"method":%b,' % text(method.name)
        self.can_resend = not method.is_write or method.name == "eth_sendRawTransaction"
        """A kept connection that turns out closed may be replaced: the call is harmless twice."""
        self.direct: Leg | None = None
        """Whom a request goes to first; None: there is more to decide."""
        self.primaries: tuple[Leg, ...] = ()
        self.fallbacks: tuple[Leg, ...] = ()
        self.rounds = 1
        self.empty_rounds = 1
        """Rounds while the reason is an empty answer, for who insists on another."""
        self.waits: tuple[float, ...] = ()
        """Seconds before each round but the first, and at most so many more by chance."""
        self.jitter_seconds = 0.0
        self.hedges = 0
        self.hedge_lane: Lane | None = None
        self.first_cause = ""
        self.escape_cause = "primary_error"
        self.shadows: tuple[ShadowLeg, ...] = ()
        self.probes: tuple[Leg, ...] = ()
        """Who is kept out of routing now, and may be probed."""
        self.all_mirrored = b""
        """How an event says that every shadow got a copy."""
        self.accepts_empty = False
        self.is_foreseen = False
        """The heads have a say before anybody is asked: a future block is nobody's, `latest` is a number."""
        self.is_by_finality = False
        """What is asked has a say too: `plan_for` knows the plan to follow."""
        self.is_refused = False
        """The project does not serve the method."""
        self.latencies: Latencies | None = None
        self.expires_at: float | None = None


class Planner:
    """Makes and keeps the plans of one network."""

    def __init__(self, network: NetworkState, wheel: Wheel) -> None:
        self._network = network
        self._wheel = wheel
        self.plans: dict[str, Plan] = {}
        self._by_finality: dict[tuple[str, Finality], Plan] = {}
        config = network.config
        self._finality_patterns = tuple(
            rule.match_method
            for rules in (config.failsafe, *(u.config.failsafe for u in network.upstreams))
            for rule in rules
            if rule.match_finality
        )
        """Methods that are routed by what is asked too: whether it is final."""
        self._latencies: dict[str, Latencies] = {}
        self._default_lane = wheel.lane(min(DEFAULT_ATTEMPT_SECONDS, config.max_retry_seconds))

    def adopt(self, before: Planner) -> None:
        """Go on with the latencies that an earlier configuration has learnt."""
        self._latencies = before._latencies

    def forget(self) -> None:
        """Have every plan made anew."""
        self.plans.clear()
        self._by_finality.clear()

    def plan(self, name: str) -> Plan:
        """Return the plan for a method, made once until something changes (adaptive delays: once a second)."""
        plan = self.plans.get(name)
        if plan is None or (plan.expires_at is not None and time.monotonic() > plan.expires_at):
            if len(self.plans) >= _PLANS_LIMIT:
                self.plans.clear()
            plan = self.plans[name] = self._make(name)
        return plan

    def plan_for(self, method: Method, params: bytes) -> Plan:
        """Return the plan for a method where it depends on the finality of the request."""
        reference = request_block(method, params)
        found: Finality = "realtime"
        if not reference.is_left_out:
            found = finality_of(method, reference, None, self._network.book.latest, self._network.finalized)
        key = (method.name, found)
        plan = self._by_finality.get(key)
        if plan is None or (plan.expires_at is not None and time.monotonic() > plan.expires_at):
            if len(self._by_finality) >= _PLANS_LIMIT:
                self._by_finality.clear()
            plan = self._by_finality[key] = self._make(method.name, found)
        return plan

    def _make(self, name: str, finality: Finality | None = None) -> Plan:
        method = lookup(name)
        plan = Plan(method)
        if not is_allowed(name, self._network.project.allow_methods, self._network.project.ignore_methods):
            plan.is_refused = True
            return plan
        plan.is_by_finality = finality is None and any(matches(pattern, name) for pattern in self._finality_patterns)
        rule = _first_match(self._network.config.failsafe, name, finality)
        eligible = [
            u
            for u in self._network.routed
            if u.is_verified
            and not (u.is_syncing and u.config.skip_when_syncing)
            and is_allowed(name, u.config.allow_methods, u.config.ignore_methods)
        ]
        adaptive = False
        legs: dict[str, Leg] = {}
        for upstream in eligible:
            is_bought = self._network.config.selection_mode == "ordered" and not legs and upstream.is_fallback
            legs[upstream.id], moves = self._leg(name, rule, upstream, finality, "policy_order" if is_bought else "")
            adaptive |= moves
        if self._network.config.selection_mode == "ordered":
            plan.primaries = tuple(legs.values())
            if plan.primaries and plan.primaries[0].upstream.is_fallback:
                plan.first_cause = "policy_order"
        else:
            names = self._network.scores.ordered([name for name, leg in legs.items() if not leg.upstream.is_fallback])
            plan.primaries = tuple(legs[name] for name in names)
            plan.fallbacks = tuple(leg for leg in legs.values() if leg.upstream.is_fallback)
            plan.escape_cause = "cordoned"
        first = plan.primaries[0] if plan.primaries else None
        plan.direct = first if first is not None and first.is_free and first.lacks is None else None
        if rule is not None and rule.retry is not None:
            retry = rule.retry
            plan.rounds = max(1, retry.max_attempts)
            plan.empty_rounds = retry.empty_result_max_attempts
            plan.waits = waits(retry)
            plan.jitter_seconds = retry.jitter_seconds
        accept = rule.retry.empty_result_accept if rule is not None and rule.retry is not None else None
        if accept is None:
            accept = self._network.config.empty_result_accept
        plan.accepts_empty = accept is not None and any(matches(pattern, name) for pattern in accept)
        if rule is not None and rule.hedge is not None and not method.is_write:
            delay = delay_for(rule.hedge.delay, self._latencies_of(name))
            adaptive |= delay.is_adaptive
            plan.hedges = rule.hedge.max_count
            plan.hedge_lane = self._wheel.lane(delay.seconds)
            if plan.direct is not None and plan.hedge_lane.offset >= plan.direct.lane.offset:
                plan.direct = None  # the short way tells the two timers apart by their order
        if adaptive:
            plan.latencies = self._latencies_of(name)
        if adaptive or any(leg.upstream.held_cause for leg in legs.values()):
            plan.expires_at = time.monotonic() + _ADAPT_SECONDS
        plan.is_foreseen = (
            plan.is_by_finality
            or (self._network.has_served_tip and bool(method.block_paths))
            or (self._network.is_short_circuiting and name == "eth_getBlockByNumber")
        )
        plan.shadows = tuple(self._shadow_leg(u, method, finality) for u in self._network.shadows)
        plan.probes = self._probe_legs(name, method, legs, rule, finality)
        plan.all_mirrored = b',"shadows":' + text({u.id: "mirrored" for u in self._network.shadows})
        return plan

    def _leg(
        self, name: str, rule: Failsafe | None, upstream: UpstreamState, finality: Finality | None, cause: str = ""
    ) -> tuple[Leg, bool]:
        """Return an upstream as a plan has it, and whether its timeout moves with the latencies."""
        own = _first_match(upstream.config.failsafe, name, finality)
        lane, moves = self._timeout_lane(name, rule, own)
        gate = upstream.gates.get(scope_of(own)) if own is not None else None
        paths = upstream.config.validators.get(name, ())
        lacks = validation.lacking(paths) if paths else None
        return Leg(upstream, lane, cause, gate, lacks, share(upstream.claim, name)), moves

    def _probe_legs(
        self, name: str, method: Method, legs: dict[str, Leg], rule: Failsafe | None, finality: Finality | None
    ) -> tuple[Leg, ...]:
        """Return who is kept out of routing for a method that may be asked twice, and may be probed with it."""
        if method.is_write or method.is_stateful:
            return ()
        shut = [leg for leg in legs.values() if leg.upstream.held_cause or (leg.gate and not leg.gate.is_closed)]
        syncing = [
            self._leg(name, rule, u, finality)[0]
            for u in self._network.routed
            if u.is_verified
            and u.is_syncing
            and u.id not in legs
            and is_allowed(name, u.config.allow_methods, u.config.ignore_methods)
        ]
        return tuple(leg for leg in (*shut, *syncing) if leg.upstream.is_probed and not leg.upstream.is_cordoned)

    def _latencies_of(self, name: str) -> Latencies:
        if name not in self._latencies and len(self._latencies) >= _PLANS_LIMIT:
            self._latencies.clear()
        return self._latencies.setdefault(name, Latencies())

    def _timeout_lane(self, name: str, rule: Failsafe | None, own: Failsafe | None) -> tuple[Lane, bool]:
        """Return the shorter of the network's and the upstream's own timeout for one attempt."""
        delays = [
            delay_for(found.timeout, self._latencies_of(name))
            for found in (rule, own)
            if found is not None and found.timeout is not None
        ]
        if not delays:
            return self._default_lane, False
        seconds = min(self._network.config.max_retry_seconds, *(d.seconds for d in delays))
        return self._wheel.lane(seconds), any(d.is_adaptive for d in delays)

    def _shadow_leg(self, upstream: UpstreamState, method: Method, finality: Finality | None) -> ShadowLeg:
        own = _first_match(upstream.config.failsafe, method.name, finality)
        timeout = own.timeout if own is not None else None
        is_adaptive = isinstance(timeout, Quantile)
        latencies = self._latencies_of(f"{method.name} {upstream.id}") if is_adaptive else Latencies()
        return ShadowLeg(upstream, method, timeout, latencies, self._wheel)


def _first_match(rules: tuple[Failsafe, ...], name: str, finality: Finality | None) -> Failsafe | None:
    """Return the first rule for a method and what is known of the request's finality."""
    return next(
        (
            rule
            for rule in rules
            if matches(rule.match_method, name) and (not rule.match_finality or finality in rule.match_finality)
        ),
        None,
    )
