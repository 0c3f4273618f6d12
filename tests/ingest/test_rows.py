"""The step: events in, rows of every table out."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from gnomon.compare import presets
from gnomon.config.model import Settings
from gnomon.events import codec
from gnomon.events.contract import Answer, AnyEvent, Attempt, Head, Heads
from ingest import comparisons as comparing
from ingest import rows as stepping
from ingest.batch import Group, decode
from ingest.comparisons import Policies
from ingest.rows import Context, Step, joined, rows_of
from ingest.settings import context
from ingest.tables import TABLES, Row
from tests.events.samples import SAMPLES
from tests.ingest.events import AT, HEADS, answer, breaker, head, mixture, poll, primary, records, reorg, shadow

CONTEXT = context(Settings())
AT_MS = AT // 1_000_000
CALL = Attempt(upstream="s1", tier="shadow", kind="shadow")
REFUSAL = Answer(kind="error", digest="e", n_bytes=1, body=Raw(b'{"code":-32005,"message":"limit exceeded"}'))


def step(*events: AnyEvent, own: Context = CONTEXT) -> Step:
    return rows_of(decode(0, records(list(events))), own, 5)


def named(table: str, row: Row) -> dict[str, Any]:
    return dict(zip((c.name for c in TABLES[table].columns), row, strict=True))


def only(table: str, *events: AnyEvent, own: Context = CONTEXT) -> dict[str, Any]:
    (row,) = step(*events, own=own).rows.tables[table]
    return named(table, row)


@pytest.mark.parametrize(
    ("event", "home"),
    [
        (primary(1), "requests"),
        (shadow(1), "comparisons"),
        (poll(1), "attempts"),
        (head(1), "heads"),
        (reorg(1), "reorgs"),
        (breaker(1), "breaker_transitions"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_event_has_one_row_at_home_with_its_own_time(event: AnyEvent, home: str) -> None:
    """Reconciliation counts these."""
    row = only(home, event)

    assert (AT_MS, event.event_id, 0) == (row["at"], row["event_id"], row["off"])


@pytest.mark.parametrize("event", SAMPLES, ids=lambda e: type(e).__name__)
def test_every_row_fits_its_table(event: AnyEvent) -> None:
    """With every member of the event set, each row has a value per column, and encodes."""
    for name, rows in step(event).rows.tables.items():
        for row in rows:
            values = named(name, row)
            for column in TABLES[name].columns:
                assert column.encode([values[column.name]])


def test_poison_is_a_dead_letter_with_its_bytes() -> None:
    """At the sink's clock; its own time beside."""
    (row,) = rows_of(decode(9, [b"junk"]), CONTEXT, 5).rows.tables["dead_letters"]

    assert (row[0], row[1], row[2], row[4], row[-1]) == (5, 0, "no_event", b"junk", 9)


def test_a_request_says_what_was_asked_and_how_it_went() -> None:
    """Block by the method table, heads as known then."""
    row = only("requests", primary(7, batch_id="b", user="u", escaped=True, cause="empty_at_head"))

    assert (row["block_number"], row["block_tag"], row["head_latest"], row["head_finalized"]) == (100, "", 200, 150)
    assert (row["params"], row["rpc_id"], row["answer_kind"], row["n_attempts"]) == (
        b'["0x64",false]',
        b"7",
        "result",
        1,
    )
    assert (row["escaped"], row["beyond_head"], row["cause"]) == (True, False, "empty_at_head")


def test_unknown_heads_are_null_and_never_zero() -> None:
    """Null is not block 0."""
    row = only("requests", primary(1, heads=Heads()))

    assert (row["head_latest"], row["head_finalized"]) == (None, None)


@pytest.mark.parametrize("method", ["personal_sign", "personal_unlockAccount"])
def test_what_holds_passwords_is_not_stored(method: str) -> None:
    """Neither parameters nor bodies of personal_* methods."""
    keep_all = Context(CONTEXT.charger, CONTEXT.policies, keep_bodies="all")
    found = step(primary(1, method=method), shadow(1, method=method, other=b"1"), own=keep_all).rows.tables

    assert not found["bodies"]
    assert named("requests", found["requests"][0])["params"] == b""
    assert named("comparisons", found["comparisons"][0])["params"] == b""


def test_attempts_end_within_their_request() -> None:
    """`at` is the end of each call, from the request's start."""
    first = Attempt(upstream="p1", start_us=0, duration_us=1_000_000)
    second = Attempt(upstream="p2", start_us=1_000_000, duration_us=2_000_000, method="eth_chainId")
    found = step(primary(1, duration_us=3_000_000, attempts=(first, second))).rows.tables["attempts"]
    rows = [named("attempts", row) for row in found]

    assert [row["at"] for row in rows] == [AT_MS - 2000, AT_MS]
    assert [(row["idx"], row["method"]) for row in rows] == [(0, "eth_getBlockByNumber"), (1, "eth_chainId")]


def test_a_paid_call_is_charged_and_an_own_one_is_free() -> None:
    """Alchemy's eth_getBlockByNumber: 20 units, 0.0000105 USD."""
    own = Attempt(upstream="p1", outcome="empty", is_empty=True)
    paid = Attempt(upstream="f1", vendor="alchemy", tier="fallback", cause="empty_at_head")
    unknown = Attempt(upstream="f2", vendor="nobody", tier="fallback")
    rows = [named("attempts", r) for r in step(primary(1, attempts=(own, paid, unknown))).rows.tables["attempts"]]

    assert [(row["units"], row["usd"]) for row in rows] == [(0, 0), (20 * 10**12, 10_500_000), (None, None)]
    assert [row["is_wasted"] for row in rows] == [False, False, False]


@pytest.mark.parametrize("outcome", ["transport", "timeout", "cancelled"])
def test_a_call_that_never_left_costs_nothing(outcome: str) -> None:
    """A refused connection is no call; the same end of one that went out may be billed."""
    refused = Attempt(upstream="f1", vendor="alchemy", tier="fallback", outcome=outcome)  # type: ignore[arg-type]
    rows = step(primary(1, attempts=(refused, replace(refused, request_bytes=60)))).rows.tables["attempts"]

    assert [named("attempts", row)["usd"] for row in rows] == [0, 10_500_000]


@pytest.mark.parametrize(
    ("members", "attempt", "expected"),
    [
        ({"params": b'["0xc9",false]'}, {"outcome": "empty", "is_empty": True}, True),
        ({"params": b'["0xc8",false]'}, {"outcome": "empty", "is_empty": True}, False),
        ({"beyond_head": True}, {"outcome": "empty", "is_empty": True}, True),
        ({}, {"outcome": "cancelled", "is_cancelled": True, "kind": "hedge", "request_bytes": 60}, True),
        ({}, {"outcome": "cancelled", "is_cancelled": True, "kind": "hedge"}, False),
        ({"outcome": "cancelled"}, {"outcome": "cancelled", "is_cancelled": True}, False),
        ({}, {"is_duplicate": True}, True),
    ],
)
def test_waste_is_seen_with_the_heads_of_then(members: dict[str, Any], attempt: dict[str, Any], expected: bool) -> None:
    """Head 200: block 201 is beyond it, block 200 is not."""
    paid = Attempt(upstream="f1", vendor="alchemy", tier="fallback", **attempt)

    assert expected is only("attempts", primary(1, attempts=(paid,), **members))["is_wasted"]


def test_an_old_block_costs_more_where_the_vendor_says_so() -> None:
    """Chainstack, head 200: block 73 is 127 behind it, block 74 is not."""
    paid = Attempt(upstream="f1", vendor="chainstack", tier="fallback")

    def units(params: bytes) -> int:
        found: int = only("attempts", primary(1, params=params, attempts=(paid,)))["units"]
        return found

    assert units(b'["0x49",false]') == 2 * 10**12
    assert units(b'["0x4a",false]') == 10**12


def test_each_shadow_has_its_decision() -> None:
    """All of them, so that coverage has a denominator; the ones not mirrored are counted as skipped."""
    found = step(primary(1, shadows={"s1": "mirrored", "s2": "write", "s3": "shed"}))
    rows = [named("shadow_decisions", row) for row in found.rows.tables["shadow_decisions"]]

    assert [(r["upstream"], r["decision"]) for r in rows] == [("s1", "mirrored"), ("s2", "write"), ("s3", "shed")]
    assert [skipped[-1] for skipped in found.skipped] == ["write", "shed"]


def test_equal_digests_are_identical_without_bodies() -> None:
    """Nothing else travels, nothing else is stored."""
    found = step(shadow(1)).rows.tables
    row = named("comparisons", found["comparisons"][0])

    assert (row["outcome"], row["class"], row["finality"], row["settled"]) == ("identical", "none", "finalized", "")
    assert not found["findings"]
    assert not found["bodies"]
    assert row["params"] == b""


@pytest.mark.parametrize(
    ("params", "finality", "settled"),
    [
        (b'["0x96",false]', "finalized", ""),
        (b'["0x97",false]', "unfinalized", "pending"),
        (b'["latest",false]', "realtime", ""),
    ],
)
def test_a_difference_is_found_named_and_kept(params: bytes, finality: str, settled: str) -> None:
    """Finalised head 150; a difference above it is held until it is final."""
    found = step(shadow(1, params=params, body=b'{"a":1}', other=b'{"a":2}')).rows.tables
    row = named("comparisons", found["comparisons"][0])
    finding = named("findings", found["findings"][0])

    assert ("mismatch", "value", finality, settled, 1) == (
        row["outcome"], row["class"], row["finality"], row["settled"], row["n_findings"],
    )  # fmt: skip
    assert (
        finding["path"], finding["generic_path"], finding["n_paths"], finding["primary_value"], finding["shadow_value"],
    ) == ("$.result.a", "$.result.a", 1, "1", "2")  # fmt: skip
    assert [named("bodies", body)["body"] for body in found["bodies"]] == [b'{"a":1}', b'{"a":2}']
    assert row["params"] == params


def test_masks_and_tolerances_of_the_event_decide() -> None:
    """The policy travels with the pair; the installation's tolerances come on top."""
    pair = {"body": b'{"a":"0xAB"}', "other": b'{"a":"0xab"}'}
    tolerant = Context(CONTEXT.charger, Policies({"*": ["hex_case@a"], "eth_getLogs": ["value"]}))

    assert only("comparisons", shadow(1, **pair, ignore_fields=("a",)))["outcome"] == "identical_masked"  # type: ignore[arg-type]
    assert only("comparisons", shadow(1, **pair, tolerate=("hex_case",)))["outcome"] == "tolerated"  # type: ignore[arg-type]
    assert only("comparisons", shadow(1, **pair), own=tolerant)["outcome"] == "tolerated"  # type: ignore[arg-type]
    assert only("comparisons", shadow(1, **pair))["outcome"] == "mismatch"  # type: ignore[arg-type]


def test_masks_of_the_chains_family_apply_and_are_named() -> None:
    """On mainnet a log's blockTimestamp is optional; on a chain nobody knows it is a difference."""
    pair = {"method": "eth_getLogs", "body": b'[{"a":1}]', "other": b'[{"a":1,"blockTimestamp":"0x1"}]'}
    known = only("comparisons", shadow(1, **pair, network="evm:1"))  # type: ignore[arg-type]
    unknown = only("comparisons", shadow(1, **pair))  # type: ignore[arg-type]

    assert (known["outcome"], unknown["outcome"]) == ("identical_masked", "mismatch")
    assert known["mask_version"].endswith(f"+{presets.VERSION}")
    assert "+" not in unknown["mask_version"]


@pytest.mark.parametrize(
    ("members", "outcome", "reason"),
    [
        ({"shadow": Answer(), "attempt": replace(CALL, outcome="timeout")}, "missing", "timeout"),
        ({"shadow": Answer(), "attempt": replace(CALL, outcome="transport")}, "missing", "transport"),
        ({"shadow": answer(b"2", travels=False)}, "undecided", "no_body"),
        ({"shadow": replace(answer(b"2", travels=False), body_base64="Mg==")}, "undecided", "too_large"),
        ({"other": b"2", "ignore_fields": ("a..b",)}, "undecided", "mask"),
        ({"shadow": REFUSAL, "primary": answer(b"1"), "attempt": replace(CALL, error_class="rate_limited")},
         "error", "rate_limited"),
    ],
)  # fmt: skip
def test_a_pair_without_a_verdict_says_why(members: dict[str, Any], outcome: str, reason: str) -> None:
    """Missing, too large, without a body, under a mask that is none, refused."""
    row = only("comparisons", shadow(1, **members))

    assert (outcome, reason) == (row["outcome"], row["reason"])


def test_heads_of_both_sides_are_kept() -> None:
    """A moving tag with different heads cannot be compared."""
    behind = Heads(network=Head(latest=200), upstreams={"s1": Head(latest=190)})
    row = only("comparisons", shadow(1, params=b'["latest",false]', other=b"1", heads=behind, primary_heads=HEADS))

    assert (
        row["outcome"], row["class"], row["primary_head"], row["shadow_head"],
    ) == ("incomparable", "stale_head", 200, 190)  # fmt: skip


@pytest.mark.parametrize(
    ("keep", "share", "expected"),
    [("none", 0.0, 0), ("diverged", 0.0, 2), ("diverged", 1.0, 3), ("all", 0.0, 3)],
)
def test_bodies_are_kept_as_configured(keep: Any, share: float, expected: int) -> None:
    """One request whose pair is equal, one whose pair differs: two bodies of the difference, one of the other."""
    own = Context(CONTEXT.charger, CONTEXT.policies, keep_bodies=keep, sample_identical_bodies=share)
    events: list[AnyEvent] = [
        primary(1, body=b"1"),
        shadow(1, body=b"1"),
        primary(2, body=b"2", shadows={}),
        shadow(2, body=b"2", other=b"3"),
    ]
    found = step(*events, own=own).rows.tables["bodies"]

    assert expected == len(found)


def test_a_body_is_kept_once_a_day() -> None:
    """Content-addressed: the same answer of many pairs is one row of a batch and day."""
    day = 86_400 * 10**9
    midnight = AT - AT % day
    events: list[AnyEvent] = [shadow(n, at=midnight + n * day // 2, body=b"1", other=b"2") for n in range(4)]

    assert len(step(*events).rows.tables["bodies"]) == 2 * 2


def test_an_event_at_which_the_step_fails_is_put_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pair that breaks our own code must not stop the rest; what it had contributed is taken back."""
    real = comparing.compare

    def broken(group: Group, *rest: Any) -> Any:
        if "r2" in group.of["request_id"]:
            raise RecursionError("deep")
        return real(group, *rest)

    monkeypatch.setattr(stepping, "compare", broken)
    found = step(shadow(1), shadow(2), shadow(3)).rows

    assert [row[1] for row in found.tables["comparisons"]] == ["r1", "r3"]
    assert [row[-1] for row in found.tables["attempts"]] == [0, 2]
    ((_, event_at, reason, detail, data, off),) = found.tables["dead_letters"]
    assert (event_at, reason, detail, off) == (AT_MS, "step_failed", "RecursionError: deep", 1)
    assert data == codec.encode(shadow(2))


@given(st.lists(st.integers(0, 96), max_size=5))
def test_cutting_elsewhere_gives_the_same_rows(cuts: list[int]) -> None:
    """Rows are a function of each event alone (bodies, a set, may repeat), put together or apart."""
    data = mixture(96)
    whole = rows_of(decode(0, data), CONTEXT, 0)
    edges = [0, *sorted(cuts), 96]
    pieces = [rows_of(decode(a, data[a:b]), CONTEXT, 0) for a, b in pairwise(edges)]
    together = joined(pieces)

    for name, rows in whole.rows.tables.items():
        found = [row for piece in pieces for row in piece.rows.tables[name]]
        assert len(rows) == len(together.rows.tables[name])
        if name == "bodies":
            assert {row[1] for row in rows} == {row[1] for row in found}
        else:
            assert by_offset(rows) == by_offset(found) == by_offset(together.rows.tables[name])
    assert whole.rows.hours == together.rows.hours
    assert (whole.pairs, whole.skipped, whole.verdicts) == (together.pairs, together.skipped, together.verdicts)


def by_offset(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row[-1])
