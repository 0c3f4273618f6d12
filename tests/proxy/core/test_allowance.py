"""Rates and monthly budgets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.allowance import MonthlyBudget, Rate


def let_through(rate: Rate, times: list[float]) -> list[float]:
    found = []
    for now in times:
        if rate.has_room(now):
            rate.take(now)
            found.append(now)
    return found


@pytest.mark.parametrize(
    ("per_second", "times", "expected"),
    [
        (0, [0.0, 10.0, 1e9], []),
        (1, [0.0, 0.5, 0.999, 1.0, 1.5], [0.0, 1.0]),
        (3, [0.0] * 5, [0.0] * 3),
        (3, [0.0, 0.2, 0.4, 0.9, 1.0, 1.1, 1.2], [0.0, 0.2, 0.4, 1.0, 1.2]),
        (2.9, [0.0] * 5, [0.0] * 2),
        (0.5, [0.0, 1.0, 1.9, 2.0, 3.0, 4.5], [0.0, 2.0, 4.5]),
        (1e6, [0.0] * 1000, [0.0] * 1000),
    ],
)
def test_at_most_so_many_in_any_second(per_second: float, times: list[float], expected: list[float]) -> None:
    assert let_through(Rate(per_second), times) == expected


def test_there_is_no_negative_rate() -> None:
    with pytest.raises(ValueError, match="rate"):
        Rate(-1)


@given(
    per_second=st.floats(1, 20),
    steps=st.lists(st.floats(0, 0.6), min_size=1, max_size=200),
)
def test_no_window_of_a_second_holds_more(per_second: float, steps: list[float]) -> None:
    """Wherever the window begins."""
    now = 0.0
    times = []
    for step in steps:
        now += step
        times.append(now)
    taken = let_through(Rate(per_second), times)

    assert all(sum(start <= t and t - start < 1.0 for t in taken) <= per_second for start in taken)


def test_what_is_under_way_counts_at_what_it_is_expected_to_cost() -> None:
    budget = MonthlyBudget(100, "2026-01")
    budget.reserve(60)

    assert budget.has_room(40, "2026-01")
    assert not budget.has_room(41, "2026-01")
    budget.settle(60, 10, "2026-01")
    assert budget.has_room(90, "2026-01")
    assert not budget.has_room(91, "2026-01")


def test_a_budget_of_nothing_lets_nothing_through() -> None:
    """Not even what costs nothing; any other lets that through for ever."""
    assert not MonthlyBudget(0).has_room(0, "2026-01")
    full = MonthlyBudget(5, "2026-01", spent=5)
    assert full.has_room(0, "2026-01")
    assert not full.has_room(1, "2026-01")


def test_a_month_begins_anew_and_a_call_counts_where_it_ends() -> None:
    budget = MonthlyBudget(100, "2026-01", spent=100)
    assert not budget.has_room(1, "2026-01")
    assert budget.has_room(100, "2026-02")
    budget.reserve(30)
    budget.settle(30, 30, "2026-03")

    assert (budget.spent, budget.reserved, budget.month) == (30, 0, "2026-03")


def test_the_file_is_ahead_of_what_is_used() -> None:
    """By a hundredth of the budget, never above the whole."""
    budget = MonthlyBudget(1000, "2026-01", spent=100)
    assert budget.wanted_grant(0) is None
    assert budget.wanted_grant(1) == 111
    budget.granted = 111
    budget.reserve(11)
    assert budget.wanted_grant(0) is None
    assert budget.wanted_grant(885) == 1000


@given(st.integers(1, 10**6), st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 10**4)), max_size=60))
def test_no_more_is_used_than_was_written_down(limit: int, calls: list[tuple[int, int]]) -> None:
    """At any moment, so that a killed process finds at least what it has spent; and never more than the budget."""
    budget = MonthlyBudget(limit, "m")
    written = 0
    for cost, _ in calls:
        if budget.has_room(cost, "m"):
            grant = budget.wanted_grant(cost)
            if grant is not None:
                budget.granted = written = grant
            budget.reserve(cost)
            assert budget.spent + budget.reserved <= written <= limit
            budget.settle(cost, cost, "m")
