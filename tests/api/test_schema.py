"""The document: complete, with examples that fit it, and what a caller can rely on."""

from typing import Any

import jsonschema_rs
import pytest

from api.app import document
from api.problems import PROBLEMS

DOCUMENT = document()
OPERATIONS = [(path, method, op) for path, operations in DOCUMENT["paths"].items() for method, op in operations.items()]
IDS = [f"{method.upper()} {path}" for path, method, _ in OPERATIONS]


def contents(operation: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return status and content of each JSON answer, shared ones resolved."""
    found = []
    for status, response in operation["responses"].items():
        if "$ref" in response:
            response = DOCUMENT["components"]["responses"][response["$ref"].rpartition("/")[2]]
        for kind, content in response.get("content", {}).items():
            if "json" in kind:
                found.append((status, content))
    return found


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS, ids=IDS)
def test_an_example_fits_its_schema(path: str, method: str, operation: dict[str, Any]) -> None:
    """Each answer of `/v1` has one; nobody copies from an example that could not be."""
    for status, content in contents(operation):
        if path.startswith("/v1/"):
            assert "example" in content, (path, status)
        if "example" in content:
            schema = {**content["schema"], "components": DOCUMENT["components"]}
            jsonschema_rs.validator_for(schema).validate(content["example"])


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS, ids=IDS)
def test_an_operation_says_what_it_is_for(path: str, method: str, operation: dict[str, Any]) -> None:
    """A sentence, a tag, and a description of each parameter."""
    assert operation["summary"]
    assert operation["tags"]
    assert [p["name"] for p in operation.get("parameters", ()) if not p.get("description")] in ([], ["name"])


@pytest.mark.parametrize(("path", "method", "operation"), [o for o in OPERATIONS if o[0][:4] == "/v1/"])
def test_what_is_guarded_says_so(path: str, method: str, operation: dict[str, Any]) -> None:
    """With the refusals that it may answer."""
    assert operation["security"] == [{"token": []}]
    assert {"400", "401", "403", "429", "500", "503", "504"} <= set(operation["responses"])
    assert "422" in operation["responses"] or "requestBody" not in operation


def test_names_within_a_version_stay() -> None:
    """Members are added, never taken away: these were there first."""
    promised = {
        "/v1/comparisons": {"at", "request_id", "network", "method", "primary_upstream", "shadow_upstream", "outcome",
                            "class", "finality", "settled", "suspect", "block_number", "n_findings"},
        "/v1/findings": {"at", "request_id", "network", "method", "shadow_upstream", "generic_path", "class", "n_paths",
                         "path", "primary_value", "shadow_value"},
        "/v1/spend": {"network", "vendor", "account", "tier", "kind", "cause", "n", "n_wasted", "units", "usd"},
        "/v1/budgets": {"account", "budget", "spent", "spent_ratio", "burn_1h", "forecast", "forecast_low",
                        "forecast_high", "empty_at"},
        "/v1/requests": {"at", "request_id", "network", "method", "outcome", "upstream", "tier", "cause",
                         "n_attempts", "duration_us"},
        "/v1/attempts": {"at", "attempt_id", "request_id", "upstream", "tier", "kind", "cause", "outcome", "usd"},
        "/v1/divergence": {"finding", "network", "method", "shadow_upstream", "generic_path", "class", "n_pairs",
                           "n_judged", "first_at", "last_at"},
        "/v1/heads": {"network", "upstream", "axis", "number", "lag_blocks"},
        "/v1/reorgs": {"at", "network", "upstream", "number", "depth", "old_hash", "new_hash"},
        "/v1/breakers": {"network", "upstream", "state", "n_opened", "misses"},
        "/v1/breakers/changes": {"at", "network", "upstream", "from_state", "to_state", "reason", "counters"},
        "/v1/masks": {"project", "network", "shadow_upstream", "method", "masks", "tolerances", "mask_version"},
        "/v1/reconciliation": {"hour", "accepted", "shipped", "stored", "distinct_stored", "dead_lettered"},
        "/v1/upstreams": {"upstream", "project", "network", "tier", "vendor", "is_configured", "health", "spend",
                          "heads", "breaker", "divergence"},
        "/v1/alerts": {"at", "rule", "subject", "state", "value", "threshold", "delivered"},
        "/v1/alerts/firing": {"fired_at", "rule", "subject", "value", "threshold", "severity", "runbook",
                              "is_silenced"},
        "/v1/silences": {"silence_id", "rule", "subject", "starts_at", "ends_at", "comment", "author"},
    }  # fmt: skip
    for path, members in promised.items():
        schema = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert {"items", "next_cursor"} <= set(schema["properties"])
        assert members <= names_of(schema["properties"]["items"]["items"]), path


def names_of(schema: dict[str, Any]) -> set[str]:
    """Return the members that a schema names, in the parts that it is made of too."""
    if "$ref" in schema:
        return names_of(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    return set(schema.get("properties", ())).union(*map(names_of, schema.get("allOf", ())))


def test_each_problem_has_a_status_of_its_kind() -> None:
    """What is on the list can be answered."""
    assert all(problem.title and problem.meaning for problem in PROBLEMS.values())
