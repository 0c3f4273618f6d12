"""
Vendors by name: what `alchemy://KEY` and `providers:` mean, and whose endpoint a URL is.

Host names and chain names are facts of each vendor's documentation; a chain that a vendor serves and that is not here
is an error that asks for the full URL, never a guess.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

_CHAINS: Mapping[int, Mapping[str, str]] = {
    1: {"alchemy": "eth-mainnet", "infura": "mainnet", "drpc": "ethereum", "ankr": "eth", "onfinality": "eth",
        "tenderly": "mainnet", "llamarpc": "eth", "blockdaemon": "ethereum/mainnet/native", "nodereal": "eth-mainnet"},
    10: {"alchemy": "opt-mainnet", "infura": "optimism-mainnet", "drpc": "optimism", "ankr": "optimism",
         "onfinality": "optimism", "tenderly": "optimism", "llamarpc": "optimism",
         "blockdaemon": "optimism/mainnet/native/http-rpc"},
    56: {"alchemy": "bnb-mainnet", "infura": "bsc-mainnet", "drpc": "bsc", "ankr": "bsc", "onfinality": "bnb",
         "llamarpc": "binance", "nodereal": "bsc-mainnet"},
    97: {"alchemy": "bnb-testnet", "infura": "bsc-testnet", "drpc": "bsc-testnet", "onfinality": "bnb-testnet",
         "nodereal": "bsc-testnet"},
    100: {"alchemy": "gnosis-mainnet", "drpc": "gnosis", "ankr": "gnosis", "onfinality": "gnosis"},
    130: {"alchemy": "unichain-mainnet", "drpc": "unichain", "onfinality": "unichain"},
    137: {"alchemy": "polygon-mainnet", "infura": "polygon-mainnet", "drpc": "polygon", "ankr": "polygon",
          "onfinality": "polygon", "tenderly": "polygon", "llamarpc": "polygon",
          "blockdaemon": "polygon/mainnet/native/http-rpc"},
    146: {"alchemy": "sonic-mainnet", "drpc": "sonic", "onfinality": "sonic"},
    204: {"alchemy": "opbnb-mainnet", "infura": "opbnb-mainnet", "drpc": "opbnb", "nodereal": "opbnb-mainnet"},
    250: {"drpc": "fantom", "ankr": "fantom", "onfinality": "fantom"},
    324: {"alchemy": "zksync-mainnet", "infura": "zksync-mainnet", "drpc": "zksync", "ankr": "zksync_era",
          "onfinality": "zksync"},
    480: {"alchemy": "worldchain-mainnet", "drpc": "worldchain"},
    1088: {"alchemy": "metis-mainnet", "drpc": "metis", "ankr": "metis", "onfinality": "metis"},
    1101: {"alchemy": "polygonzkevm-mainnet", "drpc": "polygon-zkevm", "ankr": "polygon_zkevm"},
    1329: {"alchemy": "sei-mainnet", "drpc": "sei", "ankr": "sei_evm"},
    5000: {"alchemy": "mantle-mainnet", "infura": "mantle-mainnet", "drpc": "mantle", "ankr": "mantle",
           "onfinality": "mantle"},
    8453: {"alchemy": "base-mainnet", "infura": "base-mainnet", "drpc": "base", "ankr": "base", "onfinality": "base",
           "tenderly": "base", "llamarpc": "base", "blockdaemon": "base/mainnet/native/http-rpc"},
    17000: {"alchemy": "eth-holesky", "infura": "holesky", "drpc": "holesky"},
    42161: {"alchemy": "arb-mainnet", "infura": "arbitrum-mainnet", "drpc": "arbitrum", "ankr": "arbitrum",
            "onfinality": "arbitrum", "tenderly": "arbitrum", "llamarpc": "arbitrum",
            "blockdaemon": "arbitrum/mainnet-one/native/http-rpc"},
    42170: {"alchemy": "arbnova-mainnet", "drpc": "arbitrum-nova", "ankr": "arbitrum_nova"},
    42220: {"alchemy": "celo-mainnet", "infura": "celo-mainnet", "drpc": "celo", "ankr": "celo", "onfinality": "celo"},
    43114: {"alchemy": "avax-mainnet", "infura": "avalanche-mainnet", "drpc": "avalanche", "ankr": "avalanche",
            "blockdaemon": "avalanche/mainnet/native/ext/bc/c/eth"},
    57073: {"alchemy": "ink-mainnet", "drpc": "ink", "blockdaemon": "ink/mainnet/native"},
    59144: {"alchemy": "linea-mainnet", "infura": "linea-mainnet", "drpc": "linea", "ankr": "linea"},
    80002: {"alchemy": "polygon-amoy", "infura": "polygon-amoy", "drpc": "polygon-amoy", "onfinality": "polygon-amoy",
            "tenderly": "polygon-amoy", "blockdaemon": "polygon/amoy/native/http-rpc"},
    80094: {"alchemy": "berachain-mainnet", "drpc": "berachain"},
    81457: {"alchemy": "blast-mainnet", "infura": "blast-mainnet", "drpc": "blast", "ankr": "blast"},
    84532: {"alchemy": "base-sepolia", "infura": "base-sepolia", "drpc": "base-sepolia", "onfinality": "base-sepolia",
            "tenderly": "base-sepolia", "blockdaemon": "base/testnet/native/http-rpc"},
    421614: {"alchemy": "arb-sepolia", "infura": "arbitrum-sepolia", "drpc": "arbitrum-sepolia",
             "onfinality": "arbitrum-sepolia", "tenderly": "arbitrum-sepolia",
             "blockdaemon": "arbitrum/sepolia-one/native/http-rpc"},
    534352: {"alchemy": "scroll-mainnet", "infura": "scroll-mainnet", "drpc": "scroll", "ankr": "scroll",
             "onfinality": "scroll"},
    560048: {"alchemy": "eth-hoodi", "drpc": "hoodi", "blockdaemon": "ethereum/hoodi/native"},
    7777777: {"alchemy": "zora-mainnet", "drpc": "zora"},
    11155111: {"alchemy": "eth-sepolia", "infura": "sepolia", "drpc": "sepolia", "onfinality": "eth-sepolia",
               "tenderly": "sepolia", "blockdaemon": "ethereum/sepolia/native"},
    11155420: {"alchemy": "opt-sepolia", "infura": "optimism-sepolia", "drpc": "optimism-sepolia",
               "onfinality": "optimism-sepolia", "tenderly": "optimism-sepolia"},
}  # fmt: skip
"""Chain id → vendor → the vendor's name for the chain."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a vendor serves one chain."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Vendor:
    name: str
    hosts: tuple[str, ...]
    """Host names (and all below them) that are this vendor's."""
    schemes: tuple[str, ...] = ()
    """Other names under which its scheme is known."""
    endpoint: Callable[[str, str], Endpoint] | None = None
    """From the vendor's name of the chain, and the key; None: it has no rule, the full URL is needed."""
    note: str = ""
    """Said where it cannot be expanded."""

    def chains(self) -> dict[int, str]:
        """Return its chains: chain id → its own name for it."""
        return {chain: names[self.name] for chain, names in _CHAINS.items() if self.name in names}


def _plain(template: str) -> Callable[[str, str], Endpoint]:
    return lambda chain, key: Endpoint(template.format(chain=chain, key=quote(key, safe="-_.~")))


def _blockdaemon(chain: str, key: str) -> Endpoint:
    return Endpoint(f"https://svc.blockdaemon.com/{chain}", {"Authorization": f"Bearer {key}"})


_OWN_URL = "each of its endpoints has a URL of its own"

VENDORS: Mapping[str, Vendor] = {
    vendor.name: vendor
    for vendor in (
        Vendor("alchemy", ("alchemy.com", "alchemyapi.io"), (), _plain("https://{chain}.g.alchemy.com/v2/{key}")),
        Vendor("infura", ("infura.io",), (), _plain("https://{chain}.infura.io/v3/{key}")),
        Vendor("drpc", ("drpc.org",), (), _plain("https://lb.drpc.org/ogrpc?network={chain}&dkey={key}")),
        Vendor("ankr", ("ankr.com",), (), _plain("https://rpc.ankr.com/{chain}/{key}")),
        Vendor("onfinality", ("onfinality.io",), (), _plain("https://{chain}.api.onfinality.io/rpc?apikey={key}")),
        Vendor("tenderly", ("tenderly.co",), (), _plain("https://{chain}.gateway.tenderly.co/{key}")),
        Vendor(
            "llamarpc", ("llamarpc.com", "llamanodes.com"), ("llama",), _plain("https://{chain}.llamarpc.com/{key}")
        ),
        Vendor("nodereal", ("nodereal.io",), (), _plain("https://{chain}.nodereal.io/v1/{key}")),
        Vendor("blockdaemon", ("blockdaemon.com",), (), _blockdaemon),
        Vendor("quicknode", ("quiknode.pro", "quicknode.com"), ("quiknode",), note=_OWN_URL),
        Vendor("chainstack", ("chainstack.com", "p2pify.com"), (), note=_OWN_URL),
        Vendor("getblock", ("getblock.io",), (), note=_OWN_URL),
        Vendor("publicnode", ("publicnode.com",), (), note="it needs no key"),
        Vendor("blastapi", ("blastapi.io",), (), note="out of service since 2025-10-31"),
    )
}
"""Shipped vendors by name; each has a price book in the folder of books."""

_BY_SCHEME = {scheme: vendor for vendor in VENDORS.values() for scheme in (vendor.name, *vendor.schemes)}
_TRANSPORTS = ("http", "https", "ws", "wss")
_SCHEME = re.compile(r"(?:evm\+)?([A-Za-z][A-Za-z0-9+.-]*)://(.*)\Z", re.DOTALL)


def find(name: str) -> Vendor | None:
    """Return a shipped vendor by its name or the name of its scheme, without regard to case."""
    return _BY_SCHEME.get(name.lower())


def split_scheme(endpoint: str) -> tuple[str, str] | None:
    """Return (scheme in lower case, rest) of `scheme://rest`; eRPC's `evm+` in front is dropped. None: no scheme."""
    match = _SCHEME.match(endpoint)
    return (match.group(1).lower(), match.group(2)) if match else None


def is_transport(scheme: str) -> bool:
    return scheme in _TRANSPORTS


def by_host(url: str) -> Vendor | None:
    """Return whose host a URL names, if it is a shipped vendor's."""
    host = (urlsplit(url).hostname or "").lower()
    for vendor in VENDORS.values():
        if any(host == known or host.endswith("." + known) for known in vendor.hosts):
            return vendor
    return None


def chain_by_url(url: str) -> int | None:
    """Return the chain that a vendor's own URL names (`https://eth-mainnet.g.alchemy.com/…` is 1), if it does."""
    vendor = by_host(url)
    if vendor is None or vendor.endpoint is None:
        return None
    parts = urlsplit(url)
    for chain, name in vendor.chains().items():
        known = urlsplit(vendor.endpoint(name, "KEY").url)
        stem = known.path.removesuffix("KEY").rstrip("/")
        if known.hostname != parts.hostname or not (parts.path == stem or parts.path.startswith(stem + "/")):
            continue
        if "network=" not in known.query or f"network={name}" in parts.query.split("&"):
            return chain
    return None
