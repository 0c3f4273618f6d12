"""Every metric of every service is told, by the list that the service renders."""

import re
from collections import Counter

import pytest

from gnomon.cli.reference.metrics import BY_SERVICE, Metric, by_name, names_in, render
from tests.services import ROOT

EVERY = [metric for _, metrics in BY_SERVICE.values() for metric in metrics]


@pytest.mark.parametrize("metric", EVERY, ids=lambda m: m.name)
def test_a_metric_has_a_meaning_and_a_name_of_the_form(metric: Metric) -> None:
    """A sentence that says how to read it; counters end in `_total`, nothing else does."""
    assert metric.meaning.endswith(".")
    assert len(metric.meaning.split()) >= 2
    assert re.fullmatch(r"gnomon_[a-z0-9_]+", metric.name)
    assert (metric.type == "counter") == metric.name.endswith("_total")
    assert metric.type in ("counter", "gauge")


def test_no_two_services_share_a_name() -> None:
    """One name, one meaning."""
    assert [name for name, n in Counter(metric.name for metric in EVERY).items() if n > 1] == []


def test_every_list_of_metrics_is_on_the_page() -> None:
    """A module that declares metrics of its own is one of those that the page reads."""
    declared = set()
    for file in (f for room in ("gnomon", "proxy", "ingest", "analytics", "api") for f in (ROOT / room).rglob("*.py")):
        if file.parent.name != "reference":
            declared |= set(re.findall(r'"(gnomon_[a-z0-9_]+_total)"', file.read_text("utf-8")))

    assert declared - set(by_name()) == set()


def test_every_metric_is_told_whole() -> None:
    """Its name, type, labels and meaning in one row."""
    page = render()
    for metric in EVERY:
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "none"

        assert f"| `{metric.name}` | {metric.type} | {labels} | {metric.unit} | {metric.meaning} |" in page


def test_names_are_found_in_expressions() -> None:
    """Those of ours, and no text within quotes."""
    assert names_in('rate(gnomon_a_total{x="gnomon_b"}[5m]) > on (x) gnomon_c') == {"gnomon_a_total", "gnomon_c"}
