"""Answers as nodes give them (values made up), and hypothesis strategies of JSON values."""

from typing import Any

from hypothesis import strategies as st

HASH = "0x" + "ab" * 32
OTHER_HASH = "0x" + "cd" * 32
ADDRESS = "0x" + "1f" * 20

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.sampled_from(["", "0x", "0x0", "0x1", "0x01", "0xAB", "0xab", "10", "0xa", "1.0"])
    | st.text(max_size=6)
)
names = st.sampled_from(["a", "b", "a.b", "0x01", "0x1", "hash", "number", "logs"]) | st.text(max_size=3)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=20
)


def log(index: int, tx: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a log."""
    return {
        "address": ADDRESS,
        "topics": [HASH, OTHER_HASH],
        "data": f"0x{index:064x}",
        "blockNumber": "0x64",
        "transactionHash": f"0x{tx:064x}",
        "transactionIndex": hex(tx),
        "blockHash": HASH,
        "logIndex": hex(index),
        "removed": False,
    } | changes


def receipt(tx: int, **changes: Any) -> dict[str, Any]:
    """Return a receipt with two logs."""
    return {
        "blockHash": HASH,
        "blockNumber": "0x64",
        "contractAddress": None,
        "cumulativeGasUsed": hex(21000 * (tx + 1)),
        "from": ADDRESS,
        "gasUsed": "0x5208",
        "logs": [log(2 * tx, tx), log(2 * tx + 1, tx)],
        "status": "0x1",
        "transactionHash": f"0x{tx:064x}",
        "transactionIndex": hex(tx),
        "type": "0x2",
    } | changes


def transaction(tx: int, **changes: Any) -> dict[str, Any]:
    """Return a transaction of a block."""
    return {
        "blockHash": HASH,
        "blockNumber": "0x64",
        "from": ADDRESS,
        "gas": "0x5208",
        "hash": f"0x{tx:064x}",
        "input": "0x",
        "nonce": hex(tx),
        "accessList": [{"address": ADDRESS, "storageKeys": [HASH, OTHER_HASH]}],
        "type": "0x2",
    } | changes


def block(**changes: Any) -> dict[str, Any]:
    """Return a block with two whole transactions."""
    return {
        "number": "0x64",
        "hash": HASH,
        "parentHash": OTHER_HASH,
        "gasUsed": "0xa410",
        "size": "0x1a2b",
        "timestamp": "0x665ba3c7",
        "transactions": [transaction(0), transaction(1)],
        "uncles": [],
        "withdrawals": [{"index": "0x1", "validatorIndex": "0x9", "address": ADDRESS, "amount": "0x5"}],
    } | changes


ANSWERS: dict[str, tuple[list[Any], Any]] = {
    "eth_getBlockByNumber": (["0x64", True], block()),
    "eth_getBlockReceipts": (["0x64"], [receipt(0), receipt(1), receipt(2)]),
    "eth_getTransactionReceipt": ([HASH], receipt(0)),
    "eth_getLogs": ([{"fromBlock": "0x60", "toBlock": "0x64"}], [log(0), log(1), log(2, 1)]),
    "eth_getBalance": ([ADDRESS, "0x64"], "0xde0b6b3a7640000"),
    "eth_feeHistory": (
        ["0x2", "0x64", [0, 100]],
        {"oldestBlock": "0x63", "baseFeePerGas": ["0x1", "0x2", "0x3"], "gasUsedRatio": [0.5, 1, 0.25]},
    ),
    "debug_traceTransaction": (
        [HASH, {"tracer": "callTracer"}],
        {"type": "CALL", "gas": "0x1", "input": "0x", "calls": [{"type": "CALL", "calls": [{"type": "STATICCALL"}]}]},
    ),
}
"""Method → parameters and result, all final at head 100."""
