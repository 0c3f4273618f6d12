import pytest

from gnomon.rpc.blocks import BlockRef, request_block
from gnomon.rpc.finality import finality
from gnomon.rpc.methods import lookup


@pytest.mark.parametrize(
    ("method", "params", "answer_block", "heads", "expected"),
    [
        ("eth_chainId", [], None, (None, None), "finalized"),
        ("eth_gasPrice", [], None, (100, 90), "realtime"),
        ("eth_blockNumber", [], 100, (100, 90), "realtime"),
        ("eth_getBlockByNumber", ["0x59"], None, (100, 90), "finalized"),
        ("eth_getBlockByNumber", ["0x5a"], None, (100, 90), "finalized"),
        ("eth_getBlockByNumber", ["0x5b"], None, (100, 90), "unfinalized"),
        ("eth_getBlockByNumber", ["0x5b"], None, (100, None), "unknown"),
        ("eth_getBlockByNumber", ["0x5b"], None, (None, None), "unknown"),
        ("eth_getBlockByNumber", ["0x0"], None, (100, 90), "finalized"),
        ("eth_getBlockByNumber", ["0x0"], None, (100, None), "finalized"),
        ("eth_getBlockByNumber", ["latest"], 100, (100, 90), "realtime"),
        ("eth_getBlockByNumber", ["finalized"], 90, (100, 90), "realtime"),
        ("eth_getBlockByNumber", ["earliest"], 0, (100, 90), "realtime"),
        ("eth_getLogs", [{"fromBlock": "0x1", "toBlock": "0x64"}], None, (100, 90), "unfinalized"),
        ("eth_getLogs", [{"fromBlock": "0x1", "toBlock": "latest"}], None, (100, 90), "realtime"),
        ("eth_getLogs", [{"fromBlock": "0x1"}], None, (100, 90), "realtime"),
        ("eth_getTransactionReceipt", ["0xab"], 90, (100, 90), "finalized"),
        ("eth_getTransactionReceipt", ["0xab"], None, (100, 90), "unknown"),
        ("debug_traceTransaction", ["0xab"], None, (100, 90), "unknown"),
        ("nobody_knowsThis", ["0x1"], None, (100, 90), "unknown"),
    ],
)
def test_finality_follows_the_block_and_the_finalised_head(
    method: str, params: list[object], answer_block: int | None, heads: tuple[int | None, int | None], expected: str
) -> None:
    """At the head, one below and one above it; tags; ranges up to tags; blocks named by the answer; unknown heads."""
    entry = lookup(method)

    assert expected == finality(entry, request_block(entry, params), answer_block, *heads)


def test_an_unknown_head_is_never_read_as_zero() -> None:
    """Block 1 is not unfinalised because no head is known."""

    assert finality(lookup("eth_getBlockByNumber"), BlockRef(1), None, None, None) == "unknown"
