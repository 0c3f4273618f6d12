"""Upstreams and their score cards: what is configured, beside what the questions say of it."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from analytics.questions import load
from analytics.store import Result
from api.pages.address import view
from api.reader import Reader
from gnomon.config.load import loads
from gnomon.config.model import ClickHouseSettings
from tests.api.calling import Api, FakeReader, result_of
from tests.api.world import DAY
from tests.ingest.engine_process import EngineProcess
from tests.ingest.events import AT

CONFIGURATION = """
projects:
- id: main
  upstreams:
  - {id: p1, endpoint: 'https://user:pw@node.example:8545/v2/KEY', evm: {chainId: 31337}}
  - {id: f1, endpoint: 'https://paid.example/KEY', vendorName: alchemy, tags: ['tier:fallback'], evm: {chainId: 31337}}
  - {id: s1, endpoint: 'http://127.0.0.1:2', evm: {chainId: 31337}, shadow: {enabled: true}}
- id: other
  upstreams:
  - {id: p1, endpoint: 'http://127.0.0.1:3', evm: {chainId: 7}}
"""


@pytest.fixture
def stored(filled: EngineProcess) -> Iterator[Api]:
    reader = Reader(ClickHouseSettings(url=filled.url), n_connections=4, query_seconds=20)
    yield Api(reader, loads(CONFIGURATION, environment={}))
    reader.close()


def empty(sql: str, bound: object) -> Result:
    names = ("upstream_health", "spend_by_upstream", "head_lag", "breakers", "divergence_by_shadow",
             "upstream_methods", "errors_by_class")  # fmt: skip
    return result_of(next(load(name) for name in names if load(name).sql == sql))


def over_nothing() -> Api:
    return Api(FakeReader(empty), loads(CONFIGURATION, environment={}))


def test_what_is_configured_is_there_without_a_call() -> None:
    """By host only: paths and users of an endpoint are secrets."""
    answer = over_nothing().get("/v1/upstreams")
    items = answer.json()["items"]

    assert [(i["project"], i["upstream"], i["network"], i["tier"], i["vendor"], i["host"]) for i in items] == [
        ("main", "p1", "evm:31337", "primary", "", "node.example"),
        ("main", "f1", "evm:31337", "fallback", "alchemy", "paid.example"),
        ("main", "s1", "evm:31337", "shadow", "", "127.0.0.1"),
        ("other", "p1", "evm:7", "primary", "", "127.0.0.1"),
    ]
    assert [i["sample_rate"] for i in items] == [None, None, 1.0, None]
    assert b"KEY" not in answer.body
    assert b"pw" not in answer.body
    assert all(item["health"] == item["spend"] == item["heads"] == [] for item in items)


@pytest.mark.clickhouse
def test_a_card_has_the_rows_of_each_question(stored: Api) -> None:
    """Of its own network; who is configured no more is there too."""
    items = {(i["network"], i["upstream"]): i for i in stored.get("/v1/upstreams", **DAY).json()["items"]}
    health = {i["upstream"]: i for i in stored.get("/v1/upstreams/health", **DAY).json()["items"]}
    primary, gone = items["evm:31337", "p1"], items["evm:31337", "f2"]

    assert primary["health"] == [health["p1"]]
    assert [row["number"] for row in primary["heads"]] == [109]
    assert primary["breaker"][0]["state"] == "open"
    assert items["evm:31337", "f1"]["spend"][0]["vendor"] == "alchemy"
    assert items["evm:31337", "s1"]["divergence"][0]["mismatch"] == 20
    assert (gone["is_configured"], gone["project"], gone["vendor"], gone["tier"]) == (False, "", "nobody", "fallback")
    assert items["evm:7", "p1"]["health"] == []


@pytest.mark.clickhouse
def test_a_card_of_the_past_has_the_head_of_then(stored: Api) -> None:
    """Its end bounds the heads as it bounds everything else; ten of the twenty blocks were there."""
    end = datetime.fromtimestamp(AT / 10**9, UTC) + timedelta(seconds=10)
    cards = stored.get("/v1/upstreams", from_=DAY["from_"], to=end.isoformat()).json()["items"]
    heads = next(card["heads"] for card in cards if (card["network"], card["upstream"]) == ("evm:31337", "p1"))

    assert [(row["number"], row["age_seconds"]) for row in heads] == [(99, 1.0)]


@pytest.mark.clickhouse
def test_one_upstream_has_its_methods_and_errors(stored: Api) -> None:
    """And nobody else's."""
    found: dict[str, Any] = stored.get("/v1/upstreams/s1", **DAY).json()

    assert {row["method"] for row in found["methods"]} == {"eth_getBlockByNumber", "eth_call", "eth_getLogs"}
    assert {row["upstream"] for row in [*found["methods"], *found["errors"]]} == {"s1"}
    assert [(row["outcome"], row["n"]) for row in found["errors"]] == [("timeout", 20)]


def test_a_name_in_two_projects_needs_the_project() -> None:
    """400 with both; 404 for one that nobody has."""
    one = over_nothing()
    both = one.get("/v1/upstreams/p1")

    assert (both.status, both.problem) == (400, "invalid-parameter")
    assert "main, other" in both.json()["detail"]
    assert one.get("/v1/upstreams/p1", project="other").json()["network"] == "evm:7"
    assert one.get("/v1/upstreams/nobody").problem == "not-found"
    assert one.get("/v1/upstreams/f1", project="other").problem == "not-found"


@pytest.mark.parametrize("name", ["a/b", "eth/main?net#1", "50%25", "ü b", "x/cordon/y", "a\\b"])
def test_an_id_may_have_any_character(name: str) -> None:
    """Configurations in eRPC's shape have such; a client may quote the slash or not."""
    reader = FakeReader(empty)
    there = Api(reader, loads(CONFIGURATION.replace("s1", json.dumps(name)), environment={}))
    answer = there.get(f"/v1/upstreams/{name}")

    assert (answer.status, answer.json().get("upstream")) == (200, name)
    assert there.get(f"/v1/upstreams/{name}/cordon").status == 405


@pytest.mark.clickhouse
def test_the_address_of_an_upstream_leads_to_its_page(filled: EngineProcess) -> None:
    """Its characters are quoted where they would end the path; its panels are found too."""
    name = "eth/main?net#50%25 b"
    reader = Reader(ClickHouseSettings(url=filled.url), n_connections=4, query_seconds=20)
    there = Api(reader, loads(CONFIGURATION.replace("s1", json.dumps(name)), environment={}))
    way = view("/", (), datetime.now(UTC), default_from="now-1h").to(f"/upstreams/{name}")
    page = there.get(unquote(urlsplit(way).path))
    panels = re.findall(r'"(/upstreams/[^"?]*/_[a-z]+)', page.body.decode())
    actions = set(re.findall(r'action="(/upstreams/[^"]*)"', page.body.decode()))

    assert page.status == 200
    assert "There is no upstream" not in page.body.decode()
    assert actions == {urlsplit(way).path}
    assert panels
    assert {there.get(unquote(panel)).status for panel in panels} == {200}
    reader.close()
