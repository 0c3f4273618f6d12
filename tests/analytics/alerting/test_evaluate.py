"""Firing as a pure function: each transition of the table, and what holds for any rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.alerting.evaluate import Change, Held, Reading, evaluate, fingerprint, readings
from analytics.alerting.rules import Rule

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
RULE = Rule("Spend", "SELECT 1", 5.0)
LASTING = replace(RULE, lasts=timedelta(seconds=30))


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def run(rule: Rule, *steps: tuple[float, Mapping[str, float | None]]) -> list[tuple[float, str, str, float]]:
    """Evaluate at each time with these values by subject; return the changes as (seconds, state, subject, value)."""
    held: dict[str, Held] = {}
    changes: list[Change] = []
    for seconds, values in steps:
        held, more = evaluate(rule, [Reading(s, v) for s, v in values.items()], held, after(seconds))
        changes += more
    return [((c.at - NOW).total_seconds(), c.state, c.subject, c.value) for c in changes]


def test_a_crossing_fires_once_and_resolves_once() -> None:
    """Staying beyond the threshold says nothing new."""
    steps = [(0, {"a": 5.0}), (10, {"a": 5.01}), (20, {"a": 9.0}), (30, {"a": 5.0}), (40, {"a": 4.0})]

    assert run(RULE, *steps) == [(10, "firing", "a", 5.01), (30, "resolved", "a", 5.0)]


def test_below_is_the_mirror() -> None:
    """The threshold itself does not fire."""
    rule = replace(RULE, is_above=False)

    assert run(rule, (0, {"a": 5.0}), (1, {"a": 4.9}), (2, {"a": 5.0})) == [
        (1, "firing", "a", 4.9), (2, "resolved", "a", 5.0),
    ]  # fmt: skip


def test_it_must_last() -> None:
    """Pending until `for` is over, to the millisecond; the time counts from the first crossing."""
    steps = [(0, {"a": 6.0}), (15, {"a": 7.0}), (29.999, {"a": 7.0}), (30, {"a": 8.0}), (45, {})]

    assert run(LASTING, *steps) == [
        (0, "pending", "a", 6.0), (30, "firing", "a", 8.0), (45, "resolved", "a", 8.0),
    ]  # fmt: skip


def test_a_dip_begins_anew() -> None:
    """Crossed, not crossed, crossed: `for` counts from the second time."""
    steps = [(0, {"a": 6.0}), (20, {"a": 1.0}), (25, {"a": 6.0}), (50, {"a": 6.0}), (55, {"a": 6.0})]

    assert run(LASTING, *steps) == [
        (0, "pending", "a", 6.0), (20, "inactive", "a", 1.0), (25, "pending", "a", 6.0), (55, "firing", "a", 6.0),
    ]  # fmt: skip


def test_a_subject_that_is_gone_resolves() -> None:
    """With the last value that was seen; others stay."""
    assert run(RULE, (0, {"a": 6.0, "b": 7.0}), (10, {"b": 7.0})) == [
        (0, "firing", "a", 6.0), (0, "firing", "b", 7.0), (10, "resolved", "a", 6.0),
    ]  # fmt: skip


@pytest.mark.parametrize("value", [None, float("nan")])
def test_no_number_is_never_crossed(value: float | None) -> None:
    """NULL and NaN fire nothing, and end what fires."""
    assert run(RULE, (0, {"a": value})) == []
    assert run(RULE, (0, {"a": 6.0}), (10, {"a": value})) == [(0, "firing", "a", 6.0), (10, "resolved", "a", 6.0)]


def test_infinity_is_a_value() -> None:
    """A division by nothing is more than any threshold."""
    assert run(RULE, (0, {"a": float("inf")})) == [(0, "firing", "a", float("inf"))]


def test_of_several_rows_the_worst_counts() -> None:
    """In whatever order they come."""
    for rows in ([Reading("a", 1.0), Reading("a", 9.0), Reading("a", None)], [Reading("a", 9.0), Reading("a", 1.0)]):
        held, changes = evaluate(RULE, rows, {}, NOW)

        assert [c.value for c in changes] == [9.0]
        assert held["a"].value == 9.0


def test_since_is_the_first_crossing() -> None:
    """Also in what is told at the end."""
    held, _ = evaluate(LASTING, [Reading("a", 6.0)], {}, NOW)
    held, fired = evaluate(LASTING, [Reading("a", 6.0)], held, after(40))
    _, resolved = evaluate(LASTING, [], held, after(60))

    assert [c.since for c in fired + resolved] == [NOW, NOW]


def test_a_fingerprint_names_rule_and_subject() -> None:
    """Stable over versions: receivers keep it. Rule and subject do not run into each other."""
    assert fingerprint("FallbackSpend", "acme") == "aed7047b1ae4fe96b7fc8699f8f3e4a8"
    assert fingerprint("ab", "c") != fingerprint("a", "bc")


def test_rows_become_readings() -> None:
    """Without a subject there is one; decimals and integers are numbers; further columns are texts."""
    names = ["value", "n", "who"]
    rows = [(Decimal("0.500000000000"), 3, None), (None, 1, "x")]

    assert readings(names, rows) == [
        Reading("", 0.5, {"n": "3", "who": ""}), Reading("", None, {"n": "1", "who": "x"}),
    ]  # fmt: skip


@pytest.mark.parametrize(("names", "row"), [(["subject"], ("a",)), (["value"], ("many",))])
def test_rows_that_are_none_of_a_rule_are_refused(names: list[str], row: tuple[object, ...]) -> None:
    """With what is wrong."""
    with pytest.raises(ValueError, match="value"):
        readings(names, [row])


VALUES = st.none() | st.floats(0, 10)
STEPS = st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), max_size=12)


@given(STEPS, st.sampled_from([0.0, 5.0, 25.0]))
def test_each_subject_alternates(steps: Sequence[dict[str, float | None]], lasts: float) -> None:
    """Fires and resolves in turn, beginning with fires; and asking the same twice in a moment changes nothing."""
    rule = replace(RULE, lasts=timedelta(seconds=lasts))
    held: dict[str, Held] = {}
    told: dict[str, list[str]] = {}
    for number, values in enumerate(steps):
        rows = [Reading(s, v) for s, v in values.items()]
        held, changes = evaluate(rule, rows, held, after(number * 10))
        again, nothing = evaluate(rule, rows, held, after(number * 10))
        for change in changes:
            told.setdefault(change.subject, []).append(change.state)

        assert (again, nothing) == (held, [])
        assert {c.subject for c in changes if c.state == "firing"} <= {
            s for s, h in held.items() if h.phase == "firing"
        }
    for states in told.values():
        spoken = [state for state in states if state in ("firing", "resolved")]
        assert spoken == (["firing", "resolved"] * len(spoken))[: len(spoken)]
