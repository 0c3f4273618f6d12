"""Every metric of every service, from the closed list that the service renders."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from analytics.alerting import export as alerts
from api import metrics as api
from gnomon.cli.reference.markdown import code, table, unit
from gnomon.exposition import Definition
from ingest import metrics as ingest
from proxy import metrics as proxy
from proxy.shipper import metrics as shipper

_HEAD = """\
# Metrics

In Prometheus' text format, at `/metrics` of each service. Counters begin at 0 with the process. Labels are few and
bounded: a method that is not known is `_OTHER`, and no id, address or block number is a label.

`deploy/prometheus` has a scrape configuration and the alert rules, `deploy/grafana` the dashboards.

"""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as the page shows it."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str

    @property
    def unit(self) -> str:
        """What the value counts: a unit at the end of the name, else things as its meaning says."""
        return unit(self.name) or ("count" if self.type == "counter" else "number")


def render() -> str:
    """Return the page."""
    lines = [_HEAD.rstrip()]
    for service, (where, metrics) in BY_SERVICE.items():
        rows = [
            [code(m.name), m.type, ", ".join(code(label) for label in m.labels) or "none", m.unit, m.meaning]
            for m in metrics
        ]
        lines += [
            "",
            f"## {service}",
            "",
            where,
            "",
            *table(["metric", "type", "labels", "unit", "how to read it"], rows),
        ]
    return "\n".join([*lines, ""])


def by_name() -> dict[str, Metric]:
    """Return every metric by its name."""
    return {metric.name: metric for _, metrics in BY_SERVICE.values() for metric in metrics}


def names_in(promql: str) -> set[str]:
    """
    Return the names of our metrics in an expression of PromQL.

    >>> sorted(names_in('sum by (network) (rate(gnomon_requests_total{outcome="x"}[5m])) / gnomon_head_blocks'))
    ['gnomon_head_blocks', 'gnomon_requests_total']
    """
    return set(re.findall(r"\bgnomon_\w+", re.sub(r'"(?:[^"\\]|\\.)*"', '""', promql)))


def _of(definitions: Iterable[Definition]) -> tuple[Metric, ...]:
    return tuple(Metric(d.name, d.type, d.labels, d.help) for d in definitions)


BY_SERVICE: Final[Mapping[str, tuple[str, tuple[Metric, ...]]]] = {
    "Proxy": (
        "At the proxy's own address: `http://127.0.0.1:4000/metrics`.",
        _of(proxy.DEFINITIONS),
    ),
    "Shipper": (
        "Among the proxy's, where Kafka is configured.",
        _of(shipper.DEFINITIONS),
    ),
    "Processors": (
        "`gnomon ingest`: where its first line says (`gnomon.health` sets it).",
        _of(ingest.DEFINITIONS),
    ),
    "API": (
        "At the API's own address: `http://127.0.0.1:8080/metrics`.",
        _of(api.DEFINITIONS),
    ),
    "Alerts": (
        "`gnomon alerts`: where its first line says (`gnomon.health` sets it).",
        _of(alerts.DEFINITIONS),
    ),
}
"""Service → where its metrics are, and which."""
