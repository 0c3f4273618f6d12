"""The closed list of metrics, as it is written and as it is documented."""

import pytest

from api.metrics import DEFINITIONS, Metrics
from tests.services import ROOT


def test_a_metric_is_written_as_prometheus_reads_it() -> None:
    """Help, type, escaped labels."""
    metrics = Metrics()
    metrics.add("gnomon_api_problems_total", ('a"\\\n',))
    metrics.set("gnomon_api_in_flight", value=2)
    text = metrics.render()

    assert 'gnomon_api_problems_total{problem="a\\"\\\\\\n"} 1\n' in text
    assert "# TYPE gnomon_api_in_flight gauge\ngnomon_api_in_flight 2\n" in text


def test_labels_are_those_of_the_list() -> None:
    """One too few is a bug."""
    with pytest.raises(AssertionError):
        Metrics().add("gnomon_api_requests_total", ("/v1/spend",))


def test_each_metric_is_documented() -> None:
    """docs/api.md has a line for each, with its labels."""
    page = (ROOT / "docs" / "api.md").read_text("utf-8")

    for definition in DEFINITIONS:
        assert (
            f"| `{definition.name}` | {', '.join(definition.labels)} | {definition.help} |".replace("|  |", "| |")
            in page
        )
