"""The questions that follow from answers."""

import msgspec
import pytest

from gnomon.rpc import methods
from gnomon.sidebyside.sampling import MAX_TRANSACTIONS, METHODS, UNUSED_ADDRESS, Ask, Sampler, spread

BLOCK = {
    "number": "0x10",
    "hash": "0x" + "ab" * 32,
    "miner": "0x" + "c0" * 20,
    "transactions": [
        {
            "hash": "0x" + f"{i:064x}",
            "transactionIndex": hex(i),
            "from": "0x" + "a1" * 20,
            "to": "0x" + "b2" * 20 if i else None,
            "value": "0x1",
            "input": "0x" + f"{i:02x}",
            "accessList": [{"address": "0x" + "b2" * 20, "storageKeys": ["0x" + f"{i:064x}"]}] if i == 1 else [],
        }
        for i in range(MAX_TRANSACTIONS + 3)
    ],
}


@pytest.mark.parametrize(
    ("first", "last", "order"),
    [
        (0, 6, [6, 0, 3, 1, 4, 2, 5]),
        (3, 3, [3]),
        (3, 4, [4, 3]),
        (5, 4, []),
    ],
)
def test_spread(first: int, last: int, order: list[int]) -> None:
    """Ends first, then middles of the widest gaps."""
    assert order == list(spread(first, last))


@pytest.mark.parametrize("size", [1, 2, 3, 64, 65, 1000])
def test_spread_is_complete(size: int) -> None:
    """Every height comes exactly once."""
    assert list(range(7, 7 + size)) == sorted(spread(7, 6 + size))


def everything() -> list[Ask]:
    sampler = Sampler(final=32)
    asks = [*sampler.opening(), sampler.block(16), *sampler.after_block(BLOCK, True)]
    asks += sampler.after_logs([{"address": "0x" + "e5" * 20, "blockNumber": "0x10", "topics": ["0x" + "11" * 32]}])
    return asks + sampler.after_prestate({"0x" + "b2" * 20: {"storage": {"0x" + "77" * 32: "0x01"}}})


def test_only_listed_reads_are_asked() -> None:
    """A sample holds every method of the list, nothing else, and no write."""
    asked = {ask.method for ask in everything()}

    assert set(METHODS) == asked
    assert not any(methods.lookup(name).is_write or methods.lookup(name).is_stateful for name in asked)


def test_every_question_is_final() -> None:
    """Sampled questions name heights, never a moving tag, and say that they are final."""
    for ask in everything():
        assert ask.is_final
        assert not {b"latest", b"pending", b"safe"} & set(ask.params.split(b'"'))


def test_no_question_twice() -> None:
    """The same block sampled again, as a neighbour would be, asks about no account, slot or call again."""
    sampler = Sampler(final=32)
    first = sampler.after_block(BLOCK, True)
    again = sampler.after_block({**BLOCK, "number": "0x11"}, True)
    per_account = {
        "eth_getBalance",
        "eth_getCode",
        "eth_getTransactionCount",
        "eth_getStorageAt",
        "eth_getProof",
        "eth_call",
    }

    assert len(first) == len(set(first))
    assert per_account & {ask.method for ask in first} == per_account
    assert not per_account & {ask.method for ask in again}


def test_state_is_read_at_the_final_height() -> None:
    """State reads and replays name the final height, not the block's own; only an unused account is read without."""
    for ask in everything():
        if ask.family.endswith("without a block"):
            assert msgspec.json.decode(ask.params)[0] == UNUSED_ADDRESS
        elif ask.method in ("eth_getBalance", "eth_getCode", "eth_call"):
            assert msgspec.json.decode(ask.params)[1] == "0x20"


def test_hash_is_asked_only_where_both_have_it() -> None:
    """Without a common block there is no question by its hash."""
    asks = Sampler(final=32).after_block(BLOCK, False)

    assert not [ask for ask in asks if ask.method == "eth_getBlockByHash" or b"blockHash" in ask.params]


def test_a_contract_creation_is_not_replayed() -> None:
    """A transaction without `to` has no call to replay."""
    asks = Sampler(final=32).after_block({**BLOCK, "transactions": BLOCK["transactions"][:1]}, True)

    assert not [ask for ask in asks if ask.method == "eth_call"]


@pytest.mark.parametrize(
    "block",
    [
        {"number": "0x0", "hash": None, "transactions": None},
        {"number": "0x0"},
        {"number": "0x1", "transactions": ["0xab"]},
    ],
)
def test_bare_blocks(block: dict[str, object]) -> None:
    """A block without transactions, miner or hash leads to the questions about its height only."""
    methods_asked = {ask.method for ask in Sampler(final=32).after_block(block, True)}

    assert methods_asked == {
        "eth_getBlockByNumber",
        "eth_getBlockReceipts",
        "eth_getLogs",
        "eth_getBlockTransactionCountByNumber",
        "trace_block",
    }
