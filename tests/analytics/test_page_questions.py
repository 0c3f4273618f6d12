"""The questions that pages ask, on the real engine, over rows chosen to make them wrong."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from analytics.questions import SETTINGS, load
from analytics.store import Store
from gnomon.config.model import Settings
from gnomon.events.contract import Answer, AnyEvent, Attempt, BreakerTransition, HeadUpdate, InternalAttempt
from ingest.batch import decode
from ingest.rows import rows_of
from ingest.settings import context
from ingest.sink import Sink
from tests.ingest.engine_process import migrated_engine
from tests.ingest.events import NETWORK, primary, records, shadow

pytestmark = pytest.mark.clickhouse

START = datetime(2026, 9, 21, 10, 0, tzinfo=UTC)
"""The beginning of the range of every question here."""
END = START + timedelta(minutes=10)
PAID = Attempt(
    upstream="f1", vendor="alchemy", account="acme", tier="fallback", cause="hedge", duration_us=2000, request_bytes=9
)
UNPRICED = Attempt(upstream="f2", vendor="nobody", tier="fallback", request_bytes=9)
GONE = Attempt(upstream="s1", tier="shadow", kind="shadow", outcome="timeout")
PATH = "$.result[*].n"
THIS = {"network": NETWORK, "method": "eth_getBlockReceipts", "shadow": "s1", "generic_path": PATH, "class": "value"}


def at(minutes: float) -> int:
    return int((START + timedelta(minutes=minutes)).timestamp() * 1000) * 1_000_000


def head(number: int, minutes: float, upstream: str) -> HeadUpdate:
    return HeadUpdate(
        v=1,
        event_id=f"h:{upstream}{number}",
        at=at(minutes),
        network=NETWORK,
        upstream=upstream,
        axis="latest",
        number=number,
    )


def polled(minutes: float, upstream: str, outcome: str = "result") -> InternalAttempt:
    attempt = Attempt(upstream=upstream, kind="head_poll", method="eth_blockNumber", outcome=outcome)  # type: ignore[arg-type]
    return InternalAttempt(
        v=1,
        event_id=f"i:{upstream}{minutes}",
        at=at(minutes),
        network=NETWORK,
        attempt_id=f"{minutes}",
        attempt=attempt,
    )


def change(minutes: float, upstream: str, before: str, after: str) -> BreakerTransition:
    return BreakerTransition(
        v=1, event_id=f"b:{upstream}{minutes}", at=at(minutes), network=NETWORK, upstream=upstream,
        from_state=before, to_state=after, reason="timeout",  # type: ignore[arg-type]
    )  # fmt: skip


def differing(number: int, minutes: float, **members: object) -> list[AnyEvent]:
    """Return a pair of which two places differ, at one generic path."""
    how: dict[str, Any] = {"at": at(minutes), "method": "eth_getBlockReceipts", "params": b'["0x64"]', **members}
    body, other = b'[{"n":1},{"n":2},{"n":9}]', b'[{"n":3},{"n":4},{"n":9}]'
    return [shadow(number, body=body, other=other, **how)]


WORLD: list[AnyEvent] = [
    # How clients are served: the range takes its start in and leaves its end out.
    primary(1, at=at(0), duration_us=1000),
    primary(2, at=at(0.99), duration_us=3000, tier="fallback", attempts=(PAID,), upstream="f1"),
    primary(3, at=at(1), outcome="error", error_class="no_upstream", attempts=(), upstream="", tier=""),
    primary(4, at=at(1.5), outcome="invalid", attempts=(), upstream="", tier=""),
    primary(5, at=at(1.6), outcome="cancelled", attempts=(), upstream="", tier=""),
    primary(6, at=at(10)),
    # A call without a price, a failing one.
    primary(7, at=at(2.5), attempts=(UNPRICED,), tier="fallback"),
    primary(8, at=at(3), attempts=(
        Attempt(upstream="p1", outcome="timeout", error_class="timeout"), Attempt(upstream="p2", start_us=500),
    )),
    # Verdicts of each kind; a difference seen before the range, one above finality, one that is tolerated.
    *differing(20, 2), *differing(21, 3), *differing(22, -600),
    shadow(23, at=at(4), method="eth_getBlockReceipts", params=b'["0x64"]', body=b'[{"n":1}]'),
    *differing(24, 4, params=b'["0xb4"]'),
    *differing(25, 5, tolerate=("value",)),
    *differing(26, 5, ignore_fields=("*.n",)),
    shadow(27, at=at(6), shadow=Answer(), attempt=GONE),
    # Before the range, an equal pair of another user.
    shadow(28, at=at(-300), method="eth_getBlockReceipts", params=b'["0x64"]', body=b'[{"n":1}]', user="zoe"),
    # Another shadow agrees with the primary in one of those, and with the first shadow in the other.
    shadow(20, at=at(2), method="eth_getBlockReceipts", params=b'["0x64"]', body=b'[{"n":1},{"n":2},{"n":9}]',
           shadow_upstream="s2", event_id="00000000000000aa:920"),
    *differing(21, 3, shadow_upstream="s2", event_id="00000000000000aa:921"),
    # Heads: p2 stands still but answers; p3 is heard no more.
    head(100, -5, "p1"), head(101, 1.1, "p1"), head(105, 2.1, "p1"),
    head(100, -5, "p2"), *(polled(minute + 0.5, "p2") for minute in range(4)),
    head(100, 0.1, "p3"), polled(2.5, "p3", "timeout"),
    # Breakers: open since before the range; opened twice within it.
    change(-60, "p1", "closed", "open"),
    change(1, "p2", "closed", "open"), change(2, "p2", "open", "half_open"), change(3, "p2", "half_open", "open"),
    change(4, "p2", "open", "half_open"), change(5, "p2", "half_open", "closed"), change(10, "p2", "closed", "open"),
]  # fmt: skip


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with migrated_engine(tmp_path_factory.mktemp("engine")) as process:
        sink = Sink(process.connect(), "0" * 32, "log", 0)
        sink.take_over()
        world = sorted(WORLD, key=lambda event: event.at)
        sink.store(rows_of(decode(0, [*records(world), b"poison"]), context(Settings()), at(0) // 10**6).rows)
        sink.progress(len(world) + 1)
        with Store.connect(process.url) as store:
            yield store


def ask(reader: Store, name: str, **given: str) -> list[dict[str, Any]]:
    question = load(name)
    known = {parameter.name for parameter in question.parameters}
    bound = {key: value for key, value in (("from", START.isoformat()), ("to", END.isoformat())) if key in known}
    result = reader.query(question.sql, question.bind({**bound, **given}, END), SETTINGS)
    return [dict(zip(result.names, row, strict=True)) for row in result.rows]


def finding_of(**what: str) -> str:
    """Return the name of a difference, as anybody can compute it."""
    text = "\n".join(what[part] for part in ("network", "method", "shadow", "generic_path", "class"))
    return "F-" + hashlib.md5(text.encode()).hexdigest()[:8].upper()


def test_clients_are_counted_in_steps(reader: Store) -> None:
    """From the start, included, to the end, not included; what the client spoilt itself is left out."""
    rows = ask(reader, "service_over_time")

    assert [(row["step"], row["n"], row["n_failed"], row["n_paid"]) for row in rows] == [
        (0, 2, 0, 1), (1, 1, 1, 0), (2, 1, 0, 1), (3, 1, 0, 0),
    ]  # fmt: skip
    assert (rows[0]["p99_us"], rows[1]["p99_us"]) == (3000, 3000)


@pytest.mark.parametrize("step", ["0", "1", "60", "600", "4294967295"])
def test_steps_of_any_length_hold_everything(reader: Store, step: str) -> None:
    """A step of nothing counts as one second."""
    rows = ask(reader, "service_over_time", step=step)

    assert sum(row["n"] for row in rows) == 5


def test_spend_in_steps_tells_unpriced_from_nothing(reader: Store) -> None:
    """A step whose only call has no price is NULL, not 0."""
    rows = {row["step"]: row for row in ask(reader, "spend_in_steps")}

    assert rows[0]["usd"] > 0
    assert (rows[2]["n"], rows[2]["usd"]) == (1, None)


def test_what_was_paid_today_is_compared_with_the_same_hours(reader: Store) -> None:
    """Since midnight; without an earlier day there is nothing usual; unpriced calls are counted apart."""
    (row,) = ask(reader, "paid_today")

    assert row["usd"] == ask(reader, "spend_in_steps")[0]["usd"]
    assert (row["usd_usual"], row["n_days"], row["n_unpriced"]) == (None, 0, 1)


def test_what_is_usual_is_a_mean_of_days(reader: Store) -> None:
    """The day of the call and an empty one make the mean; an hour counts once today is past it."""
    early = END + timedelta(days=2)

    (row,) = ask(reader, "paid_today", to=early.isoformat())
    assert (row["usd"], row["usd_usual"], row["n_days"]) == (None, None, 0)
    (row,) = ask(reader, "paid_today", to=(early + timedelta(hours=1)).isoformat())
    assert row["n_days"] == 2
    assert row["usd_usual"] == pytest.approx(float(ask(reader, "spend_in_steps")[0]["usd"]) / 2, rel=1e-3)


def test_paid_calls_are_grouped_with_an_example(reader: Store) -> None:
    """By why they were made; what nobody can price is counted, and in no sum."""
    rows = {row["upstream"]: row for row in ask(reader, "paid_groups")}

    assert (rows["f1"]["cause"], rows["f1"]["n"], rows["f1"]["example_request_id"]) == ("hedge", 1, "r2")
    assert (rows["f2"]["n_unpriced"], rows["f2"]["usd"]) == (1, None)
    assert list(ask(reader, "paid_groups", account="acme")) == [rows["f1"]]


def test_days_and_prices_add_up(reader: Store) -> None:
    """What a day cost is what its calls cost; a price in effect is money by units."""
    whole = sum(row["usd"] for row in ask(reader, "paid_groups") if row["usd"] is not None)
    (day,) = [row for row in ask(reader, "spend_daily") if row["usd"] is not None]
    (price,) = [row for row in ask(reader, "prices_in_effect") if row["vendor"] == "alchemy"]

    assert (day["usd"], price["usd"]) == (whole, whole)
    assert day["day"] == START.replace(hour=0)
    assert price["usd_per_million_units"] == pytest.approx(float(price["usd"] / price["units"]) * 1e6)
    assert ask(reader, "wasted_by_cause") == []


def test_each_outcome_is_counted_apart(reader: Store) -> None:
    """On final data: two mismatches, one equal, one forgiven, one masked; a shadow that never came gave no verdict."""
    rows = {row["shadow_upstream"]: row for row in ask(reader, "divergence_by_shadow")}
    counts = {name: rows["s1"][name] for name in ("n_judged", "identical", "identical_masked", "tolerated", "mismatch")}

    assert counts == {"n_judged": 5, "identical": 1, "identical_masked": 1, "tolerated": 1, "mismatch": 2}
    assert rows["s1"]["mismatch_ratio"] == 0.4
    # Two of five, by hand of Wilson's formula.
    assert (round(rows["s1"]["mismatch_low"], 4), round(rows["s1"]["mismatch_high"], 4)) == (0.1176, 0.7693)
    assert sum(row["missing"] for row in ask(reader, "divergence_by_shadow", finality="")) == 1


def test_methods_have_their_own_sample(reader: Store) -> None:
    """The same pairs by method; pairs without a verdict are in none."""
    rows = ask(reader, "compared_by_method", shadow="s1")

    assert [(row["method"], row["n_judged"], row["masked"], row["tolerated"], row["mismatch"]) for row in rows] == [
        ("eth_getBlockReceipts", 5, 1, 1, 2)
    ]


def test_mismatches_in_steps_add_up(reader: Store) -> None:
    """To what the range has as a whole."""
    rows = [row for row in ask(reader, "divergence_in_steps", step="60") if row["shadow_upstream"] == "s1"]

    assert [(row["step"], row["n"], row["mismatch"]) for row in rows] == [(2, 1, 1), (3, 1, 1), (4, 1, 0), (5, 2, 0)]


def test_a_difference_is_one_row(reader: Store) -> None:
    """Two places of a pair are one pair; one before the range tells only since when; a forgiven one is no mismatch."""
    rows = {row["shadow_upstream"]: row for row in ask(reader, "differences")}
    row = rows["s1"]

    assert set(rows) == {"s1", "s2"}
    assert (row["finding"], row["generic_path"], row["class"]) == (finding_of(**THIS), PATH, "value")
    assert (row["n_pairs"], row["n_paths"], row["n_judged"]) == (2, 4, 5)
    assert [round(row[name], 4) for name in ("pairs_ratio", "pairs_low", "pairs_high")] == [0.4, 0.1176, 0.7693]
    assert row["seen_at"] == START - timedelta(minutes=600)
    assert (row["first_at"], row["last_at"]) == (START + timedelta(minutes=2), START + timedelta(minutes=3))
    assert row["days"] == [0, 0, 0, 0, 0, 0, 2]
    assert (row["example_request_id"], row["primary_value"], row["shadow_value"]) == ("r21", "1", "3")


def test_a_difference_can_be_asked_for_by_name(reader: Store) -> None:
    """And other finalities and outcomes are there when asked for."""
    name = finding_of(**THIS)

    assert [row["shadow_upstream"] for row in ask(reader, "differences", finding=name)] == ["s1"]
    assert ask(reader, "differences", finding="F-00000000") == []
    (row,) = ask(reader, "differences", finding=name, finality="", outcome="")
    assert row["n_pairs"] == 4


def test_when_and_in_which_pairs(reader: Store) -> None:
    """One difference over time, and its pairs, the newest first."""
    assert ask(reader, "difference_over_time", step="60", **THIS) == [
        {"step": 2, "n_pairs": 1},
        {"step": 3, "n_pairs": 1},
    ]
    pairs = ask(reader, "difference_pairs", **THIS)

    assert [(row["request_id"], row["n_paths"], row["path"]) for row in pairs] == [
        ("r21", 2, "$.result[0].n"),
        ("r20", 2, "$.result[0].n"),
    ]


def test_differences_of_a_pair_are_told_together(reader: Store) -> None:
    """One row for all pairs with the same set; tolerated pairs have differences, masked ones none."""
    assert ask(reader, "difference_sets", network=NETWORK, method="eth_getBlockReceipts") == [
        {"shadow_upstream": shadow, "generic_paths": [PATH], "classes": ["value"], "paths": ["$.result[0].n"],
         "pairs": pairs}
        for shadow, pairs in (("s1", 4), ("s2", 1))
    ]  # fmt: skip


def test_other_shadows_take_sides(reader: Store) -> None:
    """Of two answers to the same questions one is the primary's, one the shadow's own bytes."""
    (row,) = ask(reader, "difference_others", **THIS)

    assert row == {"other_upstream": "s2", "is_control": False, "n": 2, "agrees_primary": 1, "agrees_shadow": 1}


def test_members_are_counted_against_all_others(reader: Store) -> None:
    """Of the five judged pairs two have the difference; shares are of each side by itself."""
    rows = {(row["member"], row["value"]): row for row in ask(reader, "difference_members", **THIS)}

    row = rows["primary", "p1"]
    # The masked pair has no finding, the tolerated one has this very finding: it is one of these.
    assert (row["n_these"], row["n_others"], row["these_ratio"], row["others_ratio"]) == (3, 2, 1.0, 1.0)
    assert ("distance to head", "to 1,023 blocks") in rows


def test_shares_of_others_are_of_all_others(reader: Store) -> None:
    """Two of three others are of the same user: the third one counts, though none of these pairs is of its user."""
    start = (START - timedelta(hours=6)).isoformat()
    rows = {row["member"]: row for row in ask(reader, "difference_members", **{"from": start}, **THIS)}

    assert (rows["user"]["n_others"], round(rows["user"]["others_ratio"], 4)) == (2, 0.6667)


def test_members_can_be_those_of_the_pairs_that_a_page_counts(reader: Store) -> None:
    """With an outcome as many pairs as `differences` counts; those with another one are no others either."""
    rows = {(row["member"], row["value"]): row for row in ask(reader, "difference_members", outcome="mismatch", **THIS)}
    (counted,) = ask(reader, "differences", finding=finding_of(**THIS))

    row = rows["primary", "p1"]
    assert (row["n_these"], row["n_others"]) == (counted["n_pairs"], 2) == (2, 2)


def test_a_pair_has_both_bodies(reader: Store) -> None:
    """And what judging it again needs."""
    (row,) = ask(reader, "pair", id="r21", shadow="s1")

    assert row["params"] == '["0x64"]'
    assert row["primary_body"] == '[{"n":1},{"n":2},{"n":9}]'
    assert row["shadow_body"] == '[{"n":3},{"n":4},{"n":9}]'
    assert (row["primary_is_cut"], row["shadow_is_cut"]) == (False, False)
    assert {row["shadow_upstream"] for row in ask(reader, "pair", id="r20")} == {"s1", "s2"}
    assert ask(reader, "pair", id="nobody") == []


def test_lag_is_carried_on_and_silence_is_told(reader: Store) -> None:
    """A head that stands still is behind, not unknown, as long as it answers; a failed poll is no sign."""
    rows = ask(reader, "head_lag_in_steps")
    lag = {
        name: [(row["lag_blocks"], row["is_heard"]) for row in rows if row["upstream"] == name][:4]
        for name in ("p1", "p2", "p3")
    }

    assert lag["p1"] == [(0, False), (0, True), (0, True), (0, False)]
    assert lag["p2"] == [(0, True), (1, True), (5, True), (5, True)]
    assert lag["p3"] == [(0, True), (1, False), (5, False), (5, False)]
    assert {row["step"] for row in rows} == set(range(10))


def test_breakers_have_a_state_even_without_a_change(reader: Store) -> None:
    """Open since before the range; opened twice within it; never touched; what missed is named."""
    rows = {row["upstream"]: row for row in ask(reader, "breakers")}

    assert (rows["p1"]["state"], rows["p1"]["n_opened"], rows["p1"]["misses"]) == ("open", 0, {"timeout": 1})
    assert (rows["p2"]["state"], rows["p2"]["n_opened"], rows["p2"]["state_at"]) == (
        "closed",
        2,
        START + timedelta(minutes=5),
    )
    assert (rows["f1"]["state"], rows["f1"]["state_at"], rows["f1"]["misses"]) == ("closed", None, {})
    # The whole range; a minute and another one, half open left out.
    assert [rows[name]["open_seconds"] for name in ("p1", "p2", "f1")] == [600, 120, 0]


def test_stages_say_how_far_everything_is(reader: Store) -> None:
    """One log, all of it stored, one poison record kept."""
    (row,) = ask(reader, "stages")

    assert (row["n_logs"], row["n_unread"], row["n_dropped"], row["n_dead"]) == (1, 0, 0, 1)
    assert row["last_stored_at"].year >= 2026
    assert [row["network"] for row in ask(reader, "networks")] == [NETWORK]


def test_heads_are_told_as_they_last_changed(reader: Store) -> None:
    """With when they last answered, which may be later; who learns first is told against the others."""
    rows = {row["upstream"]: row for row in ask(reader, "heads_now")}

    assert (rows["p1"]["number"], rows["p1"]["heard_at"]) == (105, None)
    assert rows["p3"]["number"] == 100
    delays = {
        row["upstream"]: row for row in ask(reader, "head_delays", **{"from": (START - timedelta(hours=1)).isoformat()})
    }
    assert (delays["p1"]["n"], delays["p1"]["n_first"], delays["p3"]["n_first"]) == (1, 1, 0)
    assert delays["p3"]["p50_seconds"] == pytest.approx(306)


def test_a_moment_has_a_before_and_an_after(reader: Store) -> None:
    """Its own instant belongs to what came after."""
    (row,) = ask(reader, "traffic_around", network=NETWORK, at=(START + timedelta(minutes=1)).isoformat(), seconds="60")

    assert (row["n_before"], row["paid_before"], row["failed_before"]) == (2, 1, 0)
    assert (row["n_after"], row["paid_after"], row["failed_after"]) == (3, 0, 1)


def test_a_request_names_where_it_came_from(reader: Store) -> None:
    """Its event, and where that lay."""
    (row,) = ask(reader, "request_source", id="r2")

    assert (row["event_id"], row["topic"], row["partition"], row["rpc_id"]) == ("00000000000000aa:2", "log", 0, "2")
    assert ask(reader, "gauges_now") == []
