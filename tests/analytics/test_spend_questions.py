"""The questions about money, asked as a reader over rows whose answers were worked out by hand."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from analytics.accounts import bindings
from analytics.questions import SETTINGS, load
from analytics.store import Store
from gnomon.config.model import Account
from tests.analytics.server import ClickHouse

pytestmark = pytest.mark.clickhouse

NOW = datetime(2051, 5, 20, 12, 30, tzinfo=UTC)
"""Nobody else's rows are near."""
ACCOUNTS = (Account(id="pool", monthly_budget_usd="100"), Account(id="empty"), Account(id="old", cycle_day=20))
Row = Mapping[str, object]


def call(request_id: str, usd: str | None, **members: object) -> Row:
    """One call, a minute ago; members win."""
    return {
        "at": NOW - timedelta(minutes=1), "request_id": request_id, "attempt_id": "", "project": "main", "user": "ann",
        "network": "evm:77", "upstream": "f1", "vendor": "alchemy", "account": "pool", "tier": "fallback",
        "kind": "client", "cause": "primary_error", "method": "eth_call", "outcome": "result", "is_empty": False,
        "is_wasted": False, "units": None if usd is None else Decimal(26), "usd": None if usd is None else Decimal(usd),
        **members,
    }  # fmt: skip


def own(usd: str, minutes: int = 1, **members: object) -> Row:
    at = NOW - timedelta(minutes=minutes)
    name = f"i{minutes}{members}"
    return call(
        "", usd, attempt_id=name, user="", kind="head_poll", cause="", method="eth_blockNumber", at=at, **members
    )


CALLS = [
    call("r1", "0", upstream="p1", vendor="", account="", tier="primary", cause="", outcome="error", units=Decimal(0)),
    call("r1", "0.000013650001"),
    call("r2", "0.000013650001", cause="empty_at_head", user="bob"),
    call("r3", "0.000013650001", cause="timeout", outcome="error"),
    call("r4", "0.000013650001", kind="hedge", cause="hedge", outcome="cancelled", is_wasted=True),
    call("r5", None, vendor="nobody", upstream="f2", account="", cause="quota"),
    call("r1", "0.000100000000", tier="shadow", upstream="s1", kind="shadow", cause="", account=""),
    own("0.000005250000"),
    own("0.000005250000", minutes=31),
    call("r9", "7", at=NOW),  # outside
]
REQUESTS = [
    ("r1", "result", "f1", 2), ("r2", "verdict", "f1", 1), ("r3", "error", "", 1), ("r4", "result", "p1", 2),
    ("r5", "result", "f2", 1), ("r6", "invalid", "", 0), ("r7", "rejected", "", 0),
]  # fmt: skip


def spend(hours_ago: float, usd: str | None, n: int = 1, **members: object) -> Row:
    hour = NOW.replace(minute=0) - timedelta(hours=hours_ago)
    return {
        "hour": hour, "project": "main", "network": "evm:78", "vendor": "alchemy", "account": "pool", "upstream": "f1",
        "tier": "fallback", "kind": "client", "cause": "timeout", "method": "eth_call", "n": n, "n_wasted": 0,
        "n_unpriced": n if usd is None else 0,
        "usd": None if usd is None else Decimal(usd), "log_id": "l", "topic": "t", **members,
    }  # fmt: skip


SPEND = [
    spend(25, "1", 100), spend(1, "4", 200),  # twice the calls, and each twice as dear
    spend(25, "2", 10, cause="hedge"), spend(1, "1", 5, cause="hedge"),  # went down
    spend(1, "2.5", 50, method="eth_getLogs"),  # is new
    spend(25, "0", 9, upstream="free", vendor="llamarpc"), spend(1, "0", 99, upstream="free", vendor="llamarpc"),
    spend(9, "50", 1, cause="quota"),  # in neither hour
]  # fmt: skip


def insert(store: Store, table: str, rows: list[Row]) -> None:
    names = list(rows[0])
    store.insert(f"gnomon_core.{table}", names, [[row[name] for name in names] for row in rows])


@pytest.fixture(scope="module")
def reader(clickhouse: ClickHouse) -> Store:
    with clickhouse.store() as store:
        insert(store, "attempts", CALLS)
        insert(store, "spend_hourly", SPEND)
        names = ("at", "request_id", "network", "outcome", "upstream", "n_attempts")
        rows = [(NOW - timedelta(minutes=1), i, "evm:77", outcome, by, n) for i, outcome, by, n in REQUESTS]
        store.insert("gnomon_core.requests", names, rows)
    return clickhouse.reader()


def ask(reader: Store, name: str, **given: str) -> list[dict[str, Any]]:
    question = load(name)
    known = {p.name for p in question.parameters}
    values = {"from": (NOW - timedelta(hours=1)).isoformat(), "to": NOW.isoformat(), "network": "evm:77", **given}
    bound = question.bind({k: v for k, v in values.items() if k in known}, NOW, bindings(ACCOUNTS, NOW))
    result = reader.query(question.sql, bound, SETTINGS)
    return [dict(zip(result.names, row, strict=True)) for row in result.rows]


def test_a_million_requests_cost_all_that_was_paid(reader: Store) -> None:
    """By what clients asked: polls and shadows are in it, and told apart; what never was a request is not counted."""
    (row,) = ask(reader, "cost_per_million")

    assert row == {
        "network": "evm:77", "n_requests": 5, "usd": Decimal("0.000165100004"), "usd_per_million": 33.020001,
        "usd_clients_per_million": 10.920001, "usd_own_per_million": 2.1, "usd_shadow_per_million": 20.0,
        "usd_wasted_per_million": 2.73, "n_unpriced": 1,
    }  # fmt: skip


def test_what_a_fallback_saved_is_what_it_answered(reader: Store) -> None:
    """A lost race saved nothing; an unpriced answer is one all the same."""
    rows = {
        (r["cause"], r["otherwise"]): (r["n_saved"], r["n_lost"], r["usd"]) for r in ask(reader, "saved_by_fallbacks")
    }
    usd = Decimal("0.000013650001")

    assert rows == {
        ("primary_error", "error"): (1, 0, usd), ("empty_at_head", "empty"): (1, 0, usd),
        ("timeout", "error"): (0, 1, usd), ("hedge", "same"): (0, 0, usd), ("quota", "error"): (1, 0, None),
    }  # fmt: skip


def test_an_empty_answer_that_was_paid_for_saved_nothing(clickhouse: ClickHouse) -> None:
    """Null from the primary and null from the fallback; null instead of an error is more than nothing."""
    empty: Row = {"network": "evm:83", "outcome": "empty", "is_empty": True}
    calls = [call("e1", "1", cause="empty_at_head", **empty), call("e2", "1", cause="empty_at_head", network="evm:83"),
             call("e3", "1", cause="primary_error", **empty)]  # fmt: skip
    with clickhouse.store() as store:
        insert(store, "attempts", calls)
        names = ("at", "request_id", "network", "outcome", "upstream", "n_attempts")
        rows = [(NOW - timedelta(minutes=1), f"e{i}", "evm:83", "result", "f1", 2) for i in (1, 2, 3)]
        store.insert("gnomon_core.requests", names, rows)

    found = ask(clickhouse.reader(), "saved_by_fallbacks", network="evm:83")
    assert {row["cause"]: (row["n_saved"], row["usd"], row["usd_per_saved"]) for row in found} == {
        "empty_at_head": (1, Decimal(2), 2.0), "primary_error": (1, Decimal(1), 1.0),
    }  # fmt: skip


def test_users_pay_for_what_they_asked(reader: Store) -> None:
    """Own calls are nobody's; the shadow's share of a request is shown."""
    rows = {r["user"]: r for r in ask(reader, "spend_by_user")}

    assert {u: (r["n_requests"], r["usd"], r["usd_shadow"]) for u, r in rows.items()} == {
        "ann": (4, Decimal("0.000140950003"), Decimal("0.000100000000")), "bob": (1, Decimal("0.000013650001"), None),
    }  # fmt: skip


def test_a_request_with_several_methods_is_one(clickhouse: ClickHouse) -> None:
    """Its attempts may name another method than the request; it must not count twice."""
    with clickhouse.store() as store:
        insert(
            store, "attempts", [call("x1", "1", network="evm:79"), call("x1", "1", network="evm:79", method="other")]
        )

    (row,) = ask(clickhouse.reader(), "spend_by_user", network="evm:79")
    assert (row["n_requests"], row["n_paid"], row["n_calls"]) == (1, 1, 2)


def test_own_calls_have_a_rate_and_a_share(reader: Store) -> None:
    """Two polls, half an hour apart."""
    (row,) = ask(reader, "own_calls")

    assert (row["kind"], row["n"], row["n_per_hour"], row["usd"]) == ("head_poll", 2, 4.0, Decimal("0.000010500000"))
    assert (row["usd_per_month"], row["share_ratio"]) == (0.01512, 0.16129)


def test_unpriced_calls_are_named(reader: Store) -> None:
    """Own nodes have no price either, and are not meant."""
    rows = ask(reader, "unpriced")

    assert [(r["vendor"], r["n"], r["units"]) for r in rows] == [("nobody", 1, None)]


def test_a_rise_is_explained_in_order(reader: Store) -> None:
    """What explains most comes first, what went the other way last; the parts add up to the whole."""
    rows = ask(reader, "why_spend_rose", network="evm:78", before="2051-05-19T11:59", after="2051-05-20T11:00")

    assert [(r["cause"], r["method"], r["usd_change"]) for r in rows] == [
        ("timeout", "eth_call", Decimal(3)), ("timeout", "eth_getLogs", Decimal("2.5")),
        ("hedge", "eth_call", Decimal(-1)),
    ]  # fmt: skip
    assert [r["share_ratio"] for r in rows] == [0.666667, 0.555556, -0.222222]
    assert [r["running_ratio"] for r in rows] == [0.666667, 1.222222, 1.0]
    assert [(r["usd_by_calls"], r["usd_by_price"]) for r in rows] == [(1.0, 2.0), (2.5, 0.0), (-1.0, 0.0)]


def test_a_fall_is_explained_too(reader: Store) -> None:
    """With the hours exchanged, what fell most comes first."""
    rows = ask(reader, "why_spend_rose", network="evm:78", before="2051-05-20T11:00", after="2051-05-19T11:00")

    assert [(r["cause"], r["usd_change"]) for r in rows] == [
        ("timeout", Decimal(-3)), ("timeout", Decimal("-2.5")), ("hedge", Decimal(1)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("spend_by_method", [("eth_call", Decimal("57.5")), ("eth_getLogs", Decimal("2.5"))]),
        ("spend_by_upstream", [("f1", Decimal("60.5")), ("free", Decimal(0))]),
    ],
)
def test_sums_are_exact(reader: Store, name: str, expected: list[tuple[str, Decimal]]) -> None:
    """Over whole hours; what costs nothing is zero and not unknown."""
    rows = ask(reader, name, network="evm:78", **{"from": (NOW - timedelta(hours=30)).isoformat()})
    key = name.removeprefix("spend_by_")
    found: dict[str, Decimal] = {}
    for row in rows:
        found[row[key]] = found.get(row[key], Decimal(0)) + row["usd"]

    assert sorted(found.items()) == sorted(
        expected if key == "upstream" else [("eth_call", Decimal(58)), ("eth_getLogs", Decimal("2.5"))]
    )


def test_hours_come_in_order(reader: Store) -> None:
    """Those without a call are left out."""
    rows = ask(reader, "spend_over_time", network="evm:78", **{"from": (NOW - timedelta(hours=30)).isoformat()})

    assert [(f"{r['hour']:%d %H}", r["usd"]) for r in rows] == [
        ("19 11", Decimal(3)), ("20 03", Decimal(50)), ("20 11", Decimal("7.5")),
    ]  # fmt: skip


def test_a_budget_is_one_pool_with_a_forecast(clickhouse: ClickHouse) -> None:
    """All upstreams and networks of an account; the interval is that of days that differ."""
    daily = [4.0, 2.0, 6.0, 4.0]
    rows = [spend(24 * d + 24, str(usd), account="pool2", network=f"evm:{d}", upstream=f"u{d}")
            for d, usd in enumerate(daily)]  # fmt: skip
    with clickhouse.store() as store:
        insert(store, "spend_hourly", [*rows, spend(24, None, 7, account="pool2", network="evm:80")])
    question = load("budgets")
    known = (Account(id="pool2", monthly_budget_usd="50"), Account(id="empty"))
    result = clickhouse.reader().query(question.sql, question.bind({}, NOW, bindings(known, NOW)), SETTINGS)
    pool, empty = (dict(zip(result.names, row, strict=True)) for row in result.rows)
    days_left = (datetime(2051, 6, 1, tzinfo=UTC) - NOW) / timedelta(days=1)
    band = 1.638 * (8 / 3) ** 0.5 * (days_left * (1 + days_left / 4)) ** 0.5

    assert (pool["spent"], pool["spent_ratio"], pool["n_unpriced"], pool["n_days"]) == (Decimal(16), 0.32, 7, 4)
    assert pool["forecast"] == pytest.approx(16 + 4 * days_left, abs=1e-5)
    assert pool["forecast_low"] == pytest.approx(max(16, 16 + 4 * days_left - band), abs=1e-5)
    assert pool["forecast_high"] == pytest.approx(16 + 4 * days_left + band, abs=1e-5)
    assert pool["burn_24h"] == pytest.approx(4 / 24.5 / (50 / 744), abs=1e-4)
    assert pool["empty_at"] - NOW == pytest.approx(timedelta(days=34 / 4), abs=timedelta(seconds=1))
    assert (empty["account"], empty["spent"], empty["budget"], empty["forecast"]) == ("empty", 0, None, 0)


def test_the_first_day_is_no_whole_one(clickhouse: ClickHouse) -> None:
    """The pace of the hours there are, not a day of so little; later whole days only, without the rest of the first."""
    days_left = (datetime(2051, 6, 1, tzinfo=UTC) - NOW) / timedelta(days=1)
    rows = [spend(hours, "1", account="young", network="evm:81") for hours in (2, 3)]
    rows += [spend(hours, "1", account="older", network="evm:81") for hours in range(2, 50)]
    with clickhouse.store() as store:
        insert(store, "spend_hourly", rows)
        insert(store, "attempts", [call("fresh1", "0.5", account="fresh", network="evm:81")])
    question = load("budgets")
    known = [Account(id=name, monthly_budget_usd="100") for name in ("young", "older", "fresh")]
    result = clickhouse.reader().query(question.sql, question.bind({}, NOW, bindings(known, NOW)), SETTINGS)
    found = {row[0]: dict(zip(result.names, row, strict=True)) for row in result.rows}
    pace = {"young": 2 / 3.5 * 24, "older": (23 + 24) / 2, "fresh": 0.5 * 24}

    assert {name: row["n_days"] for name, row in found.items()} == {"young": 0, "older": 2, "fresh": 0}
    for name, row in found.items():
        assert row["day_usd"] == pytest.approx(pace[name], abs=1e-6)
        assert row["forecast"] == pytest.approx(float(row["spent"]) + pace[name] * days_left, abs=1e-4)
        assert (row["forecast_low"], row["forecast_high"]) == (None, None)


def test_a_budget_that_is_gone_says_so(clickhouse: ClickHouse) -> None:
    """Also where nothing was spent for weeks; one of nothing that nothing was spent of is not gone."""
    with clickhouse.store() as store:
        insert(store, "spend_hourly", [spend(19 * 24, "7", account="gone", network="evm:81")])
    question = load("budgets")
    known = [Account(id="gone", monthly_budget_usd="7"), Account(id="unused", monthly_budget_usd="0")]
    result = clickhouse.reader().query(question.sql, question.bind({}, NOW, bindings(known, NOW)), SETTINGS)
    found = {row[0]: dict(zip(result.names, row, strict=True)) for row in result.rows}

    assert (found["gone"]["spent"], found["gone"]["empty_at"]) == (Decimal(7), NOW)
    assert found["unused"]["empty_at"] is None
    assert dict(zip(result.names, result.types, strict=True))["empty_at"] == "Nullable(DateTime64(3, 'UTC'))"
