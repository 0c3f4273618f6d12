"""
Each default rule on rows made for it: it fires on what it is about, and stays silent just short of it.

Every case has a month of its own, so that no case sees another's rows; the statements run as a reader's, in ClickHouse.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from analytics.alerting.asking import Asker, dry_run
from analytics.alerting.rules import Rule, shipped
from analytics.questions import load
from analytics.store import Store
from gnomon.config.model import Account, ClickHouseSettings
from tests.analytics.server import ClickHouse

pytestmark = pytest.mark.clickhouse

RULES = {rule.name: rule for rule in shipped()}
FIRST_DAY = datetime(2032, 3, 10, 12, 30, tzinfo=UTC)
"""Far from other tests' rows, and never older than the retention."""
ACCOUNTS = (
    Account(id="acme", monthly_budget_usd="100"),
    Account(id="nil", monthly_budget_usd="0"),
    Account(id="mid", monthly_budget_usd="100", cycle_day=15),
    Account(id="free"),
)
Row = Mapping[str, object]
Tables = dict[str, list[Row]]


def at(seconds: float) -> dict[str, object]:
    """An offset from the instant that the rule is asked for; put in place by the test."""
    return {"at": seconds}


def calls(n: int, *, seconds: float = -60, usd: str | None = "0.01", **members: object) -> list[Row]:
    """Paid calls of a fallback, one a request."""
    row = {"network": "evm:1", "upstream": "f1", "vendor": "alchemy", "account": "acme", "tier": "fallback",
           "kind": "client", "cause": "primary_error", "method": "eth_call", "outcome": "result", "units": 1,
           "usd": None if usd is None else Decimal(usd)}  # fmt: skip
    return [{**at(seconds), **row, "request_id": f"r{members}{i}", **members} for i in range(n)]


def own(n: int, seconds: float = -60) -> list[Row]:
    """Calls that no client asked for."""
    return [row for i in range(n) for row in calls(1, seconds=seconds, request_id="", attempt_id=f"i{i}")]


def spend(*hours_and_usd: tuple[float, str], account: str = "acme", **members: object) -> list[Row]:
    """Rows of spend_hourly, so many hours before the hour of now."""
    row = {"network": "evm:1", "vendor": "alchemy", "account": account, "upstream": "f1", "tier": "fallback",
           "kind": "client", "method": "eth_call", "n": 1, "log_id": "l", "topic": "t"}  # fmt: skip
    return [{"hour": -hours, **row, "usd": Decimal(usd), **members} for hours, usd in hours_and_usd]


def pairs(n: int, outcome: str, class_: str = "none", finality: str = "finalized", seconds: float = -120) -> Row:
    return {"minute": seconds, "network": "evm:1", "method": "eth_call", "shadow_upstream": "s1", "outcome": outcome,
            "class": class_, "finality": finality, "n": n, "log_id": "l", "topic": "t"}  # fmt: skip


def opened(n: int, seconds: float = -60, to_state: str = "open") -> list[Row]:
    row = {"network": "evm:1", "upstream": "p1", "from_state": "closed", "to_state": to_state, "reason": "timeout"}
    return [{**at(seconds - i), **row} for i in range(n)]


def heads(**number_by_upstream: int) -> list[Row]:
    return [
        {**at(-1800), "network": "evm:1", "upstream": upstream, "axis": "latest", "number": number, "source": "poll"}
        for upstream, number in number_by_upstream.items()
    ]


def decisions(n: int, decision: str) -> list[Row]:
    return [{**at(-60), "network": "evm:1", "upstream": "s1", "method": "m", "decision": decision}] * n


def gauges(name: str, *values: float, subject: str = "0", step: float = 10) -> list[Row]:
    """Samples up to now, `step` seconds apart."""
    n = len(values)
    return [{**at(-step * (n - i)), "name": name, "subject": subject, "value": v} for i, v in enumerate(values)]


DAYS = range(1, 9)
KAFKA_AWAY = gauges("shipper_up", 0, 0, 0, 0) + gauges("shipper_lag_events", 10, 20, 30, 40)
SLOW = gauges("log_written_events", *range(1000, 17_000, 1000)) + gauges("shipper_lag_events", *range(0, 14_400, 900))
QUICK = gauges("log_written_events", *range(0, 17_000, 1000)) + gauges("shipper_lag_events", *[500] * 17)
LOG = gauges("log_written_events", 50, 60, 70, 80) + gauges("log_consumed_events", 40, 40, 40, 40)

FIRES: dict[str, tuple[Tables, str]] = {
    "FallbackSpend": ({"attempts": calls(501)}, "acme"),
    "BudgetBurn": ({"attempts": calls(100, usd="0.03", seconds=-30)}, "acme"),
    "BudgetSpent": ({"spend_hourly": spend((3, "99.5")), "attempts": calls(51)}, "acme"),
    "BudgetNearlySpent": ({"spend_hourly": spend((3, "60"), (200, "20.01"))}, "acme"),
    "BudgetForecast": ({"spend_hourly": spend(*((24 * d - 12, "5") for d in DAYS))}, "acme"),
    "PaidShare": (
        {"attempts": calls(21, seconds=-300) + calls(79, seconds=-300, tier="primary", usd="0", vendor="")}, "evm:1",
    ),
    "PaidNulls": ({"attempts": calls(15) + calls(5, is_empty=True, outcome="empty")}, "evm:1/f1"),
    "Unpriced": ({"attempts": calls(1, usd=None, vendor="tenderly")}, "tenderly"),
    "OwnCallsSpend": ({"attempts": calls(9, seconds=-900) + own(10, seconds=-900)}, "acme"),
    "SpendAnomaly": ({"spend_hourly": spend((1, "3.5"), *((24 * d + 1, "1") for d in (1, 2, 3)))}, "acme"),
    "FinalMismatch": ({"divergence_minutely": [pairs(998, "identical"), pairs(2, "mismatch", "value")]}, "evm:1/s1"),
    "EmptyVsData": ({"divergence_minutely": [pairs(1, "mismatch", "empty_vs_data")]}, "evm:1/s1/eth_call"),
    "BreakerFlapping": ({"breaker_transitions": opened(4)}, "evm:1/p1"),
    "HeadLag": ({"heads": heads(p1=106, p2=100, p3=106)}, "evm:1/p2"),
    "QuotaErrors": ({"attempts": calls(1, outcome="error", error_class="quota")}, "evm:1/f1"),
    "ShadowsSilent": ({"shadow_decisions": decisions(100, "shed")}, "evm:1/s1"),
    "EventsNotStored": ({"gauges": LOG}, "0"),
    "LogFilling": ({"gauges": gauges("log_unread_ratio", 0.4, 0.51)}, "0"),
    "ShipperStalled": ({"gauges": KAFKA_AWAY}, "0"),
    "ShipperBehind": ({"gauges": SLOW}, "0"),
    "EventsDropped": ({"gauges": gauges("log_dropped_events", 7, 7, 9)}, "0"),
    "ClockSkew": ({"gauges": gauges("clock_skew_seconds", *[-3.0] * 12, subject="clickhouse")}, "clickhouse"),
    "AlertsBlind": ({"gauges": gauges("rule_failing_seconds", 61, subject="HeadLag")}, "HeadLag"),
}  # fmt: skip
"""Rule → rows that it is about, and the one subject that fires."""

SILENT: dict[str, list[Tables]] = {
    "FallbackSpend": [
        {"attempts": calls(500)},  # the threshold itself
        {"attempts": calls(1000, tier="primary")},
        {"attempts": calls(1000, seconds=-600.001) + calls(1000, seconds=0)},  # before the window, after it
        {"attempts": calls(1000, usd=None)},
    ],
    "BudgetBurn": [
        {"attempts": calls(100, usd="0.03", seconds=-1800)},  # a burst that is over
        {"attempts": calls(100, usd="0.0001", seconds=-30)},
        {"attempts": calls(100, usd="9", seconds=-30, account="free")},  # no budget
    ],
    "BudgetSpent": [
        {"spend_hourly": spend((3, "99")), "attempts": calls(100)},  # all of it, to the cent
        {"spend_hourly": spend((24 * 12, "500"))},  # last month
        {"spend_hourly": spend((3, "500"), account="free") + spend((3, "500"), account="stranger")},
    ],
    "BudgetNearlySpent": [{"spend_hourly": spend((3, "80"))}],
    "BudgetForecast": [
        {"spend_hourly": spend(*((24 * d - 12, "3") for d in DAYS))},
        {"spend_hourly": spend((12, "50"))},  # a day says nothing of the next
        {"spend_hourly": spend(*((24 * d - 12, "0.5" if d % 2 else "7") for d in DAYS))},  # days differ too much
    ],
    "PaidShare": [
        {"attempts": calls(20) + calls(80, tier="primary", usd="0", vendor="")},
        {"attempts": calls(99)},  # too few to say
        {"attempts": calls(100, usd="0")},  # a fallback that costs nothing
        {"attempts": calls(100, kind="shadow", tier="shadow")},
    ],
    "PaidNulls": [
        {"attempts": calls(16) + calls(4, is_empty=True, outcome="empty")},
        {"attempts": calls(19, is_empty=True, outcome="empty")},
        {"attempts": calls(50, is_empty=True, usd="0")},
    ],
    "Unpriced": [{"attempts": calls(9) + calls(9, usd="0", vendor="llamarpc") + calls(9, usd=None, vendor="")}],
    "OwnCallsSpend": [
        {"attempts": calls(10) + own(10)},
        {"attempts": calls(1, usd="0.001", request_id="", attempt_id="x")},
    ],
    "SpendAnomaly": [
        {"spend_hourly": spend((1, "3"), *((24 * d + 1, "1") for d in (1, 2, 3)))},
        {"spend_hourly": spend((1, "9"), (25, "1"), (49, "1"))},  # two days are no habit
        {"spend_hourly": spend((1, "0.9"), *((24 * d + 1, "0.01") for d in (1, 2, 3)))},
        {
            "spend_hourly": spend(
                (1, "3.5"), *((24 * d + 1, "3") for d in (1, 2, 3)), *((24 * d + 2, "0.1") for d in (1, 2))
            )
        },
    ],
    "FinalMismatch": [
        {"divergence_minutely": [pairs(999, "identical"), pairs(1, "mismatch", "value")]},
        {"divergence_minutely": [pairs(99, "mismatch", "value")]},
        {"divergence_minutely": [pairs(900, "identical"), pairs(900, "mismatch", "value", "unfinalized")]},
        {"divergence_minutely": [pairs(900, "identical"), pairs(900, "tolerated", "hex_case"), pairs(9, "error")]},
    ],
    "EmptyVsData": [
        {
            "divergence_minutely": [
                pairs(9, "mismatch", "empty_vs_data", "realtime"),
                pairs(9, "mismatch", "value"),
                pairs(9, "tolerated", "empty_vs_data"),
            ]
        },
    ],
    "BreakerFlapping": [{"breaker_transitions": opened(3) + opened(9, to_state="half_open") + opened(9, -601)}],
    "HeadLag": [
        {"heads": heads(p1=105, p2=100)},
        {"heads": heads(p1=100)},  # alone, there is no lag
        {"heads": heads(p1=900, p2=100, p3=100)},  # a head alone far above all others is not believed
    ],
    "QuotaErrors": [{"attempts": calls(9, outcome="error", error_class="rate_limited")}],
    "ShadowsSilent": [
        {"shadow_decisions": decisions(200, "shed") + decisions(1, "mirrored")},
        {"shadow_decisions": decisions(99, "shed") + decisions(500, "sampled_out") + decisions(500, "write")},
    ],
    "EventsNotStored": [
        {"gauges": gauges("log_written_events", 50, 60, 70) + gauges("log_consumed_events", 40, 41, 41)},  # it goes on
        {"gauges": gauges("log_written_events", 50, 50, 50) + gauges("log_consumed_events", 50, 50, 50)},  # all is read
        {"gauges": gauges("log_written_events", 50, 60) + gauges("log_consumed_events", 40, 40)},  # too few samples
    ],
    "LogFilling": [{"gauges": gauges("log_unread_ratio", 0.9, 0.5)}],
    "ShipperStalled": [
        {"gauges": gauges("shipper_up", 0, 0, 0, 1) + gauges("shipper_lag_events", 10, 20, 30, 40)},  # it goes on
        {"gauges": gauges("shipper_up", 0, 0, 0) + gauges("shipper_lag_events", 0, 0, 0)},  # nothing waits
        {"gauges": gauges("shipper_up", 0, 0) + gauges("shipper_lag_events", 5, 9)},  # too few samples
    ],
    "ShipperBehind": [
        {"gauges": QUICK},
        {"gauges": gauges("shipper_lag_events", *[0] * 17) + gauges("log_written_events", *[9] * 17)},  # nothing comes
        {"gauges": gauges("log_written_events", *range(0, 17_000, 1000))},  # no shipper here
    ],
    "EventsDropped": [{"gauges": gauges("log_dropped_events", 7, 7)}],  # lost long ago
    "ClockSkew": [
        {"gauges": gauges("clock_skew_seconds", *[2.0] * 12, subject="clickhouse")},
        {"attempts": calls(1, seconds=-5)},
    ],
    "AlertsBlind": [{"gauges": gauges("rule_failing_seconds", 60, subject="HeadLag")}],
}
"""Rule → worlds in which it stays silent."""

CASES = [(name, tables, subject) for name, (tables, subject) in FIRES.items()]
QUIET = [(name, tables) for name, worlds in SILENT.items() for tables in worlds]


@dataclass
class Place:
    """One engine, and months that nobody has used."""

    store: Store
    asker: Asker
    n_used: int = 0

    def fill(self, tables: Tables) -> datetime:
        """Store rows, their times counted from an instant of a month of its own; return the instant."""
        number, self.n_used = self.n_used, self.n_used + 1
        # Two months apart: rules about budgets look back over 32 days. A month of 31 days each.
        now = FIRST_DAY.replace(year=FIRST_DAY.year + number // 4, month=(1, 3, 7, 10)[number % 4])
        for table, rows in tables.items():
            names = list(dict.fromkeys(name for row in rows for name in row))
            by_members: dict[tuple[str, ...], list[list[object]]] = {}
            for row in rows:
                moved = {**row, **self._times(row, now)}
                own = tuple(name for name in names if name in moved)
                by_members.setdefault(own, []).append([moved[name] for name in own])
            for own, values in by_members.items():
                self.store.insert(f"gnomon_core.{table}", own, values)
        return now

    def _times(self, row: Row, now: datetime) -> dict[str, object]:
        if "hour" in row:
            return {"hour": now.replace(minute=0) + timedelta(hours=float(str(row["hour"])))}
        name = "at" if "at" in row else "minute"
        return {name: now + timedelta(seconds=float(str(row[name])))}

    def firing(self, rule: Rule, now: datetime) -> set[str]:
        held, _ = dry_run(rule, self.asker, now)
        return {subject for subject, one in held.items() if one.phase == "firing"}


@pytest.fixture(scope="module")
def place(clickhouse: ClickHouse) -> Place:
    return Place(clickhouse.store(), Asker(ClickHouseSettings(url=clickhouse.url), ACCOUNTS))


def test_every_default_rule_is_shown() -> None:
    """To fire and to stay silent."""
    assert set(FIRES) == set(SILENT) == set(RULES)


@pytest.mark.parametrize(("name", "tables", "subject"), CASES, ids=[case[0] for case in CASES])
def test_it_fires(place: Place, name: str, tables: Tables, subject: str) -> None:
    """On what it is about, with the subject that is meant and no other; its line has no gaps."""
    now = place.fill(tables)
    rule = RULES[name]
    held, rows = dry_run(rule, place.asker, now)

    assert {s for s, one in held.items() if one.phase == "firing"} == {subject}, rows
    labels = {*held[subject].labels, "subject", "value", "threshold", "window", "from", "to", "since", "rule"}
    assert set(re.findall(r"\{(\w+)\}", rule.summary + rule.more)) <= labels


@pytest.mark.parametrize(("name", "tables"), QUIET, ids=[f"{case[0]}-{i}" for i, case in enumerate(QUIET)])
def test_it_stays_silent(place: Place, name: str, tables: Tables) -> None:
    """Just short of it, and on what looks like it."""
    now = place.fill(tables)
    held, rows = dry_run(RULES[name], place.asker, now)

    assert [s for s, one in held.items() if one.phase == "firing"] == [], rows


def test_a_budget_of_nothing_is_above_it_at_once(place: Place) -> None:
    """And a month that begins on the 15th is counted from there: what lies before is not in it."""
    now = place.fill({"spend_hourly": spend((3, "0.000000000001"), account="nil") + spend((3, "99"), account="mid")})

    assert place.firing(RULES["BudgetSpent"], now) == {"nil"}
    later = now.replace(day=15, hour=12)
    assert place.firing(RULES["BudgetNearlySpent"], later) == {"nil"}
    assert place.firing(RULES["BudgetNearlySpent"], now) == {"nil", "mid"}


def test_an_hour_that_never_cost_anything_stands_out(place: Place) -> None:
    """Days without a call in that hour cost 0; an account is known since its first call, in whatever hour."""
    other_hours = [(24 * d + 5, "0.4") for d in (0, 1, 2, 3)]
    now = place.fill(
        {"spend_hourly": spend((1, "1.2"), *other_hours) + spend((1, "9"), *other_hours[:3], account="new")}
    )
    _, rows = dry_run(RULES["SpendAnomaly"], place.asker, now)

    assert place.firing(RULES["SpendAnomaly"], now) == {"acme"}
    assert {row.subject: (row.value, row.labels["usual_usd"]) for row in rows} == {
        "acme": (12.0, "0"),
        "new": (None, "0"),
    }


def test_what_is_usual_is_the_median_of_all_days(place: Place) -> None:
    """Of an even number the mean of the two in the middle."""
    now = place.fill({"spend_hourly": spend((1, "5"), *((24 * d + 1, str(d)) for d in (1, 2, 3)), (24 * 4 + 1, "9"))})
    (row,) = dry_run(RULES["SpendAnomaly"], place.asker, now)[1]

    assert (row.value, row.labels["usual_usd"]) == (2.0, "2.5")


def test_head_lag_must_last(place: Place) -> None:
    """A minute: an upstream that is a little late is no news."""
    rows = heads(p1=100, p2=100) + [{**row, "at": -50, "number": 110} for row in heads(p1=1)]
    now = place.fill({"heads": rows})

    assert place.firing(RULES["HeadLag"], now) == set()
    assert place.firing(RULES["HeadLag"], now + timedelta(seconds=11)) == {"evm:1/p2"}


def test_a_proxy_whose_clock_is_ahead_is_told(place: Place) -> None:
    """Its rows come from the future."""
    now = place.fill({"attempts": calls(1, seconds=3) + calls(1, seconds=63)})

    assert place.firing(RULES["ClockSkew"], now) == {"proxy"}


@pytest.mark.parametrize("name", list(RULES))
def test_the_command_of_a_rule_is_one(name: str) -> None:
    """It names a question that there is, with parameters that it has."""
    command = RULES[name].more.split()
    if command[1] == "alerts":
        assert command[:3] == ["gnomon", "alerts", "test"]
        return
    assert command[:2] == ["gnomon", "query"]
    question = load(command[2])
    given = {
        pair.partition("=")[0] for flag, pair in zip(command[3::2], command[4::2], strict=True) if flag == "--param"
    }

    assert given <= {parameter.name for parameter in question.parameters}
