"""Networks and projects at run time: who serves a network, how far its heads are, and who is left alone for a while."""

import logging
import math
import time
from collections.abc import Callable
from typing import Final

import msgspec

from gnomon.config.model import Network, Project
from gnomon.events.contract import VERSION, BreakerState, BreakerTransition, Head, Heads
from proxy.core import tips
from proxy.core.heads import HeadBook
from proxy.core.scores import Scores, Seen, Trouble
from proxy.emitter import Emitter
from proxy.emitter import now_ns as wall_ns
from proxy.gates import Gate, scope_of
from proxy.plans import Planner
from proxy.response_heads import ResponseHead, retry_after
from proxy.upstreams import UpstreamState
from proxy.wheel import Lane, Wheel

log = logging.getLogger("gnomon.proxy")

QUOTA_SECONDS: Final = 60.0
"""How long an upstream is left alone after a quota or billing error that does not say so itself."""
QUOTA_PROBE_SECONDS: Final = 10.0
"""How long after such an error a probe may see whether it still holds, and after that probe the next."""

_decode_heads = msgspec.json.Decoder(Heads).decode


class NetworkState:
    """One network of one project."""

    def __init__(
        self, project: Project, config: Network, upstreams: list[UpstreamState], wheel: Wheel, emitter: Emitter
    ) -> None:
        self.project = project
        self.config_hash = emitter.config_hash
        self.successor: NetworkState | None = None
        """What a reload has put in its place; requests that came before end here."""
        self._emitter = emitter
        self.config = config
        self.id = config.id
        self.is_evm = config.architecture == "evm"
        self.followed = [u for u in upstreams if u.config.shadow is None]
        """Whose heads count."""
        self.routed = [u for u in self.followed if not u.is_listener]
        self.shadows = [u for u in upstreams if u.config.shadow is not None]
        self.upstreams = upstreams
        self.by_id = {u.id: u for u in upstreams}
        self.book = HeadBook(
            {u.id: u.config.shadow is not None for u in upstreams},
            {u.id: max(60.0, 10 * u.config.poll_interval_seconds) for u in upstreams},
        )
        self.is_checked = not self.is_evm
        """Every routed upstream's chain id was asked once, or one primary is verified."""
        self.waiting: list[Callable[[], None]] = []
        """Requests that came before any chain id was known; run once it is."""
        self._checked: set[str] = set()
        self._wheel = wheel
        self.planner = Planner(self, wheel)
        self.plans = self.planner.plans
        self._heads_version = -1
        self._head = Head()
        self.has_served_tip = self.is_evm and "latest" in config.served_tip_enabled_for
        self.is_short_circuiting = self.is_evm and (config.short_circuit_future_blocks or self.has_served_tip)
        self.held_off_by: tuple[str, ...] = ()
        """Upstreams whose unknown heads keep future blocks from being answered here."""
        self.scores = Scores([u.id for u in self.routed])
        self._counted = dict.fromkeys((u.id for u in self.routed), (0, 0))
        self._tips_version = -1
        self._ceiling: int | None = None
        self._tip: int | None = None
        self.n_results = 0
        """Requests that went the short way (`asked`)."""
        for upstream in self.routed:
            gates, upstream.gates = upstream.gates, {}
            for rule in upstream.config.failsafe:
                if rule.breaker is None:
                    continue
                scope = scope_of(rule)
                gate = gates.get(scope)
                if gate is None or gate.policy != rule.breaker:
                    gate = Gate(rule.breaker, emitter, self, upstream.id, scope)
                gate.move(self)
                upstream.gates[scope] = gate

    def adopt(self, before: "NetworkState", upstreams: list[str]) -> None:
        """
        Go on where an earlier configuration's state of this network stands.

        Args:
            upstreams: those whose endpoint is the same in both.
        """
        before.successor = self
        self.book.adopt(before.book, upstreams)
        self.scores.adopt(before.scores, upstreams)
        self._counted.update({u: before._counted[u] for u in upstreams if u in before._counted and u in self._counted})
        self.planner.adopt(before.planner)
        self.n_results, before.n_results = before.n_results, 0
        self._checked = before._checked & set(upstreams)
        self.is_checked = self.is_checked or any(u.is_verified and not u.is_fallback for u in self.routed)

    def chain_checked(self, upstream: "UpstreamState") -> None:
        """Note that an upstream's chain id was asked for; lets waiting requests go as soon as somebody can serve."""
        self._checked.add(upstream.id)
        if self.is_checked:
            return
        self.is_checked = any(u.is_verified and not u.is_fallback for u in self.routed) or all(
            u.id in self._checked for u in self.routed
        )
        if self.is_checked:
            waiting, self.waiting = self.waiting, []
            for start in waiting:
                start()

    def deadline_lane(self, elapsed_seconds: float) -> Lane:
        """Return the lane for what is left of a request's time, in whole seconds so that lanes stay few."""
        return self._wheel.lane(float(max(1, math.ceil(self.config.max_retry_seconds - elapsed_seconds))))

    def polled(self, upstream: UpstreamState, seconds: float) -> None:
        """Take how long a head poll took."""
        self.scores.polled(upstream.id, seconds)

    def trouble(self, upstream: UpstreamState) -> Trouble:
        """Return what keeps an upstream from its place in the order."""
        return self.scores.trouble(upstream.id)

    def weigh(self, now: float) -> None:
        """Look at what the primaries did since the last time, and put those in trouble last."""
        if self.config.selection_mode == "ordered":
            return
        seen = {}
        before = {}
        for upstream in self.routed:
            if upstream.is_fallback or not upstream.is_verified:
                continue
            n_calls, n_failed = self._counted[upstream.id]
            self._counted[upstream.id] = (upstream.n_calls, upstream.n_failed)
            before[upstream.id] = self.trouble(upstream)
            seen[upstream.id] = Seen(
                n_calls=upstream.n_calls - n_calls,
                n_failed=upstream.n_failed - n_failed,
                head=self.book.positions[upstream.id].latest,
                poll_interval_seconds=upstream.config.poll_interval_seconds,
            )
        if self.scores.weigh(seen, self.book.latest, now):
            self.replan()
            for name, trouble in before.items():
                found = self.scores.trouble(name)
                if found != trouble:
                    log.warning("order network=%s upstream=%s trouble=%s was=%s", self.id, name, found, trouble)

    def hold_for(self, upstream: UpstreamState, error_class: str, head: ResponseHead) -> None:
        """Leave an upstream alone for a while after it said that it is asked too much, or not paid."""
        if error_class == "quota":
            seconds = retry_after(head.headers, time.time())
            self.hold(upstream, seconds or QUOTA_SECONDS, "quota", is_asked=seconds > 0)
        elif error_class == "rate_limited":
            seconds = retry_after(head.headers, time.time())
            if seconds:
                self.hold(upstream, seconds, "rate_limited", is_asked=True)

    def hold(self, upstream: UpstreamState, seconds: float, cause: str, *, is_asked: bool = False) -> None:
        """
        Call an upstream no more before so many seconds have passed.

        Args:
            cause: of the contract.
            is_asked: the upstream itself named the time: not even a probe disturbs it.
        """
        until = time.monotonic() + seconds
        if until <= upstream.held_until:
            return
        is_new = not upstream.held_cause
        upstream.held_until, upstream.held_cause, upstream.is_resting = until, cause, is_asked
        upstream.probe_from = time.monotonic() + QUOTA_PROBE_SECONDS
        self.replan()
        if is_new:
            self.tell_hold(upstream, "closed", "open", cause)
            log.warning(
                "upstream held network=%s upstream=%s cause=%s seconds=%.0f", self.id, upstream.id, cause, seconds
            )

    def readmit(self, upstream: UpstreamState) -> None:
        """End a hold for a quota: a probe was answered."""
        if upstream.held_cause == "quota" and not upstream.is_resting:
            upstream.held_until = 0.0
            self.release(time.monotonic())

    def release(self, now: float) -> None:
        """Let upstreams be called again whose time has come."""
        for upstream in self.routed:
            if upstream.held_cause and now >= upstream.held_until:
                cause, upstream.held_cause = upstream.held_cause, ""
                self.replan()
                self.tell_hold(upstream, "open", "closed", cause)

    def tell_hold(self, upstream: UpstreamState, before: BreakerState, after: BreakerState, cause: str) -> None:
        """Write the event that an upstream is left alone (`open`) or called again (`closed`), and for what cause."""
        emitter = self._emitter
        emitter.append(
            BreakerTransition(
                v=VERSION,
                event_id=emitter.next_event_id(),
                at=wall_ns(),
                network=self.id,
                config_hash=self.config_hash,
                upstream=upstream.id,
                from_state=before,
                to_state=after,
                reason=cause,
                scope="*",
            )
        )

    def replan(self) -> None:
        """Forget the plans: an upstream became eligible or ceased to be."""
        self.planner.forget()
        self._tips_version = -1
        if self.successor is not None:
            self.successor.replan()

    @property
    def finalized(self) -> int | None:
        """The finalized head; where no upstream has one, the block so far behind the newest that it counts as final."""
        book = self.book
        if book.finalized is not None or book.latest is None or not self.is_evm:
            return book.finalized
        deep = book.latest - self.config.fallback_finality_depth
        return deep if deep >= 0 else None

    @property
    def ceiling(self) -> int | None:
        """The block above which no upstream of any tier can have one; None while any head is unknown."""
        self._read_tips()
        return self._ceiling

    @property
    def tip(self) -> int | None:
        """The freshest block that a strict majority of the eligible primaries has."""
        self._read_tips()
        return self._tip

    def _read_tips(self) -> None:
        if self._tips_version == self.book.version:
            return
        self._tips_version = self.book.version
        positions = self.book.positions
        heads = {u.id: tips.effective(positions[u.id].latest, u.config.upper) for u in self.routed}
        pushed = [positions[u.id].latest for u in self.followed if u.is_listener]
        self._ceiling = tips.ceiling([*heads.values(), *(head for head in pushed if head is not None)])
        self._tip = tips.majority(
            [heads[u.id] for u in self.routed if u.is_verified and not u.is_fallback and not u.is_cordoned]
        )

    def look_for_unknown_heads(self) -> None:
        """Say in the log which upstreams keep the short-circuit off, whenever that changes."""
        if not self.is_short_circuiting:
            return
        unknown = tuple(u.id for u in self.routed if self.book.positions[u.id].latest is None)
        if unknown != self.held_off_by:
            self.held_off_by = unknown
            if unknown:
                log.warning("future blocks of %s are dispatched: heads unknown of %s", self.id, ", ".join(unknown))
            else:
                log.info("future blocks of %s are answered here: all heads are known", self.id)

    def heads_of_all(self) -> Heads:
        """Return the heads of every upstream that may serve: what a future block was measured against."""
        return Heads(network=self.head(), upstreams={u.id: self._of(u) for u in self.routed})

    def head(self) -> Head:
        """Return the network's heads as an event carries them."""
        book = self.book
        if self._heads_version != book.version:
            self._head = Head(latest=book.latest, safe=book.safe, finalized=self.finalized)
            self._heads_version = book.version
        return self._head

    def heads(self, upstream: UpstreamState | None, other: UpstreamState | None = None) -> Heads:
        """Return the network's heads and those of the upstreams involved."""
        if upstream is None:
            return Heads(network=self.head())
        if other is None:
            return Heads(network=self.head(), upstreams={upstream.id: self._of(upstream)})
        own = self._of(other if upstream.is_control else upstream)
        return Heads(network=self.head(), upstreams={upstream.id: own, other.id: self._of(other)})

    @staticmethod
    def heads_of_text(encoded: bytes) -> Heads:
        """Return the heads in an event's text."""
        return _decode_heads(encoded)

    def lines(self, upstream: UpstreamState | None) -> bytes:
        """Return the header lines of an answer that depend on the upstream and the heads."""
        latest = self.book.latest
        if upstream is None:
            return b"" if latest is None else b"X-Gnomon-Head: %d\r\n" % latest
        lines = b"X-Gnomon-Upstream: %b\r\n" % upstream.id.encode()
        if latest is not None:
            lines += b"X-Gnomon-Head: %d\r\n" % latest
            own = self.book.positions[upstream.id].latest
            if own is not None:
                lines += b"X-Gnomon-Head-Lag: %d\r\n" % max(0, latest - own)
        return lines

    def _of(self, upstream: UpstreamState) -> Head:
        position = self.book.positions[upstream.id]
        return Head(latest=position.latest, safe=position.safe, finalized=position.finalized)


class ProjectState:
    """One project: its networks by the last part of their address."""

    def __init__(self, config: Project, networks: list[NetworkState]) -> None:
        self.config = config
        self.networks = {n.id: n for n in networks}
        self.users = {secret.sha256: secret.id for secret in config.secrets}
