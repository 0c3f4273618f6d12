"""The states of a page: empty and which kind of empty, too few, filtered out, failed, stale, waiting."""

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from analytics.alerting.rules import configured
from analytics.questions import load, load_all
from analytics.store import Result, StoreError
from api.asking import Asking
from gnomon.config.load import loads
from gnomon.config.model import Settings
from tests.api.calling import Api, FakeReader, result_of, settings_of
from tests.api.night import settings
from tests.api.pages.reading import Node, parse

NOW = datetime(2026, 11, 18, 2, 47, 12, tzinfo=UTC)
FRESH: Mapping[str, Any] = {
    "last_stored_at": NOW - timedelta(seconds=2), "n_logs": 1, "n_unread": 0, "n_dropped": 0, "n_dead": 0,
}  # fmt: skip
BY_SQL = {question.sql: question for question in load_all()}


def pages(rows: Mapping[str, Sequence[Mapping[str, Any]]], of: Settings | None = None) -> Api:
    """Return a dashboard over a store that answers each question with the given rows, and with none to others."""
    given: dict[str, Any] = {"stages": [FRESH], "paid_today": [{"n_days": 0, "n_unpriced": 0}], **rows}

    def answer(sql: str, _: Mapping[str, object]) -> Result:
        question = BY_SQL[sql]
        found = given.get(question.name, ())
        if isinstance(found, Exception):
            raise found
        return result_of(question, *([row.get(column.name) for column in question.columns] for row in found))

    reader = FakeReader(answer)
    api = Api(reader, of or settings())
    api.services.asking = Asking(reader, tuple, lambda: NOW)
    return api


def page(api: Api, path: str, **query: Any) -> Node:
    answer = api.get(path, whole="1", **query)
    assert answer.status == 200, answer.body[:300]
    return parse(answer.body.decode())


def shadow(**counts: int) -> dict[str, Any]:
    """Return a shadow's counts on final data."""
    names = ("identical", "identical_masked", "tolerated", "mismatch", "error", "incomparable", "missing", "undecided")
    row: dict[str, Any] = {name: counts.get(name, 0) for name in names}
    judged = sum(row[name] for name in names[:4])
    ratio = row["mismatch"] / judged if judged else None
    return {**row, "network": "evm:1", "shadow_upstream": "node-b", "n_judged": judged, "mismatch_ratio": ratio}


def test_nothing_set_up_says_what_to_write() -> None:
    """Without a shadow the page names the setting."""
    state = page(pages({}, settings_of()), "/divergence").by_id("p-verdicts")

    assert "No shadow upstream yet" in state.text
    assert state.one("code").text == "shadow: {enabled: true}"


def test_nothing_compared_is_not_nothing_different() -> None:
    """A shadow without a pair is told as that."""
    state = page(pages({}), "/divergence").by_id("p-matrix")

    assert "Nothing compared in this range" in state.text
    assert "No difference" not in state.text


def test_no_difference_says_of_how_many() -> None:
    """The good kind of empty has its sample."""
    api = pages({"divergence_by_shadow": [shadow(identical=2_000_000, identical_masked=114_306)]})
    state = page(api, "/").by_id("p-differences")

    assert "No difference in 7 days" in state.text
    assert "2,114,306 pairs compared on final data" in state.text
    assert "114,306 of them after masks" in state.text


def test_too_few_pairs_are_not_a_rate() -> None:
    """41 pairs give a count, an interval, and how many are needed."""
    found = page(pages({"divergence_by_shadow": [shadow(identical=40, mismatch=1)]}), "/divergence")
    said = found.one("div", "statement").text

    assert "Too few pairs to judge: node-b differs in 1 of 41 final answers." in said
    assert "About 38,411 without a difference are needed for a limit of 0.01 %." in said
    assert "1 of 41" in found.by_id("p-verdicts").text


def test_zero_of_many_is_at_most_something() -> None:
    """No mismatch is a bound, never 0 %."""
    table = page(pages({"divergence_by_shadow": [shadow(identical=431_697)]}), "/divergence").by_id("p-verdicts")

    assert "at most 0.0009 %" in table.text
    assert "0 %" not in table.rows()[0][5].text


def test_filtered_out_offers_the_way_back() -> None:
    """What a filter hides is not told as empty."""
    state = page(pages({}), "/divergence", method_="eth_call").by_id("p-matrix")

    assert "Filtered out" in state.text
    assert "Remove filters" in [link.text for link in state.all("a")]


@pytest.mark.parametrize(
    ("error", "title", "ways"),
    [
        (StoreError("slow", 159, "TIMEOUT_EXCEEDED"), "The question took too long", ["Last 15 min", "Try again"]),
        (
            StoreError("large", 241, "MEMORY_LIMIT_EXCEEDED"),
            "The answer would be too large",
            ["Last 15 min", "Try again"],
        ),
        (StoreError("none", 60, "UNKNOWN_TABLE"), "The schema is not there", ["Try again", "How far is it stored?"]),
    ],
)
def test_a_panel_that_fails_leaves_the_others(error: StoreError, title: str, ways: list[str]) -> None:
    """Its problem, two ways out and the request's id in its place; the page answers."""
    api = pages({"upstream_health": error})  # type: ignore[dict-item]
    answer = api.get("/", whole="1")
    found = parse(answer.body.decode())
    failed = found.by_id("p-serving")

    assert answer.status == 200
    assert title in failed.text
    assert answer.headers["x-request-id"] in failed.text
    assert [link.text for link in failed.one("div", "state").all("a")] == ways
    assert found.by_id("p-tiles").all("a", "kpi")


def test_a_bug_in_one_panel_says_nothing_internal() -> None:
    """The log has it; the page has an id."""
    api = pages({"upstream_health": RuntimeError("secret detail")})  # type: ignore[dict-item]
    failed = page(api, "/").by_id("p-serving")

    assert "Something unexpected happened" in failed.text
    assert "secret" not in failed.text


def test_old_data_is_told_on_every_page() -> None:
    """Older than a minute: amber in the side bar and on panels of running ranges; last values stay."""
    old = {**FRESH, "last_stored_at": NOW - timedelta(minutes=4)}
    found = page(pages({"stages": [old]}), "/")

    assert "Data 4 min old" in found.by_id("foot").text
    assert found.by_id("foot").all("a", "warn")
    assert "stale" in found.by_id("p-tiles").attributes["class"]
    fixed = page(pages({"stages": [old]}), "/", from_="2026-11-18T00:00:00Z", to="2026-11-18T01:00:00Z")
    assert "stale" not in fixed.by_id("p-tiles").attributes["class"]


def test_fresh_data_is_not_stale() -> None:
    """Nor is a store that has nothing yet."""
    assert "stale" not in page(pages({}), "/").by_id("p-tiles").attributes["class"]
    empty = {**FRESH, "last_stored_at": datetime(1970, 1, 1, tzinfo=UTC)}
    assert "Nothing stored yet" in page(pages({"stages": [empty]}), "/").by_id("foot").text


def test_a_waiting_panel_is_as_tall_as_it_will_be() -> None:
    """Grey bars, announced as loading, and no spinner."""
    place = parse(pages({}).get("/").body.decode()).by_id("p-differences")

    assert place.attributes["aria-busy"] == "true"
    assert "tall-160" in place.attributes["class"]
    assert place.all("div", "skel")


def test_nothing_firing_collapses_to_the_last_one() -> None:
    """The sentence says so, and the last resolved alert stays in sight."""
    change = {
        "at": NOW - timedelta(hours=4), "rule": "HeadLag", "subject": "evm:1/geth-1", "state": "resolved",
        "value": 1.0, "threshold": 5.0, "delivered": True,
    }  # fmt: skip
    found = page(pages({"alert_changes": [change]}), "/")

    assert found.one("p", "lead").text.startswith("No alert fires.")
    assert "Last resolved: HeadLag, evm:1/geth-1, 17 Nov 22:47" in found.by_id("p-alerts").text


def test_hostile_names_are_text() -> None:
    """What a chain, a client or a vendor says is never markup, wherever it stands."""
    bad = '"><script>alert(1)</script>'
    row = {
        "at": NOW, "request_id": bad, "network": bad, "method": bad, "outcome": bad, "error_class": bad,
        "upstream": bad, "tier": "primary", "cause": "hedge", "n_attempts": 1, "duration_us": 1, "block_tag": bad,
        "params": bad, "user": bad, "project": bad,
    }  # fmt: skip
    html = pages({"requests": [row]}).get("/requests", method_=bad).body.decode()

    assert "<script>alert" not in html
    parse(html)


def test_every_question_of_the_fake_is_known() -> None:
    """The fake store knows questions by their text, each once."""
    assert BY_SQL[load("stages").sql].name == "stages"
    assert len(BY_SQL) == len(load_all())


def counted(hour: datetime, **counts: int) -> dict[str, Any]:
    """Return an hour's counts as the question `reconcile` says them."""
    row = {"accepted": 9, "shipped": 9, "stored": 9, "distinct_stored": 9, "dead_lettered": 0, **counts}
    is_whole = row["accepted"] == row["shipped"] == row["stored"] + row["dead_lettered"] == row["distinct_stored"]
    return {"hour": hour, "is_whole": int(is_whole), **row}


def test_a_store_that_began_this_hour_is_shown_by_its_minutes() -> None:
    """Hours before the first event would be an empty drawing; a range that was asked for is kept."""
    this_hour = NOW.replace(minute=0, second=0)
    young = pages({"reconcile": [counted(this_hour)]})
    old = pages({"reconcile": [counted(this_hour - timedelta(hours=1)), counted(this_hour)]})

    assert "Last 15 min" in page(young, "/").one("header").text
    assert "Last 3 h" in page(young, "/", **{"from": "now-3h"}).one("header").text
    assert "Last 3 h" in page(old, "/").one("header").text


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({}, "equal"),
        ({"accepted": 12}, "3 in flight"),
        ({"stored": 11, "distinct_stored": 11}, "being counted"),
        ({"stored": 11}, "2 doubled"),
    ],
)
def test_the_running_hour_is_judged_when_it_is_over(counts: dict[str, int], said: str) -> None:
    """Rows come before their count while events come in; a row that is there twice is a fault at once."""
    found = page(pages({"reconcile": [counted(NOW.replace(minute=0, second=0), **counts)]}), "/")

    assert said in found.by_id("p-complete").text


def rules_of(*names: str) -> tuple[Any, ...]:
    return tuple(rule for rule in configured((), Path(), []) if not names or rule.name in names)


def test_quiet_rules_are_one_line() -> None:
    """Many rules that never fired do not push breakers out of sight; each is still named with its limit."""
    api = pages({})
    holder = api.services.holder
    holder.value = dataclasses.replace(holder.value, rules=rules_of())
    panel = page(api, "/alerts").by_id("p-rules")
    names = [item.one("b").text for item in panel.one("details", "quiet-rules").all("li")]

    assert len(panel.rows()) == 1
    assert sorted(names) == sorted(rule.name for rule in rules_of())
    assert f"{len(names)} rules were quiet for 7 days" in panel.text


def test_a_rule_that_was_asked_for_has_its_row() -> None:
    """A link to one rule leads to it, quiet or not."""
    api = pages({})
    holder = api.services.holder
    holder.value = dataclasses.replace(holder.value, rules=rules_of())
    rows = page(api, "/alerts", rule="HeadLag").by_id("p-rules").rows()

    assert [row[1].text for row in rows] == ["HeadLag"]


def change(hours: float, before: str, after: str, **more: Any) -> dict[str, Any]:
    return {"at": NOW - timedelta(hours=hours), "network": "evm:1", "upstream": "geth-1", "from_state": before,
            "to_state": after, "reason": "", "counters": {}, **more}  # fmt: skip


def test_a_breaker_that_was_open_before_the_range_is_drawn_open() -> None:
    """And told since when: by the opening that still holds, with the trials that it failed, not by an older one."""
    row = {"network": "evm:1", "upstream": "geth-1", "tier": "primary", "state": "open", "state_at": NOW,
           "n_opened": 0, "open_seconds": 3 * 3600.0, "n_calls": 0, "misses": {}}  # fmt: skip
    history = [
        change(4, "half_open", "open"), change(4.1, "open", "half_open"),
        change(5, "closed", "open", reason="timeout", counters={"timeout": 3}),
        change(20, "half_open", "closed"), change(20.1, "open", "half_open"),
        change(21, "half_open", "open"), change(21.1, "open", "half_open"),
        change(22, "closed", "open", reason="status", counters={"status": 9}),
    ]  # fmt: skip
    found = page(pages({"breakers": [row], "breaker_history": history}), "/breakers", from_="now-3h")
    cells = next(cells for cells in found.by_id("p-breakers").rows() if len(cells) > 5)
    drawn = [one.attributes for one in cells[4].all("rect", "open")]

    assert (cells[3].value, cells[3].text) == ("10800.0", "3 h")
    assert [(one["x"], one["width"]) for one in drawn] == [("0", "330")]
    assert (
        "geth-1 is open since 17 Nov 21:47 after 3 × timeout and failed its trials at 17 Nov 22:47."
        in found.one("p", "lead").text
    )


def test_a_rule_that_fires_longer_than_the_strip_is_drawn_firing() -> None:
    """From its left edge on; what was over before is not in it, and the rule counts as quiet."""
    long = {"rule": "HeadLag", "subject": "evm:1/geth-1", "value": 9.0, "threshold": 5.0, "delivered": True}
    over = {**long, "rule": "QuotaErrors", "fired_at": NOW - timedelta(days=20)}
    rows = {
        "alerts_firing": [{**long, "fired_at": NOW - timedelta(days=9)}],
        "alert_history": [
            {**long, "fired_at": NOW - timedelta(days=9), "resolved_at": None},
            {**over, "resolved_at": NOW - timedelta(days=19)},
        ],
    }
    api = pages(rows)
    holder = api.services.holder
    holder.value = dataclasses.replace(holder.value, rules=rules_of("HeadLag", "QuotaErrors"))
    shown = {cells[1].one("b").text if cells[1].all("b") else cells[1].one("a").text: cells
             for cells in page(api, "/alerts").by_id("p-rules").rows()}  # fmt: skip

    assert [one.attributes["width"] for one in shown["HeadLag"][6].all("rect", "open")] == ["150"]
    assert shown["HeadLag"][6].one("svg").attributes["aria-label"] == "fired 1 time in 7 days"
    assert shown["QuotaErrors"][6].all("rect", "open") == []
    assert shown["QuotaErrors"][7].text == ""


def many_upstreams(n: int) -> Settings:
    lines = [f"- {{id: node-{i}, endpoint: 'http://127.0.0.1:1', evm: {{chainId: 1}}}}" for i in range(n)]
    return loads("projects:\n  - id: main\n    upstreams:\n      " + "\n      ".join(lines), environment={})


@pytest.mark.parametrize(("n", "n_shown", "n_left"), [(12, 12, 0), (13, 11, 2), (40, 11, 29)])
def test_who_serves_takes_one_look(n: int, n_shown: int, n_left: int) -> None:
    """Those in trouble and those called most are named; how many are left out is told, with a link to all."""
    opened = {"network": "evm:1", "upstream": f"node-{n - 1}", "tier": "primary", "state": "open", "misses": {},
              "n_opened": 1, "n_calls": 1, "state_at": NOW}  # fmt: skip
    called = {"network": "evm:1", "upstream": f"node-{n - 2}", "tier": "primary", "n": 50, "failed_ratio": 0.0,
              "empty_ratio": 0.0, "n_failed": 0, "n_empty": 0, "cancelled": 0, "p50_us": 1, "p99_us": 1}  # fmt: skip
    found = page(pages({"breakers": [opened], "upstream_health": [called]}, many_upstreams(n)), "/").by_id("p-serving")
    links = [link.text for link in found.all("a") if "/upstreams/" in link.attributes["href"]]

    assert len(links) == n_shown
    assert {f"node-{n - 1}", f"node-{n - 2}"} <= set(links)
    assert (f"{n_left} more" in found.text) == bool(n_left)


def test_a_late_matrix_completes_the_first_sentence() -> None:
    """The page says how much differs at once; which path makes most of it comes with the panel."""
    row = {
        "finding": "F-00000001", "network": "evm:1", "method": "eth_call", "shadow_upstream": "node-b",
        "generic_path": "$.result", "class": "value", "n_pairs": 90, "n_paths": 90, "n_judged": 1000,
        "seen_at": NOW - timedelta(hours=5), "first_at": NOW - timedelta(hours=5), "last_at": NOW, "primary_right": 0,
        "shadow_right": 0, "suspect_primary": 0, "suspect_shadow": 0, "days": [0, 0, 0, 0, 0, 0, 90],
        "example_request_id": "r", "primary_value": "1", "shadow_value": "2",
    }  # fmt: skip
    compared = {"network": "evm:1", "method": "eth_call", "shadow_upstream": "node-b", "n_judged": 1000, "masked": 0,
                "tolerated": 0, "mismatch": 100}  # fmt: skip
    api = pages({"divergence_by_shadow": [shadow(identical=900, mismatch=100)], "differences": [row],
                 "compared_by_method": [compared]})  # fmt: skip
    first = parse(api.get("/divergence").body.decode()).one("p", "lead").text
    part = parse(api.get("/divergence/_matrix").body.decode())
    whole = next(node.text for node in part.all("p") if "data-lead" in node.attributes)

    assert first == "node-b differs in 10 % of final answers (8.3 to 12.0 %, n 1,000)."
    assert whole.startswith(first)
    assert "One path makes 90 % of it" in whole
    assert page(api, "/divergence").one("p", "lead").text == whole
