"""What the configuration says of upstreams reaches the prices of their calls."""

from pathlib import Path

import pytest

from gnomon.config.load import load, loads
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


def test_books_are_looked_up_beside_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the service was started; and the place is no part of what the configuration is."""
    hashes = []
    for name in ("one", "two"):
        folder = tmp_path / name
        (folder / "books").mkdir(parents=True)
        (folder / "books" / "mine.yaml").write_text("{vendor: acme, usd_per_million_units: 2, default_units: 3}")
        (folder / "gnomon.yaml").write_text(CONFIG + "gnomon: {pricing: {books: [books/mine.yaml]}}\n")
        monkeypatch.chdir("/")
        settings = load(folder / "gnomon.yaml")
        hashes.append(settings.config_hash)
        charge = context(settings).charger.charge("acme", "evm:1", "eth_call", "result", "", 200, 1, NOW)
        assert charge.usd == 6_000_000

    assert hashes[0] == hashes[1]
