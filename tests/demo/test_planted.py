"""The faulty chain differs where a difference is planted, and nowhere else."""

from typing import Any

import pytest

from gnomon.demo import contract
from gnomon.demo.chain import ACCOUNTS, REGISTER, Chain, RpcFault
from gnomon.demo.planted import PLANTS, FaultyChain

Asked = tuple[str, list[object]]


def chain() -> Chain:
    grown = Chain(seed="test", chain_id=31337, genesis_time=1_700_000_000, name="x")
    for i in range(8):
        grown.mine(1_700_000_002 + 2 * i)
    return grown


def outcome(source: Chain | FaultyChain, asked: Asked) -> object:
    try:
        return source.answer(*asked)
    except RpcFault as fault:
        return fault.code, fault.message, fault.data


def tx_hash() -> str:
    block: Any = chain().answer("eth_getBlockByNumber", ["0x4", False])
    return str(block["transactions"][0])


SHOWN: dict[str, Asked] = {
    "eth_getLogs": ("eth_getLogs", [{"fromBlock": "0x1", "toBlock": "0x8"}]),
    "eth_getTransactionReceipt": ("eth_getTransactionReceipt", [tx_hash()]),
    "eth_getBlockByNumber": ("eth_getBlockByNumber", ["0x4", True]),
    "eth_getTransactionByHash": ("eth_getTransactionByHash", [tx_hash()]),
    "eth_getStorageAt": ("eth_getStorageAt", [REGISTER, "0x1", "0x8"]),
    "eth_getBalance": ("eth_getBalance", [ACCOUNTS[0], "0x8"]),
    "eth_call": ("eth_call", [{"to": REGISTER, "data": "0x" + contract.FAIL}, "0x8"]),
    "eth_getBlockReceipts": ("eth_getBlockReceipts", ["0x4"]),
}


@pytest.mark.parametrize("method", [plant.method for plant in PLANTS])
def test_every_plant_shows(method: str) -> None:
    """A call that touches a plant is answered differently."""
    assert outcome(chain(), SHOWN[method]) != outcome(FaultyChain(chain()), SHOWN[method])


@pytest.mark.parametrize(
    "asked",
    [
        ("eth_chainId", []),
        ("eth_blockNumber", []),
        ("eth_getCode", [REGISTER, "latest"]),
        ("eth_getTransactionCount", [ACCOUNTS[0], "latest"]),
        ("eth_getBlockByNumber", ["0xffff", False]),
        ("eth_getLogs", [{"fromBlock": "0x0", "toBlock": "0x0"}]),
        ("eth_call", [{"to": REGISTER, "data": contract.get_call(1)}, "latest"]),
        ("eth_call", [{"to": REGISTER, "data": "0x" + contract.BOOM}, "latest"]),
        ("eth_nothing", []),
    ],
    ids=lambda asked: str(asked[0]),
)
def test_the_rest_is_equal(asked: Asked) -> None:
    """A call that touches no plant is answered as by the right chain, errors included."""
    assert outcome(chain(), asked) == outcome(FaultyChain(chain()), asked)


def test_the_right_chain_is_not_altered() -> None:
    """The faulty answers are copies: asking them changes nothing in the chain underneath."""
    source = chain()
    before = [outcome(source, asked) for asked in SHOWN.values()]
    for asked in SHOWN.values():
        outcome(FaultyChain(source), asked)

    assert before == [outcome(source, asked) for asked in SHOWN.values()]
    assert before == [outcome(chain(), asked) for asked in SHOWN.values()]
