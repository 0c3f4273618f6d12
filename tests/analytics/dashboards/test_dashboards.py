"""Every panel asks what can be answered: SQL by the schema, as a reader; PromQL by the metrics that there are."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from analytics import reading
from analytics.dashboards import NAMES, dashboards
from analytics.dashboards.__main__ import main
from analytics.dashboards.panels import WIDTH, Promql, Sql, asks, parse, places
from analytics.store import Store
from gnomon.cli.reference.metrics import by_name, names_in
from gnomon.config.model import ClickHouseSettings
from tests.analytics.dashboards.macros import replaced
from tests.ingest.engine_process import migrated_engine
from tests.services import ROOT

FOLDER = ROOT / "deploy" / "grafana" / "dashboards"
EVERY = asks(dashboards())
SQL = [(place, ask) for place, ask in EVERY if isinstance(ask, Sql)]
PROMQL = [(place, ask) for place, ask in EVERY if isinstance(ask, Promql)]
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Who may read the views, and nothing else."""
    with migrated_engine(tmp_path_factory.mktemp("engine")) as engine:
        with reading.connect(ClickHouseSettings(url=engine.url), wait_seconds=10) as store:
            yield store


@pytest.mark.clickhouse
@pytest.mark.parametrize("network", ["", "evm:1"], ids=["all", "one network"])
@pytest.mark.parametrize(("place", "ask"), SQL, ids=[place for place, _ in SQL])
def test_a_statement_is_answered_by_the_schema(place: str, ask: Sql, network: str, reader: Store) -> None:
    """With the macros replaced as the plugin does; by the rights of a reader, who may do nothing else."""
    sql = replaced(ask.text, NOW - timedelta(hours=6), NOW, network)
    names, types, *_ = [json.loads(line) for line in reader.lines(sql, "JSONCompactEachRowWithNamesAndTypes")]

    if "$__timeInterval" in ask.text or " AS time" in ask.text:
        assert names[0] == "time"
        assert types[0].startswith("DateTime")
        assert re.search(r"ORDER BY time", sql)
    assert not [kind for kind in types if "Decimal" in kind], "a graph has no decimals: toFloat64"


@pytest.mark.parametrize(("place", "ask"), PROMQL, ids=[f"{place} {ask.legend}" for place, ask in PROMQL])
def test_an_expression_names_metrics_and_labels_that_there_are(place: str, ask: Promql) -> None:
    """Each metric is in the reference, each label is one of its own (or the scrape's)."""
    names = names_in(ask.text)
    assert names
    assert names <= set(by_name())
    labels = {label for name in names for label in by_name()[name].labels} | {"instance", "job"}
    used = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", ask.text))
    used |= {
        label.strip()
        for group in re.findall(r"\b(?:by|without|on) \(([^)]*)\)", ask.text)
        for label in group.split(",")
    }
    used |= set(re.findall(r"\{\{(\w+)\}\}", ask.legend))

    assert used <= labels


@pytest.mark.parametrize(("place", "ask"), PROMQL, ids=[f"{place} {ask.legend}" for place, ask in PROMQL])
def test_a_counter_is_asked_for_its_rate(place: str, ask: Promql) -> None:
    """A counter by itself is only as large as its process is old."""
    for name in names_in(ask.text):
        is_counter = by_name()[name].type == "counter"

        assert bool(re.search(rf"(?:rate|increase)\({name}\b", ask.text)) == is_counter, name


@pytest.mark.parametrize("dashboard", dashboards(), ids=lambda d: d.uid)
def test_a_page_is_whole(dashboard: Any) -> None:
    """Ids and titles are its own, no panel lies on another, each has a sentence; the JSON is what is committed."""
    document = json.loads(dashboard.text())
    titles = [panel["title"] for panel in document["panels"]]
    cells = [
        (x, y)
        for place in places(dashboard.panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len({panel["id"] for panel in document["panels"]}) == len(set(titles)) == len(titles)
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < WIDTH
    assert all(panel.about.endswith(".") for panel in dashboard.panels)
    assert (FOLDER / dashboard.file).read_text("utf-8") == dashboard.text()


def test_every_description_is_a_page(tmp_path: Any) -> None:
    """And every committed page has a description."""
    main(tmp_path)

    assert {file.stem for file in (ROOT / "analytics" / "dashboards").glob("*.yaml")} == set(NAMES)
    assert {file.name for file in FOLDER.iterdir()} == {file.name for file in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{title: t, about: a, panels: [{title: p, about: b, form: line}]}", "'p' needs sql or promql"),
        ("{title: t, about: a, panels: [{title: p, about: b, form: pie, sql: SELECT 1}]}", "'p' needs"),
        ("{title: t, about: a, panels: [{title: p, about: b, form: line, sql: SELECT 1, colour: red}]}", "colour"),
        ("{title: t, about: a, panels: [], tag: x}", "tag"),
    ],
)
def test_a_description_with_a_mistake_is_refused(text: str, said: str) -> None:
    """The dashboard is named, and what is wrong."""
    with pytest.raises(ValueError, match=f"dashboard x: .*{said}"):
        parse("x", text)


def test_the_gate_of_the_macros_can_fail() -> None:
    """A macro that is not known would reach ClickHouse as it is."""
    with pytest.raises(AssertionError):
        replaced("SELECT $__unknown(at)", NOW, NOW)
