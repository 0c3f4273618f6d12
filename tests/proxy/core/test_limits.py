"""How many calls go through, and when the next one may."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.config.model import RateLimitRule
from proxy.core import limits
from proxy.core.limits import GRAINS, Budget, CallLog, Claim, Refused, Share, admit, share


def claim(*rules: RateLimitRule) -> Claim:
    return Claim(Budget("b", rules), "project")


def rule(max_count: int = 2, period: float = 10.0, method: str = "*", wait: float = 0.0) -> RateLimitRule:
    return RateLimitRule(max_count=max_count, period_seconds=period, method=method, wait_seconds=wait)


def wait_of(answer: float | Refused) -> float:
    assert isinstance(answer, Refused)
    return answer.seconds


@pytest.mark.parametrize(
    ("max_count", "calls", "now", "wait"),
    [
        (0, [], 0.0, math.inf),
        (1, [], 0.0, 0.0),
        (1, [0.0], 0.0, 10.0),
        (1, [0.0], 9.5, 0.5),
        (1, [0.0], 10.0, 0.0),
        (2, [0.0], 5.0, 0.0),
        (2, [0.0, 4.0], 5.0, 5.0),
        (2, [0.0, 4.0], 10.0, 0.0),
        (2, [0.0, 4.0, 6.0], 6.0, 8.0),
        (2, [0.0, 0.01], 1.0, 9.01),
        (2, [1.0, 12.0], 12.0, 0.0),
        (1, [15.0], 10.0, 15.0),
    ],
    ids=["none ever", "first", "used up", "almost over", "over", "one left", "full", "one has ended", "over the limit",
         "close ones end together", "long ago", "granted ahead"],
)  # fmt: skip
def test_room_comes_back_a_period_after_each_call(max_count: int, calls: list[float], now: float, wait: float) -> None:
    log = CallLog(max_count, 10.0)
    for at in calls:
        log.add(at)

    assert log.wait(now) == pytest.approx(wait)


@given(
    st.integers(1, 40),
    st.floats(0.01, 1e6),
    st.lists(st.tuples(st.floats(0.0, 2.0), st.booleans()), max_size=200),
)
def test_no_period_ever_holds_more(max_count: int, period: float, steps: list[tuple[float, bool]]) -> None:
    """Whatever the pace, and whether a call that is refused comes again at once or when it was told to."""
    log, now = CallLog(max_count, period), 0.0
    times: list[float] = []
    for step, waits in steps:
        now += step * period / max_count
        wait = log.wait(now)
        if wait and waits:
            now += wait
            wait = log.wait(now)
        if wait <= 0:
            log.add(now)
            times.append(now)

    assert all(later - sooner >= period * (1 - 1e-9) for sooner, later in zip(times, times[max_count:], strict=False))


def test_a_log_is_small_however_much_it_allows() -> None:
    """A hundred thousand calls of a period are a few dozen entries, and the room comes late by a grain at most."""
    log = CallLog(100_000, 1000.0)
    for n in range(100_000):
        log.add(n / 100)

    assert len(log._entries) <= GRAINS + 1
    assert 0 < log.wait(1000.0) <= 1000 / GRAINS


def test_each_rule_that_matches_must_have_room() -> None:
    """A method of its own limit counts for the general one too; what is refused is counted nowhere."""
    own = claim(rule(3), rule(1, method="eth_get*|trace_*"))
    budget = own.budget

    assert admit([own], "eth_getLogs", 0.0) == 0.0
    assert [wait_of(admit([own], name, 1.0)) for name in ("eth_getBalance", "trace_block")] == [9.0, 9.0]
    assert [admit([own], "eth_call", 2.0) for _ in range(2)] == [0.0, 0.0]
    assert wait_of(admit([own], "eth_call", 3.0)) == 7.0
    assert (budget.n_calls, budget.n_refused) == (3, 3)


def test_every_place_has_its_say() -> None:
    """The tightest budget refuses and is named; the others keep their room."""
    wide, tight = claim(rule(5)), Claim(Budget("t", [rule(1)]), "user", ("u",))

    assert admit([wide, tight], "eth_call", 0.0) == 0.0
    refused = admit([wide, tight], "eth_call", 0.0)
    assert isinstance(refused, Refused)
    assert (refused.claim.whose, refused.claim.budget.id) == ("user", "t")
    assert [admit([wide], "eth_call", 0.0) for _ in range(4)] == [0.0] * 4


@pytest.mark.parametrize(
    ("apart", "mine"), [({"per_user": True}, 0), ({"per_ip": True}, 1), ({"per_network": True}, 2)]
)
def test_a_rule_counts_apart_what_it_says(apart: dict[str, bool], mine: int) -> None:
    """Each user, address or network has a count of its own; the other differences share one."""
    shared = Budget("b", [msgspec.structs.replace(rule(1), **apart)])

    def ask(*whose: str) -> float | Refused:
        user, address, network = whose
        return admit([Claim(shared, "project", user=user, address=address, network=network)], "eth_call", 0.0)

    first = ["u", "1.2.3.4", "evm:1"]
    own, others = list(first), ["other"] * 3
    own[mine], others[mine] = "other", first[mine]

    assert ask(*first) == 0.0
    assert ask(*own) == 0.0
    assert wait_of(ask(*others)) == 10.0


def test_who_may_wait_gets_the_next_free_places() -> None:
    """In the order in which they came, and only within the time that they may wait."""
    own = claim(rule(2, wait=15.0))

    assert [admit([own], "eth_call", now) for now in (0.0, 1.0, 2.0, 3.0)] == [0.0, 0.0, 8.0, 8.0]
    assert wait_of(admit([own], "eth_call", 4.0)) == 16.0
    assert admit([own], "eth_call", 5.0) == 15.0


def test_an_upstream_is_asked_only_while_its_budget_has_room() -> None:
    """Nobody waits; our own questions count though they are never held back."""
    own = claim(rule(2), rule(1, method="eth_getLogs"))
    calls, logs = Share(own, "eth_call"), Share(own, "eth_getLogs")

    logs.count(0.0)
    assert not logs.has_room(1.0)
    assert calls.has_room(1.0)
    calls.count(1.0)
    calls.count(1.0)
    assert [calls.has_room(10.5), calls.has_room(11.0)] == [False, True]


def test_a_method_that_no_rule_names_has_no_share() -> None:
    """So nothing is looked up for it."""
    own = claim(rule(1, method="trace_*"))

    assert share(own, "eth_call") is None
    assert share(None, "trace_block") is None
    assert share(own, "trace_block") is not None


def test_addresses_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was silent for longest is forgotten first."""
    monkeypatch.setattr(limits, "KEYS_LIMIT", 2)
    shared = Budget("b", [msgspec.structs.replace(rule(1), per_ip=True)])

    def ask(address: str) -> bool:
        return not isinstance(admit([Claim(shared, "project", address=address)], "eth_call", 0.0), Refused)

    assert [ask(address) for address in ("a", "b", "a", "c", "a", "b")] == [True, True, False, True, False, True]
