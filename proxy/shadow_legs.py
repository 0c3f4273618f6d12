"""One shadow within a plan: what the configuration decides of a copy before there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gnomon.config.model import ANY_METHOD, Quantile
from proxy.core.latency import Latencies, delay_for
from proxy.core.limits import Share, share
from proxy.core.shadowing import static_decision
from proxy.templates import attempt_of, closed, members, text

if TYPE_CHECKING:
    from gnomon.config.model import Duration
    from gnomon.rpc.methods import Method
    from proxy.connections import Pool
    from proxy.networks import NetworkState
    from proxy.upstreams import UpstreamState
    from proxy.wheel import Lane, Wheel

DEFAULT_SECONDS: Final = 10.0
"""Timeout of a mirrored call where the shadow's failsafe names none."""
_OVERRUN: Final = 2.0
"""So many times its timeout counts a call that ran out of it: else no timeout would grow."""
_RELEARN: Final = 16
"""An adaptive timeout is worked out anew after so many calls."""


class ShadowLeg:
    """
    One shadow and one method.

    static      the decision, where the method alone makes it
    share       what copies draw on of the shadow's rate limit, if there is one
    is_plain    nothing but the bounds of its pool can keep a copy from it
    is_control  copies go to whichever upstream has served, again
    is_watched  the end of a call is to be told: for its cost, or for the timeout of later ones
    lane        the timeout; with a quantile it follows the shadow's own latencies
    attempt     what events say of its attempts
    """

    __slots__ = (
        "_heads", "_latencies", "_n_seen", "_pairs", "_timeout", "_version", "_wheel", "allowance", "attempt",
        "ignore_fields", "is_bounded", "is_control", "is_plain", "is_watched", "lane", "policy", "share", "static",
        "tolerate", "upstream",
    )  # fmt: skip

    def __init__(
        self, upstream: UpstreamState, method: Method, timeout: Duration | None, latencies: Latencies, wheel: Wheel
    ) -> None:
        """
        Args:
            timeout: of its failsafe; None: the default.
            latencies: of this shadow and method, filled here where the timeout follows them.
        """
        config, policy = upstream.config, upstream.config.shadow
        assert policy is not None
        self.upstream = upstream
        self.policy = policy
        self.allowance = upstream.allowance
        self.share = share(upstream.claim, method.name)
        self.static = static_decision(method, config.allow_methods, config.ignore_methods)
        self.is_bounded = config.lower is not None or config.upper is not None
        self.is_control = policy.control
        self.ignore_fields = policy.ignore_fields.get(method.name, ())
        self.tolerate = (*policy.tolerate.get(ANY_METHOD, ()), *policy.tolerate.get(method.name, ()))
        self.attempt = attempt_of(config, kind="shadow")
        self.is_plain = (
            not self.static
            and not self.is_bounded
            and not self.is_control
            and self.allowance is None
            and self.share is None
            and policy.sample_rate >= 1.0
        )
        self._timeout = timeout if isinstance(timeout, Quantile) else None
        self._latencies = latencies
        self._n_seen = 0
        self._wheel = wheel
        seconds = DEFAULT_SECONDS if timeout is None else delay_for(timeout, latencies).seconds
        self.lane: Lane = wheel.lane(seconds)
        self.is_watched = self.allowance is not None or self._timeout is not None
        self._pairs: dict[str, bytes] = {}
        self._heads: dict[str, bytes] = {}
        self._version = -1

    def target(self, served: UpstreamState | None) -> UpstreamState | None:
        """Return who gets the copy; None for a control where nobody has served."""
        return served if self.is_control else self.upstream

    def share_of(self, target: UpstreamState, method: Method) -> Share | None:
        """Return what a copy to `target` draws on: a control's is a call to the one that has served."""
        return share(target.claim, method.name) if self.is_control else self.share

    def pool(self, served: UpstreamState | None) -> Pool:
        """Return the connections for a copy: never those that clients' calls need."""
        if not self.is_control:
            return self.upstream.pool
        assert served is not None, "a control has nobody to ask where nobody has served"
        return self.upstream.controls[served.id]

    def ran_out(self) -> None:
        """Take a call that ran out of time: it would have been longer, nobody knows by how much."""
        self.took(_OVERRUN * self.lane.seconds)

    def took(self, seconds: float) -> None:
        """Take how long a call was."""
        if self._timeout is None:
            return
        self._latencies.add(seconds)
        self._n_seen += 1
        if self._n_seen % _RELEARN == 0:
            self.lane = self._wheel.lane(delay_for(self._timeout, self._latencies).seconds)

    def attempt_at(self, served: UpstreamState) -> bytes:
        """Return what events say of a control's attempt, which was a call to the upstream that had served."""
        config = served.config
        return members(upstream=served.id, vendor=config.vendor, account=config.account, tier="shadow", kind="shadow")

    def pair(self, primary: UpstreamState) -> bytes:
        """Return what events say of the pair of a primary and this shadow."""
        found = self._pairs.get(primary.id)
        if found is None:
            found = self._pairs[primary.id] = closed(
                members(
                    primary_upstream=primary.id,
                    shadow_upstream=self.upstream.id,
                    ignore_fields=self.ignore_fields,
                    tolerate=self.tolerate,
                    is_control=self.is_control,
                )
            )
        return found

    def heads(self, network: NetworkState, primary: UpstreamState) -> bytes:
        """Return the heads for an event about a primary and this shadow, made once for each change of a head."""
        if self._version != network.book.version:
            self._heads.clear()
            self._version = network.book.version
        found = self._heads.get(primary.id)
        if found is None:
            found = self._heads[primary.id] = text(network.heads(self.upstream, primary))
        return found
