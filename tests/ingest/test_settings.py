"""What the configuration says of upstreams reaches the prices of their calls."""

import pytest

from gnomon.config.load import loads
from gnomon.cost.charge import Charger
from ingest.settings import context
from proxy import allowances

UNIT = 10**12
NOW = 1_796_000_000
CONFIG = """
projects:
- id: main
  upstreams:
  - {id: p1, endpoint: 'http://127.0.0.1:1', evm: {chainId: 1}}
  - {id: gb, endpoint: 'http://127.0.0.1:2', vendor: getblock, evm: {chainId: 1, nodeType: archive}}
  - {id: own, endpoint: 'http://127.0.0.1:3', vendor: getblock, evm: {chainId: 1}, creditUnits: {'*': 7}}
  - {id: s1, endpoint: 'http://127.0.0.1:4', vendor: getblock, evm: {chainId: 1, nodeType: full}, tags: ['tier:shadow'],
     shadow: {enabled: true, monthlyBudgetUsd: 1}}
"""


@pytest.mark.parametrize("where", ["processors", "proxy"])
def test_units_and_archives_are_those_of_the_configuration(where: str) -> None:
    """Bills and the allowances of shadows are by the same prices."""
    settings = loads(CONFIG, environment={})
    charger = context(settings).charger if where == "processors" else allowances.charger_for(settings)
    assert isinstance(charger, Charger)

    def units(upstream: str) -> int | None:
        own, archive = charger.own_units("main", upstream, "eth_call"), charger.has_archive("main", upstream)
        return charger.charge(
            "getblock", "evm:1", "eth_call", "result", "", 200, 1, NOW, None, own, has_archive=archive
        ).units

    assert {name: units(name) for name in ("gb", "own", "s1")} == {"gb": 40 * UNIT, "own": 7 * UNIT, "s1": 20 * UNIT}
