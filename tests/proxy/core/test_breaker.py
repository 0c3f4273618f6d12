"""The breaker by itself: its transition table, both modes, and that no permit is ever lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.config.model import Breaker as Policy
from proxy.core.breaker import FAILURE, FREE, IGNORE, SUCCESS, Breaker, Transition

COUNTED = Policy(threshold=3, open_for_seconds=10.0)
WINDOW = Policy(failure_count=3, failure_capacity=5, open_for_seconds=10.0, success_count=2, success_capacity=3)
OUTCOME = {"s": SUCCESS, "f": FAILURE, "i": IGNORE}


def run(breaker: Breaker, outcomes: str, now: float = 0.0, reason: str = "status") -> list[Transition]:
    """Make calls one after the other; return the transitions."""
    seen = []
    for outcome in outcomes:
        permit, asked = breaker.permit(now)
        assert permit is not None
        done = breaker.report(permit, OUTCOME[outcome], now, "" if outcome == "s" else reason)
        seen += [transition for transition in (asked, done) if transition is not None]
    return seen


def moves(transitions: list[Transition]) -> list[str]:
    """Return `from>to` of each."""
    return [f"{t.from_state}>{t.to_state}" for t in transitions]


@pytest.mark.parametrize(
    ("policy", "outcomes", "state"),
    [
        (COUNTED, "ff", "closed"),
        (COUNTED, "fff", "open"),
        (COUNTED, "ffsff", "closed"),
        (COUNTED, "ffiif", "open"),
        (COUNTED, "iiiiii", "closed"),
        (WINDOW, "ff", "closed"),
        (WINDOW, "fsfsf", "open"),
        (WINDOW, "fssssfsssf", "closed"),
        (WINDOW, "fiiiiiiff", "open"),
    ],
)
def test_failures_enough_open_it(policy: Policy, outcomes: str, state: str) -> None:
    """In a row, or of the last so many; what is ignored neither counts nor clears."""
    breaker = Breaker(policy)
    run(breaker, outcomes)

    assert breaker.state == state


def opened(policy: Policy) -> Breaker:
    breaker = Breaker(policy)
    run(breaker, "fff")
    return breaker


@pytest.mark.parametrize("policy", [COUNTED, WINDOW])
def test_asking_whether_one_may_try_counts_nothing(policy: Policy) -> None:
    """It says what `permit` would say, at any time."""
    breaker = opened(policy)
    for now in (0.0, 9.9, 10.0, 10.0, 10.0, 10.0):
        before = breaker.counters()
        expected = breaker.may_try(now)
        assert breaker.counters() == before
        assert (breaker.permit(now)[0] is not None) is expected


def test_an_open_breaker_lets_nobody_through_before_its_time() -> None:
    """Each refusal is counted; at its time one trial goes through and the others still skip."""
    breaker = opened(COUNTED)

    assert breaker.permit(9.9) == (None, None)
    trial, transition = breaker.permit(10.0)
    assert trial is not None
    assert transition is not None
    assert moves([transition]) == ["open>half_open"]
    assert breaker.permit(10.0) == (None, None)
    assert breaker.n_skipped == 2


@pytest.mark.parametrize(
    ("policy", "outcomes", "state"),
    [
        (COUNTED, "s", "closed"),
        (COUNTED, "f", "open"),
        (COUNTED, "iiis", "closed"),
        (COUNTED, "iiif", "open"),
        (WINDOW, "ss", "closed"),
        (WINDOW, "fss", "closed"),
        (WINDOW, "sfs", "closed"),
        (WINDOW, "ff", "open"),
        (WINDOW, "sff", "open"),
        (WINDOW, "si", "half_open"),
        (WINDOW, "iiiiiiss", "closed"),
    ],
)
def test_trials_decide(policy: Policy, outcomes: str, state: str) -> None:
    """An ignored one gives its permit back and decides nothing."""
    breaker = opened(policy)
    run(breaker, outcomes, 10.0)

    assert breaker.state == state


def test_trials_are_bounded() -> None:
    """By the window's capacity, those that are decided included."""
    breaker = opened(WINDOW)
    permits = [breaker.permit(10.0)[0] for _ in range(5)]

    assert [permit is not None for permit in permits] == [True, True, True, False, False]


def test_a_closed_breaker_starts_anew() -> None:
    """What opened it does not count a second time."""
    breaker = opened(WINDOW)
    run(breaker, "ss", 10.0)
    run(breaker, "ff", 11.0)

    assert breaker.state == "closed"


def test_calls_that_began_before_it_opened_decide_nothing() -> None:
    """A late success does not close it, a late failure does not prolong it."""
    breaker = opened(COUNTED)
    assert breaker.report(FREE, SUCCESS, 5.0) is None
    assert breaker.report(FREE, FAILURE, 9.0, "timeout") is None

    assert breaker.state == "open"
    assert breaker.permit(10.0)[0] is not None


def test_a_trial_of_an_earlier_phase_decides_nothing() -> None:
    """It was given up as lost, or was overtaken by another trial."""
    breaker = opened(WINDOW)
    late, _ = breaker.permit(10.0)
    assert late is not None
    run(breaker, "ff", 10.0)
    assert breaker.state == "open"
    _, asked = breaker.permit(20.0)
    assert asked is not None

    assert breaker.report(late, FAILURE, 20.0, "timeout") is None
    assert moves([asked]) == ["open>half_open"]
    assert breaker.permit(20.0)[0] is not None


def test_a_transition_says_why_and_what_was_counted() -> None:
    """Reasons apart; a reason counts even where the outcome is a success (a relayed error)."""
    breaker = Breaker(COUNTED)
    run(breaker, "f", reason="timeout")
    breaker.report(FREE, SUCCESS, 0.0, "rpcerror")
    (transition,) = run(breaker, "fff", reason="parse")

    assert transition == Transition(
        "closed", "open", "parse", {"calls": 5, "misses": 4, "skipped": 0, "timeout": 1, "rpcerror": 1, "parse": 3}
    )


def test_four_relays_in_a_row_never_open_it_and_clear_what_misses_began() -> None:
    """A relay reached a node: it counts as a served call does."""
    breaker = Breaker(COUNTED)
    run(breaker, "ff")
    for _ in range(4):
        breaker.report(FREE, SUCCESS, 0.0, "rpcerror")
    run(breaker, "ff")

    assert breaker.state == "closed"
    assert breaker.reasons["rpcerror"] == 4


@given(
    st.sampled_from([COUNTED, WINDOW, Policy(), Policy(threshold=1, open_for_seconds=0.0)]),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from([SUCCESS, FAILURE, IGNORE]), st.floats(0.0, 6.0))),
)
def test_it_never_locks_up(policy: Policy, steps: list[tuple[int, int, float]]) -> None:
    """Whatever ends in whatever order: once every permit is back, waiting long enough always gets one."""
    breaker = Breaker(policy)
    now = 0.0
    out: list[int] = []
    for which, outcome, pause in steps:
        now += pause
        if which < len(out):
            breaker.report(out.pop(which), outcome, now, "status")
        else:
            permit, _ = breaker.permit(now)
            if permit is not None:
                out.append(permit)
    for permit in out:
        breaker.report(permit, IGNORE, now)

    assert breaker.permit(now + policy.open_for_seconds + 0.001)[0] is not None
