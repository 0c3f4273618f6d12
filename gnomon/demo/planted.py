"""
The second, faulty implementation of the simulated chain: each difference is planted, named and known in advance.

All are of kinds seen between real nodes. The demonstration is right when it finds every one of them and no other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gnomon.demo.chain import Chain, Json, RpcFault

Change = Callable[[Json], Json]


@dataclass(frozen=True, slots=True)
class Plant:
    """One planted difference: where a comparison must find it, and as what."""

    method: str
    generic_path: str
    class_: str
    says: str
    change: Change
    """Takes the right result, gives the faulty one (an `RpcFault` for an error answer); never alters its argument."""


def _each(change: Callable[[dict[str, Json]], dict[str, Json]]) -> Change:
    def apply(result: Json) -> Json:
        return [change(item) for item in result] if isinstance(result, list) else result

    return apply


def _member(change: Callable[[dict[str, Json]], dict[str, Json]]) -> Change:
    def apply(result: Json) -> Json:
        return change(result) if isinstance(result, dict) else result

    return apply


def _without(name: str) -> Callable[[dict[str, Json]], dict[str, Json]]:
    return lambda item: {key: value for key, value in item.items() if key != name}


def _short_quantity(result: Json) -> Json:
    return hex(int(result, 16)) if isinstance(result, str) else result


def _one_wei_more(result: Json) -> Json:
    return hex(int(result, 16) + 1) if isinstance(result, str) and result != "0x0" else result


def _old_code(fault: Json) -> Json:
    return RpcFault(-32000, fault.message, fault.data) if isinstance(fault, RpcFault) and fault.code == 3 else fault


def _backwards(result: Json) -> Json:
    return result[::-1] if isinstance(result, list) else result


PLANTS: Final = (
    Plant(
        "eth_getLogs",
        "$.result[*].blockTimestamp",
        "missing_field",
        "logs carry no blockTimestamp",
        _each(_without("blockTimestamp")),
    ),
    Plant(
        "eth_getTransactionReceipt",
        "$.result.effectiveGasPrice",
        "value",
        "receipts give the fee cap as the price paid",
        _member(lambda receipt: {**receipt, "effectiveGasPrice": "0x174876e800"}),
    ),
    Plant(
        "eth_getBlockByNumber",
        "$.result.totalDifficulty",
        "extra_field",
        "blocks still carry totalDifficulty",
        _member(lambda block: {**block, "totalDifficulty": "0x0"}),
    ),
    Plant(
        "eth_getTransactionByHash",
        "$.result.from",
        "hex_case",
        "senders are in upper case",
        _member(lambda tx: {**tx, "from": "0x" + str(tx["from"])[2:].upper()}),
    ),
    Plant("eth_getStorageAt", "$.result", "hex_padding", "storage words lose their zeros", _short_quantity),
    Plant("eth_getBalance", "$.result", "value", "balances are one wei too high", _one_wei_more),
    Plant("eth_call", "$.error.code", "error_code", "a revert has code -32000 instead of 3", _old_code),
    Plant("eth_getBlockReceipts", "$.result", "array_order", "receipts of a block come backwards", _backwards),
)

_BY_METHOD: Final = {plant.method: plant for plant in PLANTS}


class FaultyChain:
    """A chain whose answers carry every difference of `PLANTS`."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain

    def answer(self, method: str, params: Sequence[Json]) -> Json:
        """Return the faulty result; raises `RpcFault` as the chain does."""
        plant = _BY_METHOD.get(method)
        try:
            result = self.chain.answer(method, params)
        except RpcFault as fault:
            changed = plant.change(fault) if plant else fault
            raise (changed if isinstance(changed, RpcFault) else fault) from None
        return plant.change(result) if plant else result
