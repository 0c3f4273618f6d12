"""Which primary comes first: the configured order, those in trouble last, without flutter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.scores import HALF_LIFE_SECONDS, Scores, Seen, Trouble

NAMES = ("a", "b", "c")


def seen(**facts: tuple[int, int, int | None]) -> dict[str, Seen]:
    """Return what was seen: calls, failures and head of each."""
    return {name: Seen(*what, poll_interval_seconds=2.0) for name, what in facts.items()}


def test_without_trouble_the_configured_order_stands() -> None:
    """However their load differs."""
    scores = Scores(NAMES)
    scores.weigh(seen(a=(1000, 10, 100), b=(0, 0, 99), c=(5, 0, 100)), 100, 0.0)

    assert scores.ordered(NAMES) == ["a", "b", "c"]


def test_who_fails_comes_last_and_is_tried_again_once_it_is_forgotten() -> None:
    """A fifth of its calls and more; nobody calls it then, so the memory fades."""
    scores = Scores(NAMES)
    assert scores.weigh(seen(a=(10, 3, 100), b=(0, 0, 100), c=(0, 0, 100)), 100, 0.0)
    assert scores.ordered(NAMES) == ["b", "c", "a"]
    assert str(scores.trouble("a")) == "failing"

    nothing = seen(a=(0, 0, 100), b=(9, 0, 100), c=(0, 0, 100))
    assert not scores.weigh(nothing, 100, HALF_LIFE_SECONDS)
    assert scores.weigh(nothing, 100, 4 * HALF_LIFE_SECONDS)
    assert scores.ordered(NAMES) == ["a", "b", "c"]


def test_few_calls_condemn_nobody() -> None:
    """One failure of one call may be anything."""
    scores = Scores(NAMES)
    scores.weigh(seen(a=(4, 4, 100)), 100, 0.0)

    assert scores.ordered(NAMES)[0] == "a"


def test_a_failing_one_must_do_clearly_better_to_come_back() -> None:
    """At a share between the bounds nothing changes, in either direction."""
    scores = Scores(NAMES)
    scores.weigh(seen(a=(100, 10, 100)), 100, 0.0)
    assert not scores.trouble("a").failing
    scores.weigh(seen(a=(100, 50, 100)), 100, 0.1)
    assert scores.trouble("a").failing
    scores.weigh(seen(a=(300, 5, 100)), 100, 0.2)
    assert scores.trouble("a").failing
    scores.weigh(seen(a=(5000, 5, 100)), 100, 0.3)
    assert not scores.trouble("a").failing


@pytest.mark.parametrize(
    ("heads", "lagging"),
    [
        ([90] * 9, True),
        ([98] * 9, False),
        ([90, 90, 100, 90, 90], False),
        ([None] * 9, False),
        ([90] * 7 + [98], True),
        ([90] * 7 + [99], False),
    ],
)
def test_who_stays_behind_comes_last(heads: list[int | None], lagging: bool) -> None:
    """More than two blocks, for longer than three of its polls; it comes back within one block."""
    scores = Scores(NAMES)
    for second, head in enumerate(heads):
        scores.weigh(seen(a=(0, 0, head), b=(0, 0, 100)), 100, float(second))

    assert scores.trouble("a").lagging is lagging


@pytest.mark.parametrize(
    ("polls", "slow"), [((0.01, 0.03), False), ((0.05, 0.2), True), ((0.1, 0.25), False), ((0.2, 0.2), False)]
)
def test_who_is_several_times_slower_than_the_best_comes_last(polls: tuple[float, float], slow: bool) -> None:
    """By its head polls, and by a difference that somebody would feel."""
    scores = Scores(NAMES)
    scores.polled("b", polls[0])
    scores.polled("a", polls[1])
    scores.weigh(seen(a=(0, 0, 1), b=(0, 0, 1)), 1, 0.0)

    assert scores.trouble("a").slow is slow


def test_the_worst_trouble_decides() -> None:
    """Failing before lagging before slow."""
    weights = [Trouble(slow=True), Trouble(lagging=True, slow=True), Trouble(failing=True)]

    assert [trouble.weight for trouble in weights] == sorted(trouble.weight for trouble in weights)
    assert [str(trouble) for trouble in weights] == ["slow", "lagging,slow", "failing"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(NAMES), st.integers(0, 50), st.integers(0, 50), st.none() | st.integers(0, 20),
            st.floats(0.0, 30.0), st.floats(0.0, 2.0),
        )
    )
)  # fmt: skip
def test_everybody_is_always_there_once(steps: list[tuple[str, int, int, int | None, float, float]]) -> None:
    """Whatever was seen, an order is a permutation."""
    scores = Scores(NAMES)
    now = 0.0
    for name, calls, failed, head, pause, poll in steps:
        now += pause
        scores.polled(name, poll)
        scores.weigh({name: Seen(calls, min(calls, failed), head, 2.0)}, 20, now)

    assert sorted(scores.ordered(NAMES)) == list(NAMES)
