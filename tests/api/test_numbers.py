"""Each number that the API gives is the one that the same SQL gives."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from analytics import accounts
from analytics.questions import SETTINGS, load
from analytics.store import Store
from api import values
from api.app import document
from gnomon.config.model import Account
from tests.api.calling import Api
from tests.api.world import DAY, N_PAIRS, NOW
from tests.ingest.engine_process import EngineProcess
from tests.ingest.events import AT

pytestmark = pytest.mark.clickhouse

ACCOUNTS = [Account(id="acme", monthly_budget_usd="100")]
WHY = {"before": "2026-09-21T13:00:00Z", "after": "2026-09-21T14:00:00Z"}


def questions() -> dict[str, str]:
    """Return path → question of every route that answers one."""
    found = {}
    for path, operations in document()["paths"].items():
        text = operations.get("get", {}).get("description", "")
        if "The same as `gnomon query " in text:
            found[path] = text.rpartition("gnomon query ")[2].partition("`")[0].split()[0]
    return found


def test_each_subject_has_its_routes() -> None:
    """The test below would prove nothing of none."""
    assert {"/v1/spend", "/v1/budgets", "/v1/alerts", "/v1/silences", "/v1/comparisons", "/v1/findings"} <= set(
        questions()
    )


@pytest.mark.parametrize("path", questions())
def test_a_route_says_what_its_question_says(api: Api, filled: EngineProcess, path: str) -> None:
    """Row for row and digit for digit, over a store that has rows for it."""
    question = load(questions()[path])
    names = {parameter.name for parameter in question.parameters}
    must = {f"{p.name}_": MUST[p.name] for p in question.parameters if p.default is None}
    given = {k: v for k, v in {**DAY, **WHY, **must, "limit": "1000"}.items() if k.rstrip("_") in names}
    answer = api.get(path, **given)
    known = {k.rstrip("_"): v for k, v in given.items()}
    bound = question.bind(known, NOW, accounts.bindings(ACCOUNTS, NOW if "to" in known else datetime.now(UTC)))
    with Store.connect(filled.url) as store:
        result = store.query(question.sql, bound, SETTINGS)

    assert answer.status == 200, answer.body
    assert still(answer.json()["items"]) == still(values.rows(result.names, result.types, result.rows))
    assert answer.json()["next_cursor"] is None
    assert result.rows or path in EMPTY


def still(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without what grows older while one looks."""
    return [{name: value for name, value in row.items() if name != "age_seconds"} for row in rows]


MUST = {
    "network": "evm:31337", "method": "eth_getBlockByNumber", "shadow": "s1", "generic_path": "$.result.a",
    "class": "value", "id": "r6", "upstream": "p1", "at": datetime.fromtimestamp(AT / 10**9, UTC).isoformat(),
}  # fmt: skip
"""For parameters that have no default."""
EMPTY = {
    "/v1/silences", "/v1/spend/why_spend_rose", "/v1/divergence/others", "/v1/reconciliation/gaps",
    "/v1/questions/gauges_now", "/v1/questions/head_delays",
}  # fmt: skip
"""Questions that the world has no rows for."""


@pytest.mark.parametrize(
    ("path", "table"),
    [
        ("/v1/comparisons", "comparisons"),
        ("/v1/findings", "findings"),
        ("/v1/alerts", "alerts"),
        ("/v1/requests", "requests"),
        ("/v1/attempts", "attempts"),
        ("/v1/heads/changes", "heads"),
    ],
)
@pytest.mark.parametrize("limit", [1000, 13])
def test_pages_together_are_the_whole(api: Api, filled: EngineProcess, path: str, table: str, limit: int) -> None:
    """As many as a plain count says, none twice, in order; four pairs share each instant."""
    items: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = api.get(path, **DAY, limit=limit, **cursor).json()
        items += page["items"]
        if page["next_cursor"] is None:
            break
        assert len(page["items"]) == limit
        cursor = {"cursor": page["next_cursor"]}
    with Store.connect(filled.url) as store:
        ((n,),) = store.rows(f"SELECT count() FROM gnomon.{table}")

    assert len(items) == n > 5
    assert len({tuple(map(str, item.values())) for item in items}) == n
    assert [item["at"] for item in items] == sorted((item["at"] for item in items), reverse=True)


@pytest.mark.parametrize(("step", "seconds"), [(1, 1.0), (60, None)])
def test_the_time_between_blocks_is_measured_where_the_chain_is_not_known(
    api: Api, step: int, seconds: float | None
) -> None:
    """Twenty blocks a second apart; within one step nothing can be measured, and nothing is made up."""
    start = datetime.fromtimestamp(AT / 10**9, UTC)
    ends = {"from_": start.isoformat(), "to": start.replace(second=start.second + 20).isoformat()}
    items = api.get("/v1/heads/lag_in_steps", step=step, **ends).json()["items"]

    assert {item["block_seconds"] for item in items} == {seconds}


def test_spend_adds_up(api: Api, filled: EngineProcess) -> None:
    """The parts of each view of the money are the whole, to the last decimal."""
    with Store.connect(filled.url) as store:
        ((usd, n),) = store.rows("SELECT sum(usd), count() FROM gnomon.attempts WHERE vendor != ''")
    sums = {}
    for path in ("/v1/spend", "/v1/spend/by_method", "/v1/spend/over_time"):
        items = api.get(path, **DAY).json()["items"]
        sums[path] = (sum(Decimal(i["usd"]) for i in items if i["usd"] is not None), sum(i["n"] for i in items))

    assert sums == dict.fromkeys(sums, (usd, n))
    assert usd > 0


@pytest.mark.parametrize(
    ("filters", "where"),
    [
        ({"outcome": "mismatch"}, "outcome = 'mismatch'"),
        ({"method": "eth_call", "outcome": "identical"}, "method = 'eth_call' AND outcome = 'identical'"),
        ({"class": "value"}, "class = 'value'"),
        ({"shadow_upstream": "s1"}, "shadow_upstream = 's1'"),
        ({"shadow_upstream": "nobody"}, "0"),
        ({"request_id": "r6"}, "request_id = 'r6'"),
        ({"network": "evm:31337", "finality": "finalized"}, "finality = 'finalized'"),
    ],
)
def test_filters_are_those_of_sql(api: Api, filled: EngineProcess, filters: dict[str, str], where: str) -> None:
    """Each by itself and together."""
    items = api.get("/v1/comparisons", **DAY, limit=1000, **{f"{k}_": v for k, v in filters.items()}).json()["items"]
    with Store.connect(filled.url) as store:
        rows = store.rows(f"SELECT request_id FROM gnomon.comparisons WHERE {where}")

    assert sorted(item["request_id"] for item in items) == sorted(row[0] for row in rows)
    assert len(items) < N_PAIRS or where == "shadow_upstream = 's1'"
