"""
Breakers at work: what counts as a failure of an upstream, and what a change of state sets off.

The breaker itself (`proxy.core.breaker`) knows no policy. Here is the policy: a result and a verdict of the chain are
successes; so is an error that a relay passed on, for the relay reached a node. No whole answer, an answer that is none,
and an internal error of the node are failures. Limits, quotas and questions that this node cannot answer are neither.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from gnomon.events.contract import VERSION, BreakerTransition
from proxy.core.breaker import CLOSED, FAILURE, FREE, IGNORE, SUCCESS, Breaker, Permit, Transition
from proxy.emitter import now_ns as wall_ns

if TYPE_CHECKING:
    from gnomon.config.model import Breaker as Policy
    from gnomon.config.model import Failsafe
    from proxy.emitter import Emitter
    from proxy.networks import NetworkState

log = logging.getLogger("gnomon.proxy")

RELAYED: Final = "rpcerror"
_FAILURES: Final = frozenset(("timeout", "transport", "status", "parse", "validate", "internal", "unauthorized"))
_SUCCESSES: Final = frozenset(("", "revert", "halt", "nonce", "invalid_params", RELAYED))


def outcome_of(error_class: str) -> int:
    """Return what an attempt means to the breaker; its class is empty where it brought a result."""
    if error_class in _SUCCESSES:
        return SUCCESS
    return FAILURE if error_class in _FAILURES else IGNORE


def scope_of(rule: Failsafe) -> str:
    """Return what a failsafe entry's breaker watches: a pattern of methods, and the finalities where it names some."""
    return " ".join((rule.match_method, *rule.match_finality))


class Gate:
    """The breaker of one upstream for a group of methods (`scope`, a pattern of method names)."""

    __slots__ = ("_emitter", "_network", "_reported", "breaker", "policy", "scope", "upstream_id")

    def __init__(
        self, policy: Policy, emitter: Emitter, network: NetworkState, upstream_id: str, scope: str = "*"
    ) -> None:
        self.policy = policy
        self.breaker = Breaker(policy)
        self.scope = scope
        self.upstream_id = upstream_id
        self._reported: dict[str, int] = {}
        self._emitter = emitter
        self._network = network

    def move(self, network: NetworkState) -> None:
        """Belong to the network that a reload has put in place of the old one; the count goes on."""
        self._network = network

    @property
    def is_closed(self) -> bool:
        """Every call goes through."""
        return self.breaker.state == CLOSED

    def enter(self) -> Permit | None:
        """Return a permit for one call; None: the call is not to be made, and is counted as skipped."""
        permit, transition = self.breaker.permit(time.monotonic())
        self._tell(transition)
        return permit

    def leave(self, permit: Permit, error_class: str) -> None:
        """Give a permit back with what the call came to: its error class, empty for a result."""
        reason = error_class if error_class not in _SUCCESSES or error_class == RELAYED else ""
        self._tell(self.breaker.report(permit, outcome_of(error_class), time.monotonic(), reason))

    def served(self) -> None:
        """Note a result of a call that needed no permit, for the breaker was closed."""
        if not self.breaker.is_settled:
            self.leave(FREE, "")

    def _tell(self, transition: Transition | None) -> None:
        if transition is None:
            return
        self._network.replan()
        emitter = self._emitter
        emitter.append(
            BreakerTransition(
                v=VERSION,
                event_id=emitter.next_event_id(),
                at=wall_ns(),
                network=self._network.id,
                config_hash=self._network.config_hash,
                upstream=self.upstream_id,
                from_state=transition.from_state,
                to_state=transition.to_state,
                reason=transition.reason,
                scope=self.scope,
                counters=transition.counters,
            )
        )
        log.warning(
            "breaker network=%s upstream=%s methods=%s %s -> %s reason=%s %s",
            self._network.id,
            self.upstream_id,
            self.scope,
            transition.from_state,
            transition.to_state,
            transition.reason or "-",
            _words(transition.counters),
        )

    def report(self) -> str:
        """Return a line for the log (calls, misses, skipped, each reason), empty where nothing came since the last."""
        counters = self.breaker.counters()
        if counters == self._reported:
            return ""
        self._reported = counters
        return (
            f"breaker network={self._network.id} upstream={self.upstream_id} methods={self.scope} "
            f"state={self.breaker.state} {_words(counters)}"
        )


def _words(counters: dict[str, int]) -> str:
    return " ".join(f"{name}={n}" for name, n in counters.items())
