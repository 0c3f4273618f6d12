"""The named questions on the real engine, asked as a reader, over rows chosen to make them wrong."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from analytics.questions import SETTINGS, load, load_all, names, plain_type
from analytics.store import Store
from gnomon.config.model import Settings
from gnomon.events.contract import Answer, AnyEvent, Attempt, HeadUpdate
from ingest.batch import decode
from ingest.rows import rows_of
from ingest.settings import context
from ingest.sink import Sink
from tests.ingest.engine_process import EngineProcess
from tests.ingest.events import AT, NETWORK, breaker, head, poll, primary, records, shadow

pytestmark = pytest.mark.clickhouse

NOW = datetime.fromtimestamp(AT / 10**9 + 600, UTC)
SECOND = 10**9
PAID = Attempt(
    upstream="f1", vendor="alchemy", account="acme", tier="fallback", cause="empty_at_head", duration_us=2000
)
MISSED = Attempt(upstream="p1", outcome="empty", is_empty=True, duration_us=1000)
LATE = AT + 3600 * SECOND
"""Outside the range of every question."""

WORLD: list[AnyEvent] = [
    primary(1),
    shadow(1),
    primary(2, duration_us=9000, attempts=(MISSED, PAID), upstream="f1", tier="fallback", cause="empty_at_head"),
    shadow(2, body=b'{"a":1,"b":[1,2,3]}', other=b'{"a":2,"b":[1,9,8]}'),
    primary(
        3, attempts=(Attempt(upstream="p1", outcome="error", error_class="internal", status=500),), outcome="error"
    ),
    shadow(3, shadow=Answer(), attempt=Attempt(upstream="s1", tier="shadow", kind="shadow", outcome="timeout")),
    primary(4, shadows={"s1": "write"}, attempts=(Attempt(upstream="f2", vendor="nobody", tier="fallback"),)),
    primary(
        5,
        beyond_head=True,
        attempts=(Attempt(upstream="f1", vendor="alchemy", tier="fallback", outcome="empty", is_empty=True),),
    ),
    shadow(5, body=b'{"a":1}', other=b'{"a":3}', params=b'["latest",false]'),
    shadow(6, body=b'{"a":"0xA"}', other=b'{"a":"0xa"}', tolerate=("hex_case",)),
    shadow(7, body=b'{"a":1}', other=b'{"a":2}', ignore_fields=("a",)),
    poll(8),
    head(100),
    HeadUpdate(v=1, event_id="x:1", at=AT, network=NETWORK, upstream="p2", axis="latest", number=97),
    HeadUpdate(v=1, event_id="x:2", at=AT, network=NETWORK, upstream="p2", axis="finalized", number=90),
    breaker(9),
    primary(50, at=LATE, network="evm:1"),
    shadow(50, at=LATE, body=b"1", other=b"2", network="evm:1"),
]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    process = EngineProcess(tmp_path_factory.mktemp("engine"))
    process.start()
    try:
        process.migrate()
        sink = Sink(process.connect(), "0" * 32, "log", 0)
        sink.take_over()
        sink.store(rows_of(decode(0, [*records(WORLD), b"poison"]), context(Settings()), AT // 10**6).rows)
        sink.progress(len(WORLD) + 1)
        with Store.connect(process.url) as store:
            yield store
    finally:
        process.stop()


def ask(reader: Store, name: str, **given: str) -> list[dict[str, Any]]:
    question = load(name)
    if any(p.name == "to" for p in question.parameters):
        given.setdefault("to", NOW.isoformat())
    if any(p.name == "from" for p in question.parameters):
        given.setdefault("from", datetime.fromtimestamp(AT / 10**9 - 600, UTC).isoformat())
    result = reader.query(question.sql, question.bind(given, NOW), SETTINGS)
    return [dict(zip(result.names, row, strict=True)) for row in result.rows]


@pytest.mark.parametrize("name", names())
def test_a_questions_columns_are_those_of_its_header(reader: Store, name: str) -> None:
    """In order, with their types; a reader may ask it, and an empty range is an answer."""
    question = load(name)
    given = {p.name: "now" if "Date" in p.type else "nothing" for p in question.parameters if p.default is None}
    result = reader.query(question.sql, question.bind(given, datetime(2021, 1, 1, tzinfo=UTC)), SETTINGS)

    assert [(c.name, c.type) for c in question.columns] == [
        (name, plain_type(kind)) for name, kind in zip(result.names, result.types, strict=True)
    ]


def test_the_promised_questions_are_there() -> None:
    """Each says what it asks, with a default range where it has one."""
    assert {
        "divergence_by_method", "top_differing_paths", "spend_by_cause", "waste", "paid_share", "head_lag",
        "last_mismatches", "request", "slowest_requests", "reconcile",
    } <= set(names())  # fmt: skip
    assert all(p.default is not None for q in load_all() for p in q.parameters if p.name in ("from", "to"))


def test_divergence_counts_each_outcome_apart(reader: Store) -> None:
    """Masked, tolerated and undecided never hide in identical; the ratio is over pairs with a verdict."""
    (row,) = ask(reader, "divergence_by_method")

    assert row == {
        "network": NETWORK, "method": "eth_getBlockByNumber", "shadow_upstream": "s1", "n": 6, "identical": 1,
        "masked": 1, "tolerated": 1, "mismatch": 2, "no_verdict": 1, "final_mismatch": 1, "mismatch_ratio": 0.4,
    }  # fmt: skip
    assert ask(reader, "divergence_by_method", network="evm:1") == []


def test_paths_are_counted_by_pair_and_by_place(reader: Store) -> None:
    """One pair with two differing elements is one pair and two places; tolerated differences are named too."""
    rows = {(r["generic_path"], r["class"]): (r["n_pairs"], r["n_paths"]) for r in ask(reader, "top_differing_paths")}

    assert rows == {
        ("$.result.a", "value"): (2, 2),
        ("$.result.b[*]", "value"): (1, 2),
        ("$.result.a", "hex_case"): (1, 1),
    }


def test_dead_letters_say_where_and_why(reader: Store) -> None:
    """Found by when they were met, whatever time they say they have; bytes that are no text stay what they are."""
    (row,) = ask(reader, "dead_letters")

    assert (row["topic"], row["partition"], row["offset"]) == ("log", 0, len(WORLD))
    assert (row["reason"], row["n_bytes"], row["head"]) == ("no_event", 6, "poison")
    assert ask(reader, "dead_letters", reason="refused") == []
    assert len(ask(reader, "dead_letters", reason="no_event")) == 1


def test_the_last_mismatches_show_a_difference(reader: Store) -> None:
    """Only mismatches; one row each although a pair has several findings."""
    rows = ask(reader, "last_mismatches")

    assert {(r["request_id"], r["n_findings"], r["finality"]) for r in rows} == {
        ("r2", 2, "finalized"), ("r5", 1, "realtime"),
    }  # fmt: skip
    assert all(r["path"].startswith("$.result.") and r["primary_value"] for r in rows)
    assert len(ask(reader, "last_mismatches", limit="1")) == 1


def test_spend_is_exact_and_unpriced_is_not_zero(reader: Store) -> None:
    """Two block calls at 20 units, a poll at 10; a vendor without a book has neither units nor money."""
    rows = {
        (r["vendor"], r["kind"], r["cause"]): (r["n"], str(r["units"]), str(r["usd"]))
        for r in ask(reader, "spend_by_cause")
    }

    assert rows == {
        ("alchemy", "client", "empty_at_head"): (1, "20.000000000000", "0.000010500000"),
        ("alchemy", "client", ""): (1, "20.000000000000", "0.000010500000"),
        ("alchemy", "head_poll", ""): (1, "10.000000000000", "0.000005250000"),
        ("nobody", "client", ""): (1, "None", "None"),
    }


def test_waste_says_why(reader: Store) -> None:
    """A null beyond the head that was paid for."""
    (row,) = ask(reader, "waste")

    assert (row["reason"], row["n"], str(row["usd"]), row["example_request_id"]) == (
        "empty_beyond_head", 1, "0.000010500000", "r5",
    )  # fmt: skip


def test_paid_share_counts_requests_once(reader: Store) -> None:
    """Five requests, three of them with a paid or unpriced call; polls and shadows do not count."""
    (row,) = ask(reader, "paid_share")

    assert (row["n_requests"], row["n_paid"], row["paid_ratio"], row["n_paid_calls"], row["n_paid_empty"]) == (
        5, 3, 0.6, 3, 1,
    )  # fmt: skip


def test_lag_is_within_an_axis(reader: Store) -> None:
    """p2 is three blocks behind p1; the finalised axis has a best of its own."""
    rows = {(r["axis"], r["upstream"]): r["lag_blocks"] for r in ask(reader, "head_lag")}

    assert rows == {("latest", "p1"): 0, ("latest", "p2"): 3, ("finalized", "p2"): 0}


def test_a_request_shows_its_calls_and_verdicts(reader: Store) -> None:
    """The request, two calls in order, the mirrored call, the verdict."""
    rows = ask(reader, "request", id="r2")

    assert [(r["step"], r["upstream"], r["outcome"]) for r in rows] == [
        ("request", "f1", "result"), ("call", "p1", "empty"), ("call", "f1", "result"), ("call", "s1", "result"),
        ("verdict", "s1", "mismatch"),
    ]  # fmt: skip


def test_the_slowest_comes_first(reader: Store) -> None:
    """By the client's wait."""
    rows = ask(reader, "slowest_requests", limit="2")

    assert [rows[0]["request_id"], len(rows)] == ["r2", 2]


def test_health_leaves_polls_out(reader: Store) -> None:
    """A failed call of p1 in four; the paid upstream's poll is no call for a client."""
    rows = {r["upstream"]: (r["n"], r["failed_ratio"]) for r in ask(reader, "upstream_health")}

    assert rows["p1"] == (3, 0.333333)
    assert rows["f1"] == (2, 0)
    assert rows["s1"] == (6, 0.166667)


def test_health_has_counts_and_intervals(reader: Store) -> None:
    """One of three failed, one was empty: the counts themselves, and Wilson's 95 %, by hand."""
    row = next(row for row in ask(reader, "upstream_health") if row["upstream"] == "p1")

    assert (row["n_failed"], row["n_empty"]) == (1, 1)
    assert [round(row[name], 4) for name in ("failed_low", "failed_high")] == [0.0615, 0.7923]
    assert [round(row[name], 4) for name in ("empty_low", "empty_high")] == [0.0615, 0.7923]


def test_errors_are_grouped_by_class(reader: Store) -> None:
    """What went wrong, where."""
    rows = {(r["upstream"], r["outcome"], r["error_class"]): r["n"] for r in ask(reader, "errors_by_class")}

    assert rows == {("p1", "error", "internal"): 1, ("s1", "timeout", ""): 1}


def test_coverage_has_a_denominator(reader: Store) -> None:
    """Four mirrored, one left out as a write."""
    rows = {r["decision"]: (r["n"], r["share_ratio"]) for r in ask(reader, "shadow_coverage")}

    assert rows == {"mirrored": (4, 0.8), "write": (1, 0.2)}


def test_breakers_say_why(reader: Store) -> None:
    """With the counters of then."""
    (row,) = ask(reader, "breaker_history")

    assert (row["to_state"], row["reason"], dict(row["counters"])) == ("open", "timeout", {"timeout": 3, "status": 9})


def test_everything_accepted_is_stored_or_put_aside(reader: Store) -> None:
    """Per hour; poison without a time has an hour of its own."""
    rows = ask(reader, "reconcile", to=datetime.fromtimestamp(LATE / 10**9 + 600, UTC).isoformat())

    assert [(r["accepted"], r["stored"], r["dead_lettered"]) for r in rows] == [(1, 0, 1), (16, 16, 0), (2, 2, 0)]
    assert all(r["is_whole"] for r in rows)


def test_numbers_that_never_came_are_named(reader: Store) -> None:
    """Of the first process 1 to 5 and 50 came; nothing is known of what it numbered outside the range."""
    late = datetime.fromtimestamp(LATE / 10**9 + 600, UTC).isoformat()
    rows = [(r["proc"], r["first_missing"], r["last_missing"], r["n"]) for r in ask(reader, "sequence_gaps", to=late)]

    assert rows == [("00000000000000aa", 6, 49, 44)]
    assert ask(reader, "sequence_gaps") == []
