"""Which rules hold for a pair."""

from api.rules import Rule, chosen, mask_version, masks_in_force, tolerances_in_force
from gnomon.compare import masks, presets
from gnomon.config.load import loads
from ingest.comparisons import Policies
from tests.api.calling import settings_of

SHADOWED = loads(
    """
projects:
  - id: main
    upstreams:
      - {id: p1, endpoint: 'http://127.0.0.1:1', evm: {chainId: 1}}
      - id: s1
        endpoint: 'http://127.0.0.1:2'
        evm: {chainId: 1}
        shadow: {enabled: true, ignoreFields: {eth_getLogs: ["'a'.b", '*.blockTimestamp']}, tolerate: [hex_case]}
gnomon: {shadow: {tolerate: [value@size, hex_case]}}
""",
    environment={},
)


def test_masks_are_the_presets_and_the_configured_ones() -> None:
    """Each once, in its one spelling, with where it comes from; another method or shadow has its own."""
    assert masks_in_force(SHADOWED, "evm:1", "eth_getLogs", "s1") == [
        Rule("*.blockTimestamp", "preset", True),
        Rule("a.b", "configuration", True),
    ]
    assert masks_in_force(SHADOWED, "evm:1", "eth_getLogs", "s2") == [Rule("*.blockTimestamp", "preset", True)]
    assert masks_in_force(SHADOWED, "evm:1", "eth_call", "s1") == []
    assert masks_in_force(SHADOWED, "evm:137", "eth_call", "s1") == []


def test_tolerances_are_those_of_the_installation_and_of_the_shadow() -> None:
    """Each once."""
    texts = [rule.text for rule in tolerances_in_force(SHADOWED, "evm:1", "eth_call", "s1")]

    assert texts == ["value@size", "hex_case"]
    assert tolerances_in_force(settings_of(), "evm:1", "eth_call", "s1") == []


def test_versions_are_those_that_verdicts_store() -> None:
    """With the preset's where all of it holds, as the processors write it; without it where a part is off."""
    texts = [rule.text for rule in masks_in_force(SHADOWED, "evm:1", "eth_getTransactionReceipt", "s1")]
    stored = Policies().find("evm:1", "eth_getTransactionReceipt", (), ())

    assert mask_version("evm:1", "eth_getTransactionReceipt", masks.compile(texts)) == stored.mask_version
    assert presets.VERSION in stored.mask_version
    assert (
        mask_version("evm:1", "eth_getTransactionReceipt", masks.compile(texts[:1])) == masks.compile(texts[:1]).version
    )
    assert mask_version("evm:1", "eth_call", masks.NO_MASKS) == ""


def test_rules_of_a_request_are_all_that_hold() -> None:
    """Those in force that it leaves out are shown, and off; without any said all that are in force hold."""
    in_force = [Rule("a", "preset", True), Rule("b", "configuration", True)]

    assert chosen(in_force, None) == in_force
    assert chosen(in_force, ["b", "c", "c"]) == [
        Rule("a", "preset", False), Rule("b", "configuration", True), Rule("c", "request", True),
    ]  # fmt: skip
    assert [rule.is_on for rule in chosen(in_force, [])] == [False, False]
