"""
The rules for Prometheus, and the metrics that they read: each rule's last value by subject.

The alert service asks ClickHouse and shows what it got as `gnomon_alert_value`; Prometheus compares that with the same
threshold for the same time. So the two cannot differ in what they count, and an Alertmanager fed by Prometheus needs
no receiver here.

    python -m analytics.alerting.export > deploy/prometheus/gnomon.rules.yaml
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import yaml

from analytics.alerting.rules import Rule, shipped
from analytics.alerting.service import BLIND, Service
from gnomon import exposition
from gnomon.config.scalars import format_duration
from gnomon.exposition import Definition

DEFINITIONS: Final[tuple[Definition, ...]] = (
    Definition("gnomon_alert_value", "gauge", ("rule", "subject"),
               "Last value of a rule, by subject; absent while the rule returns none."),
    Definition("gnomon_alert_firing", "gauge", ("rule", "subject", "severity"),
               "1 for each rule and subject that fires."),
    Definition("gnomon_alert_evaluations_total", "counter", ("rule",), "Evaluations of a rule."),
    Definition("gnomon_alert_failures_total", "counter", ("rule",),
               "Evaluations that ClickHouse did not answer, by rule."),
    Definition("gnomon_alert_failing_seconds", "gauge", ("subject",),
               "For how long a rule could not be asked; absent when it can."),
    Definition("gnomon_alert_deliveries_total", "counter", ("receiver", "result"),
               "Tries to deliver, by receiver and result (delivered, failed)."),
    Definition("gnomon_alert_waiting", "gauge", ("receiver",), "Messages that a receiver has not got yet."),
    Definition("gnomon_alert_leading", "gauge", (),
               "1 where this service tells of alerts, 0 where another one over the store does."),
    Definition("gnomon_alert_reloads_total", "counter", ("result",),
               "Configurations read again at SIGHUP, by result (ok, invalid)."),
)  # fmt: skip
MAX_SUBJECTS: Final = 200
"""Per rule; more are left out of the metrics, not of the alerts."""

_SEVERITY: Final = {"page": "critical", "ticket": "warning"}


def prometheus(rules: Iterable[Rule]) -> str:
    """Return a rule file of Prometheus with the same rules."""
    entries = []
    for rule in rules:
        sign = ">" if rule.is_above else "<"
        metric = f'gnomon_alert_value{{rule="{rule.name}"}}'
        if rule.name == BLIND:
            metric = "gnomon_alert_failing_seconds"
        entry: dict[str, object] = {"alert": rule.name, "expr": f"{metric} {sign} {rule.threshold:.12g}"}
        if rule.lasts:
            entry["for"] = format_duration(rule.lasts.total_seconds())
        entry["labels"] = {"severity": _SEVERITY.get(rule.severity, rule.severity), "service": "gnomon"}
        summary = f"{rule.name} {{{{ $labels.subject }}}}: {{{{ $value }}}} {'above' if rule.is_above else 'below'} "
        annotations = {"summary": f"{summary}{rule.threshold:.12g}"}
        if rule.runbook:
            annotations["runbook"] = rule.runbook
        annotations["query"] = f"gnomon alerts test {rule.name}"
        entries.append({**entry, "annotations": annotations})
    document = {"groups": [{"name": "gnomon", "rules": entries}]}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def render(service: Service, is_leading: bool = True, n_reloads: Mapping[str, int] | None = None) -> str:
    """Return all metrics in Prometheus' text format."""
    samples = dict(_samples(service))
    samples["gnomon_alert_leading"] = [({}, float(is_leading))]
    samples["gnomon_alert_reloads_total"] = [({"result": r}, float(n)) for r, n in (n_reloads or {}).items()]
    return exposition.render(DEFINITIONS, samples)


_Samples = list[tuple[dict[str, str], float]]


def _samples(service: Service) -> Iterator[tuple[str, _Samples]]:
    values: _Samples = []
    for rule, by_subject in list(service.values.items()):
        values += [({"rule": rule, "subject": s}, v) for s, v in list(by_subject.items())[:MAX_SUBJECTS]]
    yield "gnomon_alert_value", values
    severity = {rule.name: rule.severity for rule in service.rules}
    firing: _Samples = []
    for rule, held in list(service.held.items()):
        subjects = [subject for subject, one in list(held.items()) if one.phase == "firing"][:MAX_SUBJECTS]
        firing += [({"rule": rule, "subject": s, "severity": severity[rule]}, 1.0) for s in subjects]
    yield "gnomon_alert_firing", firing
    yield "gnomon_alert_evaluations_total", [({"rule": r}, float(n)) for r, n in service.n_evaluations.items()]
    yield "gnomon_alert_failures_total", [({"rule": r}, float(n)) for r, n in service.n_failures.items()]
    yield "gnomon_alert_failing_seconds", [({"subject": r}, s) for r, s in service.failing_seconds.items()]
    tries: _Samples = []
    for delivery in service.deliveries:
        for result, n in (("delivered", delivery.n_delivered), ("failed", delivery.n_failed)):
            tries.append(({"receiver": delivery.receiver.name, "result": result}, float(n)))
    yield "gnomon_alert_deliveries_total", tries
    yield "gnomon_alert_waiting", [({"receiver": d.receiver.name}, float(d.n_waiting)) for d in service.deliveries]


if __name__ == "__main__":
    sys.stdout.write(prometheus(shipped()))
