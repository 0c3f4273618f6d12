"""Prometheus and Grafana as provisioned: rules, scrapes and data sources fit what the services show."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from analytics.alerting.export import prometheus
from analytics.alerting.rules import shipped
from analytics.dashboards.panels import CLICKHOUSE, PROMETHEUS
from gnomon.cli.reference.metrics import by_name, names_in
from tests.deploy.tools import effective
from tests.services import ROOT

RULES = ROOT / "deploy" / "prometheus"
GRAFANA = ROOT / "deploy" / "grafana" / "provisioning"
OF_PROMETHEUS = {"up"}


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def rules() -> list[dict[str, Any]]:
    """Return every rule that Prometheus is given."""
    files = read(RULES / "prometheus.yml")["rule_files"]
    return [rule for file in files for group in read(RULES / file)["groups"] for rule in group["rules"]]


def test_the_exported_rules_are_those_in_force() -> None:
    """`make docs` writes what `gnomon alerts export` prints without a configuration."""
    assert (RULES / "gnomon.rules.yaml").read_text("utf-8") == prometheus(shipped())


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_asks_for_metrics_that_there_are(rule: dict[str, Any]) -> None:
    """Each is in the reference; each rule has a severity, a summary and what to do."""
    names = names_in(rule["expr"])

    assert names <= set(by_name())
    assert names or OF_PROMETHEUS & set(re.findall(r"\w+", rule["expr"]))
    assert rule["labels"]["severity"]
    assert {"summary", "runbook"} <= set(rule["annotations"])
    page = rule["annotations"]["runbook"].split("#")[0]
    assert (ROOT / page).is_file()


def test_every_rule_of_alerts_is_there_once() -> None:
    """None is missing, none has two meanings."""
    names = [rule["alert"] for rule in rules()]

    assert len(names) == len(set(names))
    assert {rule.name for rule in shipped()} <= set(names)


def test_every_service_with_metrics_is_scraped() -> None:
    """Each has a job of its name, and the rule about services names all."""
    jobs = {job["job_name"] for job in read(RULES / "prometheus.yml")["scrape_configs"]}
    (down,) = [rule for rule in rules() if rule["alert"] == "ServiceDown"]

    assert jobs == {"proxy", "ingest", "alerts", "api"}
    assert all(job in down["expr"] for job in jobs)


def test_the_dashboards_find_their_sources() -> None:
    """The ids and types that panels name are those that are provisioned; no password stands in the file."""
    sources = {source["uid"]: source for source in read(GRAFANA / "datasources" / "gnomon.yaml")["datasources"]}

    assert {(uid, source["type"]) for uid, source in sources.items()} == {
        (one["uid"], one["type"]) for one in (CLICKHOUSE, PROMETHEUS)
    }
    assert sources["gnomon-clickhouse"]["secureJsonData"] == {"password": "${CLICKHOUSE_PASSWORD}"}
    assert int(sources["gnomon-clickhouse"]["jsonData"]["queryTimeout"]) + 5 <= 30  # a reader's most


@pytest.fixture(scope="module")
def stack() -> dict[str, Any]:
    """All services with those of the profile, as Docker Compose reads them."""
    return effective("monitoring")


@pytest.mark.containers
def test_the_profile_adds_two_services(stack: dict[str, Any]) -> None:
    """Pinned, with limits, a health check, no capability, and no secret in an environment."""
    added = {name: stack["services"][name] for name in set(stack["services"]) - set(effective()["services"])}

    assert set(added) == {"prometheus", "grafana"}
    for name, service in added.items():
        assert re.fullmatch(r"[^:]+:v?\d+\.\d+\.\d+", service["image"]), name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}, name
        assert service["healthcheck"], name
    assert not [key for key in added["grafana"]["environment"] if "PASSWORD" in key and not key.endswith("__FILE")]
    assert [(p["host_ip"], p["target"]) for p in added["grafana"]["ports"]] == [("127.0.0.1", 3000)]
    assert "ports" not in added["prometheus"]


@pytest.mark.containers
def test_what_is_scraped_is_where_services_listen(stack: dict[str, Any]) -> None:
    """Each target is a service of the stack at the port of its command or configuration, on a network of Prometheus."""
    services = stack["services"]
    ports = {"proxy": "4000", "api": "8080"}
    for name in ("ingest", "alerts"):
        command = services[name]["command"]
        ports[name] = command[command.index("--health-port") + 1]
    found = {}
    for job in read(RULES / "prometheus.yml")["scrape_configs"]:
        static = [target for one in job.get("static_configs", []) for target in one["targets"]]
        static += [f"{name}:{one['port']}" for one in job.get("dns_sd_configs", []) for name in one["names"]]
        (found[job["job_name"]],) = static

    assert found == {name: f"{name}:{port}" for name, port in ports.items()}
    assert all(set(services["prometheus"]["networks"]) & set(services[name]["networks"]) for name in ports)


@pytest.mark.containers
def test_the_data_sources_have_every_variable(stack: dict[str, Any]) -> None:
    """Those of the file are set by the compose file; the files are mounted where they are looked for."""
    text = (GRAFANA / "datasources" / "gnomon.yaml").read_text("utf-8")
    grafana = stack["services"]["grafana"]
    mounts = {volume["target"] for volume in grafana["volumes"]}

    assert set(re.findall(r"\$\{([A-Z_]+)\}", text)) <= set(grafana["environment"]) | {"CLICKHOUSE_PASSWORD"}
    assert "export CLICKHOUSE_PASSWORD" in grafana["entrypoint"][-1]
    assert read(GRAFANA / "dashboards" / "gnomon.yaml")["providers"][0]["options"]["path"] in mounts
    assert "/etc/grafana/provisioning" in mounts
