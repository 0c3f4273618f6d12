"""The upstreams of the configuration, as pages list them: also those that nobody called."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gnomon.config.model import Settings

NAMES: Mapping[str, str] = {
    "evm:1": "Ethereum", "evm:10": "OP Mainnet", "evm:56": "BNB Chain", "evm:100": "Gnosis", "evm:130": "Unichain",
    "evm:137": "Polygon", "evm:324": "ZKsync Era", "evm:480": "World Chain", "evm:8453": "Base",
    "evm:42161": "Arbitrum One", "evm:42220": "Celo", "evm:43114": "Avalanche", "evm:59144": "Linea",
    "evm:534352": "Scroll",
    "evm:11155111": "Sepolia", "evm:17000": "Holesky", "evm:560048": "Hoodi", "evm:31337": "local",
}  # fmt: skip
"""What people call a chain; source: the chain list of the Ethereum Foundation (chainid.network)."""
_TIERS = ("primary", "fallback", "shadow")


@dataclass(frozen=True, slots=True)
class Known:
    """One upstream of the configuration."""

    id: str
    network: str
    tier: str
    vendor: str
    account: str
    is_control: bool
    sample_rate: float
    """Of a shadow; 1 for others."""
    methods: tuple[str, ...]
    """`ignoreMethods`: never sent to it."""

    @property
    def is_own(self) -> bool:
        """Whether its calls cost nothing."""
        return self.vendor == ""


def upstreams(settings: Settings) -> Sequence[Known]:
    """Return all of them, by network and tier, in the order of the configuration within."""
    found = [
        Known(
            upstream.id,
            upstream.network,
            upstream.tier,
            upstream.vendor,
            upstream.account,
            upstream.shadow is not None and upstream.shadow.control,
            upstream.shadow.sample_rate if upstream.shadow is not None else 1.0,
            upstream.ignore_methods,
        )
        for project in settings.projects
        for upstream in project.upstreams
    ]
    return sorted(found, key=lambda known: (known.network, _TIERS.index(known.tier)))


def label(network: str) -> str:
    """Return `evm:8453 · Base`, or the id alone."""
    return f"{network} · {NAMES[network]}" if network in NAMES else network


def short(network: str) -> str:
    """Return what people call a chain, or its id."""
    return NAMES.get(network, network)
