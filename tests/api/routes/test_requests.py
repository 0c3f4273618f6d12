"""One request as a trace: what the client got, each call, each shadow."""

from decimal import Decimal

import pytest

from analytics.store import Store
from tests.api.calling import Api
from tests.ingest.engine_process import EngineProcess

pytestmark = pytest.mark.clickhouse


def test_a_request_is_told_whole(api: Api) -> None:
    """The miss at the primary, the paid call with its cause and price, the mirrored call that never ended."""
    trace = api.get("/v1/requests/r1").json()
    (shadow,) = trace["shadows"]

    assert (trace["request"]["upstream"], trace["request"]["cause"], trace["request"]["user"]) == (
        "f1", "empty_at_head", "ann",
    )  # fmt: skip
    assert [(a["upstream"], a["outcome"], a["cause"], a["usd"]) for a in trace["attempts"]] == [
        ("p1", "empty", "", "0.000000000000"), ("f1", "result", "empty_at_head", "0.000013650000"),
    ]  # fmt: skip
    assert (shadow["upstream"], shadow["decision"], shadow["attempt"]["outcome"]) == ("s1", "mirrored", "timeout")
    assert (shadow["comparison"]["outcome"], shadow["findings"]) == ("missing", [])
    assert trace["totals"] == {
        "usd": "0.000013650000", "usd_shadow": "0.000000000000", "n_calls": 3, "n_unpriced": 0, "n_wasted": 0,
    }  # fmt: skip


def test_what_differs_stands_beside_the_verdict(api: Api) -> None:
    """In the order in which it was found."""
    (shadow,) = api.get("/v1/requests/r6").json()["shadows"]

    assert shadow["comparison"]["outcome"] == "mismatch"
    assert [finding["generic_path"] for finding in shadow["findings"]] == ["$.result.a", "$.result.b[*]"]


def test_an_unpriced_call_is_counted_and_not_zero(api: Api) -> None:
    """The primary timed out, and nobody knows what the other asks."""
    totals = api.get("/v1/requests/r5").json()["totals"]

    assert (totals["usd"], totals["n_unpriced"]) == ("0.000000000000", 1)


@pytest.mark.parametrize("number", range(1, 25))
def test_the_sum_is_that_of_sql(api: Api, filled: EngineProcess, number: int) -> None:
    """To the last place."""
    with Store.connect(filled.url) as store:
        ((usd, n),) = store.rows(
            "SELECT sumIf(usd, kind != 'shadow'), count() FROM gnomon.attempts WHERE request_id = {id:String}",
            {"id": f"r{number}"},
        )
    totals = api.get(f"/v1/requests/r{number}").json()["totals"]

    assert (Decimal(totals["usd"]), totals["n_calls"]) == (usd, n)


@pytest.mark.parametrize("path", ["/v1/requests/nope", "/v1/comparisons/nope", "/v1/requests/' OR 1"])
def test_a_request_that_is_not_stored_is_not_found(api: Api, path: str) -> None:
    """It may come yet, and says so."""
    answer = api.get(path)

    assert (answer.status, answer.problem) == (404, "not-found")


def test_a_pair_has_both_answers_and_what_differs(api: Api) -> None:
    """Where bodies are kept."""
    (pair,) = api.get("/v1/comparisons/r6").json()["items"]

    assert (pair["primary_body"], pair["shadow_body"]) == ('{"a":1,"b":[1,2,3]}', '{"a":2,"b":[1,9,8]}')
    assert [(f["generic_path"], f["n_paths"]) for f in pair["findings"]] == [("$.result.a", 1), ("$.result.b[*]", 2)]
