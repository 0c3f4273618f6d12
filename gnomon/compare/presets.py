"""
Masks that a chain family needs: members that clients of that family are known to give or to leave out at will.

Small on purpose: a preset hides true differences, so each entry has a source. `VERSION` changes with the table and is
stored with every verdict that used it. A configuration's own masks are added to these, or replace them.
"""

from typing import Final, Literal

Family = Literal["ethereum", "op-stack", "arbitrum", "polygon", "generic"]

VERSION: Final = "2026-11-1"

_OP_STACK: Final = frozenset((10, 130, 252, 255, 288, 480, 1135, 1868, 7777777, 8453, 34443, 57073, 81457, 11155420))
_ARBITRUM: Final = frozenset((42161, 42170, 421614))
_POLYGON: Final = frozenset((137, 80002))
_ETHEREUM: Final = frozenset((1, 17000, 560048, 11155111))

_TIMESTAMPS: Final = {
    "eth_getLogs": ("*.blockTimestamp",),
    "eth_getTransactionReceipt": ("blockTimestamp", "logs.*.blockTimestamp"),
    "eth_getBlockReceipts": ("*.blockTimestamp", "*.logs.*.blockTimestamp"),
}
"""Optional in execution-apis (src/schemas/receipt.yaml); eRPC leaves it out of consensus (common/defaults.go)."""

_L1_FEES: Final = ("l1BaseFeeScalar", "l1BlobBaseFee", "l1BlobBaseFeeScalar", "l1BlockNumber", "l1Fee", "l1GasPrice",
                   "l1GasUsed")  # fmt: skip
"""Receipts of the OP stack; eRPC's documentation of shadow upstreams lists them for masking."""

_PRESETS: Final[dict[Family, dict[str, tuple[str, ...]]]] = {
    "generic": {},
    "ethereum": _TIMESTAMPS,
    "polygon": _TIMESTAMPS,
    "arbitrum": _TIMESTAMPS,
    "op-stack": {
        **_TIMESTAMPS,
        "eth_getTransactionReceipt": (*_TIMESTAMPS["eth_getTransactionReceipt"], *_L1_FEES),
        "eth_getBlockReceipts": (*_TIMESTAMPS["eth_getBlockReceipts"], *(f"*.{name}" for name in _L1_FEES)),
    },
}


def family_of(network: str) -> Family:
    """Return the family of a network (`evm:10`); `generic` for chains nobody listed and for what is no EVM chain."""
    architecture, _, chain = network.partition(":")
    if architecture != "evm" or not (chain.isascii() and chain.isdigit()):
        return "generic"
    chain_id = int(chain[:20])
    families: tuple[tuple[frozenset[int], Family], ...] = (
        (_ETHEREUM, "ethereum"), (_OP_STACK, "op-stack"), (_ARBITRUM, "arbitrum"), (_POLYGON, "polygon"),
    )  # fmt: skip
    return next((family for members, family in families if chain_id in members), "generic")


def version_of(mask_version: str, network: str, method: str) -> str:
    """
    Return the version that a verdict stores: of its masks, and of the preset where that has a part in them.

    Args:
        mask_version: `MaskSet.version` of all masks, the preset's among them.
        network, method: choose the preset.
    """
    return f"{mask_version}+{VERSION}" if masks_of(network, method) else mask_version


def methods_of(network: str) -> tuple[str, ...]:
    """Return the methods that the preset of a network's family masks something of."""
    return tuple(_PRESETS[family_of(network)])


def masks_of(network: str, method: str) -> tuple[str, ...]:
    """Return the preset masks of one method on one network; none for most."""
    return _PRESETS[family_of(network)].get(method, ())
