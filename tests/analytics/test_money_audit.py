"""
Every question about money over a filled store, beside plain arithmetic over its calls.

The calls come from the simulated proxy through the processors' own steps: hedges, retries, cancels, batches, polls,
probes, shadows, over 40 days, three chains and two accounts; one vendor has no book, one has none before a date in the
midst of an hour. What a question must say is worked out here in Python's decimals from the rows of `attempts`, without
SQL's help.
"""

import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from analytics.accounts import bindings, cycle
from analytics.questions import SETTINGS, load
from analytics.store import Store
from bench.billing import World
from gnomon.config.model import Account
from gnomon.cost.book import parse, shipped
from gnomon.cost.charge import Charger, PriceBooks
from gnomon.events import codec
from gnomon.events.contract import Attempt, PrimaryResponse
from ingest.batch import decode
from ingest.comparisons import Policies
from ingest.rows import Context, rows_of
from ingest.sink import Sink
from tests.ingest.engine_process import migrated_engine

pytestmark = [pytest.mark.clickhouse, pytest.mark.timeout(300)]

NOW = datetime(2026, 3, 9, 10, 37, 21, tzinfo=UTC)
DAYS = 40
PRICED_FROM = datetime(2026, 3, 8, 6, 20, tzinfo=UTC)
"""Before that Chainstack has no price."""
ACCOUNTS = (
    Account(id="pool", monthly_budget_usd="0.01"), Account(id="chain", monthly_budget_usd="0.5", cycle_day=9),
    Account(id="none"),
)  # fmt: skip
ACCOUNT_OF = {"alchemy": "pool", "infura": "pool", "chainstack": "chain"}
OWN_KINDS = ("probe", "head_poll", "chain_check", "subscription", "settle")
CLIENT_KINDS = ("client", "retry", "hedge")
EMPTY_CAUSES = ("empty_at_head", "beyond_head")
"""The client would have got an empty answer."""
FIRST_DAY = NOW - timedelta(days=DAYS, hours=-9)
"""A few hours after the first calls."""
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Call:
    """One row of `attempts`."""

    at: datetime
    request_id: str
    project: str
    user: str
    network: str
    upstream: str
    vendor: str
    account: str
    tier: str
    kind: str
    cause: str
    method: str
    outcome: str
    is_empty: bool
    is_cancelled: bool
    is_duplicate: bool
    is_wasted: bool
    is_estimate: bool
    units: Decimal | None
    usd: Decimal | None

    @property
    def is_paid(self) -> bool:
        return bool(self.vendor) and (self.usd is None or self.usd > 0)


@dataclass(frozen=True)
class Filled:
    reader: Store
    calls: list[Call]
    requests: list[tuple[datetime, str, str, str, str, int]]
    """at, id, network, outcome, upstream, n_attempts."""


def events() -> list[bytes]:
    """Return the events; more of them in the last days, and in some hours none."""
    chance = random.Random(11)
    made = []
    for event in World(11).events(9_000):
        back = chance.random() ** 2 * DAYS * 86_400
        at = NOW - timedelta(seconds=1 + back)
        if at.hour == 4:
            at += timedelta(hours=1)
        members: dict[str, Any] = {"at": int(at.timestamp() * 10**6) * 1000,
                                   "network": chance.choice(("evm:1", "evm:1", "evm:137", "evm:100"))}  # fmt: skip
        if isinstance(event, PrimaryResponse):
            if event.outcome == "error" and chance.random() < 0.2:
                members["outcome"] = "cancelled"
            members["user"] = chance.choice(("", "ann", "bob"))
            members["attempts"] = tuple(placed(attempt, chance) for attempt in event.attempts)
        elif hasattr(event, "attempt"):
            members["attempt"] = placed(event.attempt, chance)
        made.append(codec.encode(msgspec.structs.replace(event, **members)))
    return made


def placed(attempt: Attempt, chance: random.Random) -> Attempt:
    is_duplicate = attempt.tier == "fallback" and attempt.outcome in ("result", "empty") and chance.random() < 0.03
    account = ACCOUNT_OF.get(attempt.vendor, "")
    return msgspec.structs.replace(attempt, account=account, is_duplicate=is_duplicate)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    begin = PRICED_FROM.isoformat()
    book = f"{{vendor: chainstack, usd_per_million_units: 15, default_units: 1, valid_from: '{begin}'}}"
    charger = Charger(PriceBooks(shipped(), [parse(book, "chainstack.yaml")]))
    with migrated_engine(tmp_path_factory.mktemp("audit")) as process:
        sink = Sink(process.connect(), "ab" * 16, "log", 0)
        sink.take_over()
        records = events()
        for first in range(0, len(records), 1500):
            some = records[first : first + 1500]
            sink.store(rows_of(decode(first, some), Context(charger, Policies({})), 0).rows)
        sink.progress()
        with Store.connect(process.url, *process.credentials(), database="gnomon_core") as writer:
            names = ", ".join(Call.__dataclass_fields__)
            calls = [Call(*row) for row in writer.rows(f"SELECT {names} FROM gnomon_core.attempts")]
            requests = writer.rows(
                "SELECT at, request_id, network, outcome, upstream, n_attempts FROM gnomon_core.requests"
            )
        with Store.connect(process.url) as reader:
            yield Filled(reader, calls, requests)


def ask(filled: Filled, name: str, **given: str) -> Rows:
    question = load(name)
    end = question.moment("to", given, NOW) or NOW
    bound = question.bind(given, NOW, bindings(ACCOUNTS, end))
    result = filled.reader.query(question.sql, bound, SETTINGS)
    assert [column.name for column in question.columns] == list(result.names)
    return [dict(zip(result.names, row, strict=True)) for row in result.rows]


def text(at: datetime) -> str:
    return at.isoformat()


def total(amounts: Iterable[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if known else None


def ratio(part: Decimal | None, whole: Decimal | None, digits: int = 6) -> float | None:
    return None if part is None or not whole else round(float(part) / float(whole), digits)


def groups(calls: Iterable[Call], *names: str) -> dict[tuple[Any, ...], list[Call]]:
    found: dict[tuple[Any, ...], list[Call]] = defaultdict(list)
    for call in calls:
        found[tuple(getattr(call, name) for name in names)].append(call)
    return found


def by(rows: Rows, *names: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    found = {tuple(row[name] for name in names): row for row in rows}
    assert len(found) == len(rows), "two rows of one grain"
    return found


def hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def within(filled: Filled, begin: datetime, end: datetime, **members: str) -> list[Call]:
    return [c for c in filled.calls if begin <= c.at < end and all(getattr(c, k) == v for k, v in members.items())]


RANGES = [
    pytest.param(NOW - timedelta(days=1), NOW, "", id="a day"),
    pytest.param(NOW - timedelta(days=DAYS + 1), NOW, "", id="all of it"),
    pytest.param(datetime(2026, 2, 28, 23, 15, tzinfo=UTC), datetime(2026, 3, 1, 1, 45, tzinfo=UTC), "evm:1",
                 id="over the end of a month, one chain"),
    pytest.param(PRICED_FROM - timedelta(minutes=30), PRICED_FROM + timedelta(minutes=30), "",
                 id="where a price begins"),
]  # fmt: skip


def test_the_store_is_worth_asking(filled: Filled) -> None:
    """Every kind of money is in it."""
    assert len(filled.calls) > 8_000
    assert {c.kind for c in filled.calls} >= {"client", "hedge", "retry", "head_poll", "chain_check", "probe", "shadow"}
    assert {c.usd is None for c in filled.calls if c.vendor == "chainstack"} == {True, False}
    assert {c.usd for c in filled.calls if c.vendor == "acme"} == {None, Decimal(0)}, "unpriced, or never left"
    assert sum(c.is_wasted for c in filled.calls) > 50
    assert sum(c.is_duplicate for c in filled.calls) > 10


@pytest.mark.parametrize(("begin", "end", "network"), RANGES)
@pytest.mark.parametrize(
    ("name", "grain", "is_hourly"),
    [
        ("spend_by_cause", ("network", "vendor", "account", "tier", "kind", "cause"), True),
        ("spend_by_method", ("network", "vendor", "method"), True),
        ("spend_by_upstream", ("network", "upstream", "vendor", "account"), True),
        ("paid_groups", ("network", "method", "tier", "kind", "cause", "upstream"), False),
        ("spend_by_user", ("project", "user", "network"), False),
        ("waste", ("network", "vendor", "account", "upstream", "method"), False),
        ("wasted_by_cause", ("tier", "kind", "cause"), False),
        ("unpriced", ("network", "vendor", "account", "upstream", "method"), False),
        ("prices_in_effect", ("vendor", "account"), False),
    ],
)
def test_groups_add_up(
    filled: Filled, begin: datetime, end: datetime, network: str, name: str, grain: tuple[str, ...], is_hourly: bool
) -> None:
    """Calls, units and money of each group, to the last decimal; whole hours where the question says so."""
    more = {"limit": "100000"} if name == "paid_groups" else {}
    rows = ask(filled, name, **{"from": text(begin), "to": text(end), "network": network, **more})
    if is_hourly:
        begin, end = hour(begin), hour(end - timedelta(microseconds=1)) + timedelta(hours=1)
    calls = within(filled, begin, end, **({"network": network} if network else {}))
    chosen: Callable[[Call], bool] = {
        "spend_by_upstream": lambda c: True,
        "spend_by_user": lambda c: bool(c.request_id),
        "waste": lambda c: c.is_wasted,
        "wasted_by_cause": lambda c: c.is_wasted,
        "unpriced": lambda c: bool(c.vendor) and c.usd is None,
    }.get(name, lambda c: bool(c.vendor))
    calls = [c for c in calls if chosen(c)]
    if name == "waste":
        wanted = groups(calls, *grain)
        found: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            found[tuple(row[n] for n in grain)].append(row)
        assert {key: (sum(r["n"] for r in of), total(r["usd"] for r in of)) for key, of in found.items()} == {
            key: (len(of), total(c.usd for c in of)) for key, of in wanted.items()
        }
        for row in rows:
            of = [c for c in wanted[tuple(row[n] for n in grain)] if reason(c) == row["reason"]]
            assert (row["n"], row["usd"]) == (len(of), total(c.usd for c in of))
        return
    answers = by(rows, *grain)
    assert set(answers) == set(groups(calls, *grain))
    for key, of in groups(calls, *grain).items():
        row = answers[key]
        assert row.get("n", row.get("n_calls")) == len(of)
        if "usd" in row:
            assert row["usd"] == total(c.usd for c in of)
        if "units" in row and name != "prices_in_effect":
            assert row["units"] == total(c.units for c in of)
        for column, wanted_n in (
            ("n_wasted", sum(c.is_wasted for c in of)), ("n_unpriced", sum(c.usd is None for c in of)),
            ("n_empty", sum(c.is_empty for c in of)),
            ("n_estimates", sum(c.is_estimate and c.usd is not None for c in of)),
        ):  # fmt: skip
            if column in row:
                assert row[column] == wanted_n, column
        for column, kinds in (("usd_clients", CLIENT_KINDS), ("usd_own", OWN_KINDS), ("usd_shadow", ("shadow",))):
            if column in row:
                assert row[column] == total(c.usd for c in of if c.kind in kinds), column
        if name == "spend_by_user":
            assert row["n_requests"] == len({c.request_id for c in of})
            assert row["n_paid"] == len({c.request_id for c in of if c.is_paid and c.kind != "shadow"})
            thousand = total(c.usd for c in of)
            assert row["usd_per_thousand"] == (
                None if thousand is None else pytest.approx(float(thousand) / row["n_requests"] * 1000, abs=1e-6)
            )
        if name == "spend_by_method":
            assert row["share_ratio"] == ratio(row["usd"], total(r["usd"] for r in rows))
        if name == "unpriced":
            assert (row["first_at"], row["last_at"]) == (min(c.at for c in of), max(c.at for c in of))


def reason(call: Call) -> str:
    if call.is_cancelled or call.outcome == "cancelled":
        return "lost_race"
    return "duplicate" if call.is_duplicate else "empty_beyond_head"


@pytest.mark.parametrize(("begin", "end", "network"), RANGES)
def test_time_series_add_up(filled: Filled, begin: datetime, end: datetime, network: str) -> None:
    """Hour by hour, day by day in UTC, and in steps."""
    given = {"from": text(begin), "to": text(end), "network": network}
    only = {"network": network} if network else {}
    whole = [c for c in within(filled, hour(begin), hour(end - timedelta(microseconds=1)) + timedelta(hours=1), **only)
             if c.vendor]  # fmt: skip
    hours: dict[datetime, list[Call]] = defaultdict(list)
    for call in whole:
        hours[hour(call.at)].append(call)
    rows = ask(filled, "spend_over_time", **given)
    assert [row["hour"] for row in rows] == sorted(hours)
    for row in rows:
        of = hours[row["hour"]]
        assert (row["n"], row["n_wasted"]) == (len(of), sum(c.is_wasted for c in of))
        assert (row["usd"], row["n_unpriced"]) == (total(c.usd for c in of), sum(c.usd is None for c in of))
        assert row["usd_fallback"] == total(c.usd for c in of if c.tier == "fallback")
        assert row["usd_own"] == total(c.usd for c in of if c.kind in OWN_KINDS)
        assert row["usd_shadow"] == total(c.usd for c in of if c.kind == "shadow")
    days: dict[tuple[Any, ...], list[Call]] = defaultdict(list)
    for call in whole:
        days[call.at.replace(hour=0, minute=0, second=0, microsecond=0), call.tier, call.kind, call.cause].append(call)
    answers = by(ask(filled, "spend_daily", **given), "day", "tier", "kind", "cause")
    assert {key: (row["n"], row["n_unpriced"], row["usd"]) for key, row in answers.items()} == {
        key: (len(of), sum(c.usd is None for c in of), total(c.usd for c in of)) for key, of in days.items()
    }
    steps: dict[int, list[Call]] = defaultdict(list)
    for call in within(filled, begin, end, **only):
        if call.vendor:
            steps[int((call.at - begin).total_seconds()) // 600].append(call)
    some = ask(filled, "spend_in_steps", **given, step="600")
    assert {row["step"]: (row["n"], row["usd"]) for row in some} == {
        step: (len(of), total(c.usd for c in of)) for step, of in steps.items()
    }


@pytest.mark.parametrize(("begin", "end", "network"), RANGES)
def test_shares_and_rates(filled: Filled, begin: datetime, end: datetime, network: str) -> None:
    """Paid share, cost of a million requests, our own calls."""
    given = {"from": text(begin), "to": text(end), "network": network}
    calls = within(filled, begin, end, **({"network": network} if network else {}))
    for row in ask(filled, "paid_share", **given):
        of = [c for c in calls if c.network == row["network"] and c.kind in CLIENT_KINDS]
        n, n_paid = len({c.request_id for c in of}), len({c.request_id for c in of if c.is_paid})
        assert (row["n_requests"], row["n_paid"], row["paid_ratio"]) == (n, n_paid, round(n_paid / n, 6))
        assert row["n_paid_calls"] == sum(c.is_paid for c in of)
        assert row["n_paid_empty"] == sum(c.is_paid and c.is_empty for c in of)
        assert row["usd"] == total(c.usd for c in of if c.is_paid)
        assert row["n_unpriced"] == sum(c.is_paid and c.usd is None for c in of)
    for row in ask(filled, "cost_per_million", **given):
        of = [c for c in calls if c.network == row["network"]]
        n = sum(begin <= at < end and chain == row["network"] and outcome not in ("invalid", "rejected")
                for at, _, chain, outcome, _, _ in filled.requests)  # fmt: skip
        assert (row["n_requests"], row["usd"]) == (n, total(c.usd for c in of))
        assert row["n_unpriced"] == sum(bool(c.vendor) and c.usd is None for c in of)
        for column, chosen in (
            ("usd_per_million", lambda c: True), ("usd_clients_per_million", lambda c: c.kind in CLIENT_KINDS),
            ("usd_own_per_million", lambda c: not c.request_id),
            ("usd_shadow_per_million", lambda c: c.kind == "shadow"), ("usd_wasted_per_million", lambda c: c.is_wasted),
        ):  # fmt: skip
            usd = total(c.usd for c in of if chosen(c))
            assert row[column] == (pytest.approx(float(usd or 0) / n * 10**6, abs=2e-6) if n else None), column
    own = [c for c in calls if not c.request_id]
    answers = by(ask(filled, "own_calls", **given), "network", "upstream", "kind", "method")
    assert set(answers) == set(groups(own, "network", "upstream", "kind", "method"))
    span = max((max(c.at for c in calls) - min(c.at for c in calls)).total_seconds() // 1 / 3600, 1 / 60)
    for key, of in groups(own, "network", "upstream", "kind", "method").items():
        row, usd = answers[key], total(c.usd for c in of)
        assert (row["n"], row["usd"]) == (len(of), usd)
        assert row["n_per_hour"] == pytest.approx(len(of) / span, abs=2e-3)
        everything = total(c.usd for c in calls if (c.network, c.upstream) == key[:2])
        assert row["share_ratio"] == ratio(usd, everything)


@pytest.mark.parametrize(("begin", "end", "network"), RANGES)
def test_what_fallbacks_saved(filled: Filled, begin: datetime, end: datetime, network: str) -> None:
    """Answered by the fallback that was asked; lost where the client got an error all the same."""
    rows = ask(filled, "saved_by_fallbacks", **{"from": text(begin), "to": text(end), "network": network})
    asked = groups([c for c in filled.calls if c.tier == "fallback" and c.kind in CLIENT_KINDS
                    and (not network or c.network == network)], "request_id", "upstream")  # fmt: skip
    wanted: dict[tuple[str, ...], list[Any]] = defaultdict(lambda: [0, 0, []])
    of_request = {i: (at, chain, outcome, by_) for at, i, chain, outcome, by_, n in filled.requests if n}
    for (request_id, upstream), of in asked.items():
        at, chain, outcome, by_ = of_request[request_id]
        if not begin <= at < end:
            continue
        first = min(of, key=lambda c: c.at)
        group = wanted[chain, first.vendor, first.account, first.cause]
        is_answered = outcome in ("result", "verdict") and by_ == upstream
        has_data = any(c.outcome in ("result", "verdict") and not c.is_empty for c in of)
        group[0] += is_answered and (has_data or first.cause not in EMPTY_CAUSES)
        group[1] += outcome == "error"
        group[2] += [c.usd for c in of]
    answers = by(rows, "network", "vendor", "account", "cause")
    assert {key: (row["n_saved"], row["n_lost"], row["usd"]) for key, row in answers.items()} == {
        key: (saved, lost, total(usd)) for key, (saved, lost, usd) in wanted.items()
    }


@pytest.mark.parametrize(
    ("before", "after", "hours"),
    [
        (NOW - timedelta(days=2), NOW - timedelta(days=1), 12),
        (NOW - timedelta(hours=3), NOW - timedelta(days=9), 3),
        (PRICED_FROM - timedelta(hours=1), PRICED_FROM + timedelta(hours=1), 1),
    ],
)
def test_a_rise_is_explained(filled: Filled, before: datetime, after: datetime, hours: int) -> None:
    """The parts are exact, add up to the whole, and come in the order of what they explain."""
    rows = ask(filled, "why_spend_rose", before=text(before), after=text(after), hours=str(hours))
    sides = []
    for begin in (hour(before), hour(after)):
        some = [c for c in within(filled, begin, begin + timedelta(hours=hours)) if c.vendor]
        sides.append(groups(some, "network", "upstream", "kind", "cause", "method"))
    first, second = sides
    wanted = {}
    for key in {*first, *second}:
        old, new = (total(c.usd for c in side.get(key, [])) or Decimal(0) for side in (first, second))
        if old or new:
            wanted[key] = (old, new, new - old, len(first.get(key, [])), len(second.get(key, [])))
    answers = by(rows, "network", "upstream", "kind", "cause", "method")
    assert {
        key: (r["usd_before"], r["usd_after"], r["usd_change"], r["n_before"], r["n_after"])
        for key, r in answers.items()
    } == wanted
    whole = sum((change for _, _, change, _, _ in wanted.values()), Decimal(0))
    assert whole != 0
    changes = [row["usd_change"] for row in rows]
    assert changes == sorted(changes, reverse=whole > 0)
    assert sum(row["share_ratio"] for row in rows) == pytest.approx(1, abs=1e-4)
    assert rows[-1]["running_ratio"] == pytest.approx(1, abs=1e-6)
    for row in rows:
        assert row["usd_by_calls"] + row["usd_by_price"] == pytest.approx(float(row["usd_change"]), abs=1e-11)


T90 = {2: 3.078, 3: 1.886, 4: 1.638, 5: 1.533, 6: 1.476, 7: 1.440, 8: 1.415, 9: 1.397, 10: 1.383, 11: 1.372, 12: 1.363,
       13: 1.356, 14: 1.350}  # fmt: skip
"""Student's t, 0.9, by number of days (one more than the degrees of freedom); from a printed table."""


@pytest.mark.parametrize(
    "end", [NOW, FIRST_DAY, datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC),
            datetime(2026, 3, 9, 0, 30, tzinfo=UTC), NOW - timedelta(days=DAYS - 3)],
)  # fmt: skip
def test_budgets(filled: Filled, end: datetime) -> None:
    """The month in UTC from its own day on, one pool over upstreams and chains; burn rates, forecast, interval."""
    answers = by(ask(filled, "budgets", to=text(end)), "account")
    assert set(answers) == {("pool",), ("chain",), ("none",)}
    for account in ACCOUNTS:
        row, (begin, until) = answers[account.id,], cycle(end, account.cycle_day)
        calls = [c for c in filled.calls if c.account == account.id and c.at < end]
        month = [c for c in calls if c.at >= begin]
        spent = total(c.usd for c in month) or Decimal(0)
        budget = None if account.monthly_budget_usd is None else Decimal(account.monthly_budget_usd)
        assert (row["cycle_from"], row["cycle_to"], row["spent"], row["budget"]) == (begin, until, spent, budget)
        assert row["n_unpriced"] == sum(c.usd is None for c in month)
        assert row["spent_ratio"] == ratio(spent, budget)
        top = hour(end)
        if budget:
            even = float(budget) / ((until - begin) / timedelta(hours=1))
            exact = float(total(c.usd for c in calls if c.at >= end - timedelta(hours=1)) or 0)
            assert row["burn_1h"] == pytest.approx(exact / even, abs=1e-4)
            for column, hours in (("burn_6h", 6), ("burn_24h", 24), ("burn_3d", 72)):
                since = hour(end - timedelta(hours=hours))
                usd = float(total(c.usd for c in calls if c.at >= since) or 0)
                assert row[column] == pytest.approx(usd / ((end - since) / timedelta(hours=1)) / even, abs=1e-4), column
        days: dict[int, float] = defaultdict(float)
        seen = [c for c in calls if top - timedelta(days=32) <= c.at < top]
        for call in seen:
            days[int((top - call.at).total_seconds() - 1e-6) // 86_400] += float(call.usd or 0)
        first = min((hour(c.at) for c in calls if top - timedelta(days=32) <= c.at), default=end)
        n_days = min(14, (top - first) // timedelta(days=1))
        assert row["n_days"] == max(n_days, 0)
        last = [days.get(ago, 0.0) for ago in range(n_days)]
        if n_days > 0:
            mean = sum(last) / n_days
        else:
            everything = float(total(c.usd for c in calls if c.at >= first) or 0)
            mean = everything / (max(end - first, timedelta(hours=1)) / timedelta(days=1))
        left = (until - end) / timedelta(days=1)
        assert row["day_usd"] == pytest.approx(mean, abs=1e-6)
        assert row["forecast"] == pytest.approx(float(spent) + mean * left, abs=2e-6)
        if n_days < 3:
            assert (row["forecast_low"], row["forecast_high"]) == (None, None)
        else:
            band = T90[n_days] * statistics.stdev(last) * (left * (1 + left / n_days)) ** 0.5
            assert row["forecast_high"] == pytest.approx(row["forecast"] + band, rel=1e-3, abs=2e-6)
            assert row["forecast_low"] == pytest.approx(max(row["forecast"] - band, float(spent)), rel=1e-3, abs=2e-6)
        if budget is not None and spent >= budget > 0:
            assert row["empty_at"] == end
        elif budget is None or not mean or row["forecast"] < float(budget):
            assert row["empty_at"] is None
        else:
            rest = float(budget - spent) / mean * 86_400
            assert abs((row["empty_at"] - end).total_seconds() - rest) <= 2


def test_an_interval_holds_what_it_promises() -> None:
    """Of months whose days differ by chance, eight in ten end within it, after 4 days as after 14."""
    chance = random.Random(5)
    for n_days in (4, 14):
        inside, left, tries = 0, 12.0, 4000
        for _ in range(tries):
            last = [chance.gauss(10, 3) for _ in range(n_days)]
            future = sum(chance.gauss(10, 3) for _ in range(int(left)))
            mean = sum(last) / n_days
            band = T90[n_days] * statistics.stdev(last) * (left * (1 + left / n_days)) ** 0.5
            inside += abs(future - mean * left) <= band
        assert inside / tries == pytest.approx(0.8, abs=0.025)


@pytest.mark.parametrize("end", [NOW, datetime(2026, 3, 1, 0, 0, 1, tzinfo=UTC), datetime(2026, 2, 20, 18, tzinfo=UTC)])
def test_today(filled: Filled, end: datetime) -> None:
    """Since midnight UTC, beside the days before up to the same hour."""
    (row,) = ask(filled, "paid_today", to=text(end))
    midnight = end.replace(hour=0, minute=0, second=0, microsecond=0)
    today = [c for c in within(filled, midnight, end) if c.vendor]
    before: dict[int, float] = defaultdict(float)
    for call in within(filled, midnight - timedelta(days=14), midnight):
        if call.vendor and call.at.hour < end.hour:
            before[(midnight.date() - call.at.date()).days] += float(call.usd or 0)
    assert (row["usd"], row["n_unpriced"]) == (total(c.usd for c in today), sum(c.usd is None for c in today))
    assert row["n_days"] == max(before, default=0)
    if before:
        assert row["usd_usual"] == pytest.approx(sum(before.values()) / max(before), abs=1e-8)
