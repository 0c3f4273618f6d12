"""
Chain ids under the names that vendors' price lists use.

A book's `network_multipliers` are keyed by the vendor's own name of a network (as its price list prints it) or by our
`evm:ID`. Names are compared without case, spaces and punctuation.
"""

from collections.abc import Mapping

NAMES_BY_CHAIN: Mapping[int, tuple[str, ...]] = {
    1: ("Ethereum", "Ethereum Mainnet"),
    10: ("Optimism", "OP Mainnet"),
    14: ("Flare",),
    25: ("Cronos",),
    30: ("Rootstock",),
    40: ("Telos",),
    50: ("XDC", "XDC Network"),
    56: ("BNB Smart Chain", "BSC", "BNB Chain"),
    57: ("Syscoin",),
    61: ("Ethereum Classic",),
    100: ("Gnosis", "Gnosis Chain"),
    109: ("Shiba Inu", "Shibarium"),
    122: ("Fuse",),
    130: ("Unichain",),
    137: ("Polygon", "Polygon PoS"),
    143: ("Monad",),
    146: ("Sonic",),
    169: ("Manta", "Manta Pacific"),
    204: ("opBNB",),
    232: ("Lens",),
    239: ("TAC",),
    250: ("Fantom",),
    252: ("Fraxtal",),
    288: ("Boba",),
    295: ("Hedera",),
    314: ("Filecoin",),
    324: ("zkSync", "ZKsync", "zkSync Era"),
    360: ("Shape",),
    388: ("Cronos zkEVM",),
    480: ("World Chain", "Worldchain"),
    570: ("Rollux",),
    698: ("Matchain",),
    747: ("Flow",),
    999: ("Hyperliquid", "HyperEVM"),
    1088: ("Metis",),
    1101: ("Polygon zkEVM",),
    1116: ("Core",),
    1135: ("Lisk",),
    1284: ("Moonbeam",),
    1285: ("Moonriver",),
    1329: ("Sei",),
    1480: ("Vana",),
    1514: ("Story",),
    1559: ("Tenet",),
    1625: ("Gravity",),
    1868: ("Soneium",),
    1923: ("Swellchain",),
    2020: ("Ronin",),
    2345: ("Goat", "GOAT Network"),
    2741: ("Abstract",),
    3338: ("Peaq",),
    3637: ("Botanix",),
    5000: ("Mantle",),
    5031: ("Somnia",),
    7000: ("ZetaChain",),
    7560: ("Cyber",),
    8217: ("Kaia", "Klaytn"),
    8333: ("B3",),
    8453: ("Base",),
    8822: ("IOTA EVM",),
    13371: ("Immutable", "Immutable zkEVM"),
    16661: ("0g",),
    20250217: ("Xphere",),
    21000000: ("Corn",),
    23294: ("Oasis", "Oasis Sapphire"),
    32769: ("Zilliqa",),
    34443: ("Mode",),
    42161: ("Arbitrum", "Arbitrum One"),
    42170: ("Arbitrum Nova",),
    42220: ("Celo",),
    42793: ("Etherlink",),
    43114: ("Avalanche", "Avalanche C-Chain"),
    57073: ("Ink",),
    59144: ("Linea",),
    60808: ("BOB",),
    80094: ("Berachain",),
    81457: ("Blast",),
    88888: ("Chiliz",),
    167000: ("Taiko",),
    200901: ("Bitlayer",),
    534352: ("Scroll",),
    660279: ("Xai",),
    690: ("Redstone",),
    7777777: ("Zora",),
    1666600000: ("Harmony",),
}


def fold(name: str) -> str:
    """Return a name without case, spaces and punctuation, for comparing."""
    return "".join(c for c in name.casefold() if c.isalnum())


def names_of(network: str) -> tuple[str, ...]:
    """
    Return the folded names by which a price list may speak of a network, the network's own id first.

    >>> names_of("evm:100")
    ('evm100', 'gnosis', 'gnosischain')
    """
    own = fold(network)
    prefix, _, number = network.partition(":")
    if prefix == "evm" and number.isdecimal():
        return (own, *(fold(name) for name in NAMES_BY_CHAIN.get(int(number), ())))
    return (own,)
