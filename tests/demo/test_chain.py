"""The simulated chain answers as a node would."""

from itertools import pairwise
from typing import Any

import pytest

from gnomon.demo import contract
from gnomon.demo.chain import ACCOUNTS, FINAL_DEPTH, INITIAL_BALANCE, REGISTER, Chain, RpcFault

BLOCKS = 12
GENESIS = 1_700_000_000


def grown(seed: str = "test", blocks: int = BLOCKS) -> Chain:
    chain = Chain(seed=seed, chain_id=31337, genesis_time=GENESIS, name="x")
    for i in range(blocks):
        chain.mine(GENESIS + 2 * (i + 1))
    return chain


def ask(chain: Chain, method: str, *params: object) -> Any:
    return chain.answer(method, params)


def test_same_seed_same_chain() -> None:
    """Two instances advanced alike agree in every block, receipt and balance."""
    a, b = grown(), grown()

    for height in range(BLOCKS + 1):
        for method in ("eth_getBlockByNumber", "eth_getBlockReceipts"):
            assert ask(a, method, hex(height), True) == ask(b, method, hex(height), True)
    assert [ask(a, "eth_getBalance", x, "latest") for x in ACCOUNTS] == [
        ask(b, "eth_getBalance", x, "latest") for x in ACCOUNTS
    ]


def test_another_seed_another_chain() -> None:
    """The seed decides the blocks."""
    assert ask(grown("a"), "eth_getBlockByNumber", "0x5", False) != ask(
        grown("b"), "eth_getBlockByNumber", "0x5", False
    )


def test_blocks_are_linked() -> None:
    """Each block names its parent's hash, its number and a later time."""
    chain = grown()
    blocks = [ask(chain, "eth_getBlockByNumber", hex(n), False) for n in range(BLOCKS + 1)]

    for parent, child in pairwise(blocks):
        assert child["parentHash"] == parent["hash"]
        assert int(child["number"], 16) == int(parent["number"], 16) + 1
        assert int(child["timestamp"], 16) > int(parent["timestamp"], 16)


@pytest.mark.parametrize(
    ("tag", "height"),
    [
        ("earliest", 0),
        ("latest", BLOCKS),
        ("pending", BLOCKS),
        ("finalized", BLOCKS - FINAL_DEPTH),
        ("safe", BLOCKS - FINAL_DEPTH + 1),
    ],
)
def test_tags(tag: str, height: int) -> None:
    """Block tags mean the heights that a node would take."""
    assert hex(height) == ask(grown(), "eth_getBlockByNumber", tag, False)["number"]


@pytest.mark.parametrize("blocks", [0, 1, FINAL_DEPTH, FINAL_DEPTH + 1])
def test_finalized_of_a_young_chain(blocks: int) -> None:
    """The finalized block is never below 0."""
    assert max(0, blocks - FINAL_DEPTH) == grown(blocks=blocks).finalized


def test_a_block_above_the_head_is_null() -> None:
    """What is not there is null, not an error."""
    chain = grown()

    assert ask(chain, "eth_getBlockByNumber", hex(BLOCKS + 1), False) is None
    assert ask(chain, "eth_getBlockReceipts", hex(BLOCKS + 1)) is None
    assert ask(chain, "eth_getTransactionReceipt", "0x" + "00" * 32) is None


def test_receipts_logs_and_state_agree() -> None:
    """Each log of a block is in its receipts, and the register holds what the last log of its key says."""
    chain = grown()
    for height in range(1, BLOCKS + 1):
        at = hex(height)
        logs = ask(chain, "eth_getLogs", {"fromBlock": at, "toBlock": at})
        assert logs == [log for receipt in ask(chain, "eth_getBlockReceipts", at) for log in receipt["logs"]]
        last_by_key = {log["topics"][1]: log["data"] for log in logs}
        for key, data in last_by_key.items():
            assert data == ask(chain, "eth_getStorageAt", REGISTER, key, at)
            assert data == ask(chain, "eth_call", {"to": REGISTER, "data": contract.get_call(int(key, 16))}, at)


def test_money_is_conserved_but_for_fees() -> None:
    """What the accounts lost is what the receipts' gas cost."""
    chain = grown()
    fees = sum(
        int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
        for height in range(1, BLOCKS + 1)
        for receipt in ask(chain, "eth_getBlockReceipts", hex(height))
    )

    left = sum(int(ask(chain, "eth_getBalance", account, "latest"), 16) for account in ACCOUNTS)
    assert len(ACCOUNTS) * INITIAL_BALANCE - fees == left


def test_state_is_read_at_its_height() -> None:
    """An old height shows the old state: no code before the deployment, the full balance at block 0."""
    chain = grown()

    assert ask(chain, "eth_getCode", REGISTER, "0x0") == "0x"
    assert ask(chain, "eth_getCode", REGISTER, "0x1") == contract.runtime_code()
    assert ask(chain, "eth_getBalance", ACCOUNTS[0], "0x0") == hex(INITIAL_BALANCE)


@pytest.mark.parametrize(
    ("topics", "fits"),
    [
        ([], True),
        ([contract.SET_TOPIC], True),
        ([None, None], True),
        ([[contract.SET_TOPIC, "0x01"]], True),
        (["0x01"], False),
        ([None, None, None, "0x01"], False),
    ],
    ids=["none", "exact", "any", "one-of", "other", "too-many"],
)
def test_log_filters(topics: list[object], fits: bool) -> None:
    """Topics filter by position; null takes any, a list takes one of its own."""
    logs = ask(grown(), "eth_getLogs", {"fromBlock": "0x1", "toBlock": "latest", "topics": topics})

    assert fits == bool(logs)


def test_a_revert_is_a_verdict_with_its_data() -> None:
    """`fail()` reverts with code 3 and Error(string)."""
    with pytest.raises(RpcFault) as caught:
        ask(grown(), "eth_call", {"to": REGISTER, "data": "0x" + contract.FAIL}, "latest")

    assert caught.value.code == 3
    assert caught.value.data == contract.revert_data()


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("eth_nothing", [], -32601),
        ("eth_getBalance", [], -32602),
        ("eth_getBalance", ["0x00", "nonsense"], -32602),
        ("eth_getBalance", ["0x00", "0xffff"], -32000),
        ("eth_getBlockByNumber", [], -32602),
        ("eth_getLogs", [{"fromBlock": "0x9", "toBlock": "0x2"}], -32602),
        ("debug_traceTransaction", ["0x00"], -32000),
    ],
)
def test_bad_calls_are_errors(method: str, params: list[object], code: int) -> None:
    """What cannot be answered is a JSON-RPC error of the right code."""
    with pytest.raises(RpcFault) as caught:
        ask(grown(), method, *params)

    assert code == caught.value.code


def test_time_moves_forward() -> None:
    """A block that is not later than its parent is refused."""
    chain = grown()

    with pytest.raises(ValueError, match="not after"):
        chain.mine(GENESIS + 2 * BLOCKS)
