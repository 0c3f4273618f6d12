"""One upstream at run time: its connections, its breakers, and what keeps calls from it."""

from gnomon.config.model import RelayError, Upstream
from proxy.allowances import Allowance
from proxy.connections import Pool
from proxy.core.allowance import Rate
from proxy.core.limits import Claim
from proxy.gates import Gate
from proxy.response_heads import ResponseHead


class UpstreamState:
    """
    One upstream at run time.

    is_listener     it gives heads by subscription and is never called
    is_subscribed   heads come from it now
    is_verified     its chain id was seen to be the network's (always true on generic networks)
    in_flight       mirrored calls under way (shadows)
    allowance       what a shadow may use; None: as much as it likes
    controls        upstream id → connections of a control shadow's own to it
    is_resting      it asked for the rest that it is held for (`Retry-After`)
    n_probes        probes under way; `probe_rate` bounds them in time, none before `probe_from` (monotonic)
    gates           pattern of methods → their breaker, in the order of the configuration
    is_cordoned     kept out by hand (`cordoning`), until that is taken back
    held_until      monotonic seconds before which nobody calls it; `held_cause` says why
    """

    __slots__ = (
        "_relay", "allowance", "chain_error", "claim", "config", "controls", "gates", "held_cause", "held_until", "id",
        "in_flight", "in_flight_bytes", "is_control", "is_cordoned", "is_fallback", "is_listener", "is_resting",
        "is_subscribed", "is_syncing", "is_verified", "n_calls", "n_failed", "n_probes", "pool", "probe_from",
        "probe_rate", "tier",
    )  # fmt: skip

    def __init__(self, config: Upstream, pool: Pool, is_evm: bool) -> None:
        self.config = config
        self.pool = pool
        self.id = config.id
        self.tier = config.tier
        self.is_fallback = config.tier == "fallback"
        self.is_control = config.shadow is not None and config.shadow.control
        self.is_listener = config.endpoint.startswith(("ws://", "wss://"))
        self.is_verified = not is_evm or self.is_control
        self.chain_error = ""
        self.claim: Claim | None = None
        """The rate limit that calls to it draw on."""
        self.allowance: Allowance | None = None
        self.controls: dict[str, Pool] = {}
        self.in_flight = 0
        self.in_flight_bytes = 0
        self.n_calls = 0
        self.n_failed = 0
        self.gates: dict[str, Gate] = {}
        self.is_cordoned = False
        self.held_until = 0.0
        self.held_cause = ""
        self.is_resting = False
        self.n_probes = 0
        self.probe_from = 0.0
        self.probe_rate = Rate(config.probe_per_second)
        self.is_syncing = False
        self.is_subscribed = False
        self._relay = config.relay_error or RelayError()

    @property
    def is_probed(self) -> bool:
        """It may be probed while it is kept out of routing."""
        return not self.is_fallback if self.config.probe is None else self.config.probe

    def adopt(self, before: "UpstreamState") -> None:
        """Go on where the same endpoint's state of an earlier configuration stands."""
        self.is_verified, self.chain_error, self.is_syncing = before.is_verified, before.chain_error, before.is_syncing
        self.n_calls, self.n_failed = before.n_calls, before.n_failed
        self.gates = dict(before.gates)
        self.held_until, self.held_cause = before.held_until, before.held_cause
        self.is_resting, self.probe_from = before.is_resting, before.probe_from

    def is_relayed(self, head: ResponseHead) -> bool:
        """Say whether an answer is a node's error that a relay in front of it passed on."""
        relay = self._relay
        return head.status == relay.status and head.headers.get(relay.header, "").strip().lower() == relay.value
