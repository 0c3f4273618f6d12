import pytest

from gnomon.rpc.methods import METHODS, Method, lookup


@pytest.mark.parametrize(
    "name",
    [
        "eth_sendRawTransaction", "eth_sendTransaction", "eth_submitWork", "personal_unlockAccount", "eth_sign",
        "eth_signTypedData_v9", "eth_sendBundle", "eth_sendPrivateTransaction", "miner_setEtherbase", "admin_addPeer",
        "anvil_setBalance", "hardhat_impersonateAccount", "evm_mine", "engine_newPayloadV4", "debug_setHead",
        "ETH_SENDRAWTRANSACTION", "condenser_api.broadcast_transaction", "zks_sendSomething", "wallet_anything",
        "network_broadcast_api.broadcast_block",
    ],
)  # fmt: skip
def test_a_write_is_known_by_its_entry_or_by_its_name(name: str) -> None:
    """Listed writes, state-changing namespaces and writing verbs in unknown namespaces are writes."""

    assert lookup(name).is_write


@pytest.mark.parametrize(
    "name",
    [
        "eth_call", "eth_getLogs", "debug_traceTransaction", "debug_traceBlock", "trace_block", "net_version",
        "condenser_api.get_block", "eth_createAccessList", "bridge.get_post", "txpool_status", "eth_newFilter",
        "hardhat_metadata", "engine_getClientVersionV1", "somechain_getThing", "", "debug_storageRangeAt",
    ],
)  # fmt: skip
def test_a_question_is_no_write(name: str) -> None:
    """Questions, listed or not, may be mirrored and hedged."""

    assert not lookup(name).is_write


def test_an_unknown_method_is_safe() -> None:
    """It has no block, no static finality, and its empty answer is an answer."""

    assert lookup("nobody_knowsThis") == Method(name="nobody_knowsThis")


def test_names_that_clients_choose_do_not_grow_the_table_without_bound() -> None:
    """Lookups of endless names keep at most a bounded number of them."""
    table = type(lookup.__self__)(METHODS)  # type: ignore[attr-defined]
    for n in range(table.MAX_UNLISTED + 100):
        table[f"x_{n}"]
    table["y" * 10_000]

    assert len(METHODS) + table.MAX_UNLISTED == len(table)


def test_filters_live_on_one_node() -> None:
    """Filter methods are stateful and have no single right answer."""
    for name in ("eth_newFilter", "eth_newBlockFilter", "eth_getFilterChanges", "eth_uninstallFilter"):
        assert (lookup(name).is_stateful, lookup(name).is_node_local) == (True, True)


def test_every_entry_carries_its_own_name() -> None:
    """The table cannot answer for another method."""

    assert all(name == method.name and method.is_known for name, method in METHODS.items())
