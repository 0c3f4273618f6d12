import pytest

from gnomon.compare import masks, presets


@pytest.mark.parametrize(
    ("network", "family"),
    [
        ("evm:1", "ethereum"),
        ("evm:10", "op-stack"),
        ("evm:8453", "op-stack"),
        ("evm:42161", "arbitrum"),
        ("evm:137", "polygon"),
        ("evm:999999", "generic"),
        ("hive", "generic"),
        ("evm:", "generic"),
        ("evm:x", "generic"),
        ("", "generic"),
        ("evm:" + "9" * 5000, "generic"),
    ],
)
def test_a_network_belongs_to_a_family(network: str, family: str) -> None:
    """Chains nobody listed have no preset."""

    assert family == presets.family_of(network)


def test_every_preset_compiles() -> None:
    """And each mask is written in its one spelling."""
    for network in ("evm:1", "evm:10", "evm:42161", "evm:137"):
        for method in ("eth_getLogs", "eth_getTransactionReceipt", "eth_getBlockReceipts"):
            texts = presets.masks_of(network, method)

            assert texts
            assert masks.compile(texts).masks == tuple(sorted(texts))


def test_most_methods_have_no_preset() -> None:
    """A preset hides differences, so there is none without a source."""

    assert presets.masks_of("evm:1", "eth_call") == presets.masks_of("evm:999999", "eth_getLogs") == ()
