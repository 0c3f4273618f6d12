"""Masks and tolerances in force are those that verdicts use."""

import pytest

from analytics.questions import load
from gnomon.compare import presets
from gnomon.config.load import loads
from gnomon.config.model import Settings
from ingest.comparisons import Policies
from tests.api.calling import Api, FakeReader, result_of

CONFIGURATION = """
projects:
- id: main
  upstreams:
  - {id: p, endpoint: 'http://127.0.0.1:1', evm: {chainId: 10}}
  - id: s
    endpoint: 'http://127.0.0.1:2'
    evm: {chainId: 10}
    shadow:
      enabled: true
      ignoreFields: {eth_getLogs: ['*.extra'], eth_call: [odd]}
      tolerate: {eth_call: [hex_case]}
- id: other
  upstreams:
  - {id: p, endpoint: 'http://127.0.0.1:1', evm: {chainId: 31337}}
  - {id: plain, endpoint: 'http://127.0.0.1:2', evm: {chainId: 31337}, shadow: {enabled: true}}
gnomon: {shadow: {tolerate: {'*': ['value@size']}}}
"""


def settings() -> Settings:
    return loads(CONFIGURATION, environment={})


def rows(**query: str) -> list[dict[str, object]]:
    reader = FakeReader(result_of(load("silences")))
    items: list[dict[str, object]] = Api(reader, settings()).get("/v1/masks", **query).json()["items"]
    return items


def test_presets_and_configuration_are_merged() -> None:
    """Each rule with where it comes from; a shadow without any has what holds for all."""
    by = {(row["project"], row["shadow_upstream"], row["method"]): row for row in rows()}
    logs = by["main", "s", "eth_getLogs"]

    assert logs["masks"] == [
        {"text": "*.blockTimestamp", "source": "preset"}, {"text": "*.extra", "source": "shadow.ignoreFields"},
    ]  # fmt: skip
    assert logs["tolerances"] == [{"text": "value@size", "source": "gnomon.shadow.tolerate"}]
    assert by["main", "s", "eth_call"]["tolerances"] == [
        {"text": "value@size", "source": "gnomon.shadow.tolerate"}, {"text": "hex_case", "source": "shadow.tolerate"},
    ]  # fmt: skip
    assert [key for key in by if key[0] == "other"] == [("other", "plain", "*")]
    assert by["main", "s", "*"]["masks"] == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row['shadow_upstream']} {row['method']}")
def test_versions_are_those_that_verdicts_store(row: dict[str, object]) -> None:
    """As the processors compile the same settings."""
    upstream = next(u for p in settings().projects for u in p.upstreams if u.id == row["shadow_upstream"])
    own, method = upstream.shadow, str(row["method"])
    assert own is not None
    tolerate = (*own.tolerate.get("*", ()), *(own.tolerate.get(method, ()) if method != "*" else ()))
    found = Policies(settings().gnomon.shadow.tolerate).find(
        upstream.network, method, own.ignore_fields.get(method, ()), tolerate
    )

    assert (row["mask_version"], row["tolerance_version"]) == (found.mask_version, found.tolerance_version)


def test_filters_hold_together() -> None:
    """By network, shadow and method."""
    assert [row["method"] for row in rows(network_="evm:10", method_="eth_call")] == ["eth_call"]
    assert rows(shadow_upstream_="nobody") == []


def test_the_version_of_the_presets_is_told() -> None:
    """It changes with the table."""
    answer = Api(FakeReader(result_of(load("silences"))), settings()).get("/v1/masks").json()

    assert answer["preset_version"] == presets.VERSION
