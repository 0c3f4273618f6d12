"""Transcripts of flights: what was reported, what the flight asked for, who was still trying."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.flight import (
    ANSWERED,
    FAIL,
    FAILED,
    MISSED,
    PAUSE,
    REFUSED,
    SERVE,
    SERVE_MISS,
    TRY,
    WAIT,
    Command,
    Flight,
)

NAMES = {WAIT: "wait", SERVE: "serve", SERVE_MISS: "serve miss", FAIL: "fail", PAUSE: "pause"}
EVENTS = {"answer": ANSWERED, "miss": MISSED, "refused": REFUSED, "failed": FAILED}


def said(command: Command[str]) -> str:
    """Return a command as a line of a transcript."""
    if command.op == TRY:
        return f"try {command.upstream} {command.kind} {command.cause}".strip()
    return NAMES[command.op]


def play(flight: Flight[str], *events: str) -> list[str]:
    """
    Return `event → command` lines.

    Events: `start`, `hedge`, `resume`, `answer`, `miss`, `miss beyond`, `refused CLASS`, `failed CLASS`, and
    `skipped CAUSE` of the upstream that the line before asked for.
    """
    lines = []
    command: Command[str] | None = None
    for event in events:
        word, _, detail = event.partition(" ")
        if word == "start":
            command = flight.start()
        elif word == "hedge":
            command = flight.hedge()
        elif word == "resume":
            command = flight.resume()
        elif word == "skipped":
            assert command is not None
            command = flight.skipped(command, detail)
        else:
            error = detail if detail != "beyond" else ""
            command = flight.finished(EVENTS[word], error, beyond_head=detail == "beyond")
        lines.append(f"{event} → {said(command)}")
    return lines


def flight(
    primaries: str = "a b",
    fallbacks: str = "",
    *,
    rounds: int = 1,
    empty_rounds: int = 1,
    hedges: int = 0,
    is_write: bool = False,
) -> Flight[str]:
    return Flight(
        primaries.split(),
        fallbacks.split(),
        rounds=rounds,
        empty_rounds=empty_rounds,
        hedges=hedges,
        is_write=is_write,
    )


TRANSCRIPTS: dict[str, tuple[Flight[str], list[str]]] = {
    "the first answer is served": (flight(), ["start → try a client", "answer → serve"]),
    "a failure goes to the next": (
        flight(),
        ["start → try a client", "failed transport → try b client primary_error", "answer → serve"],
    ),
    "a cause is named where it is known": (
        flight("a b c d"),
        [
            "start → try a client",
            "failed timeout → try b client timeout",
            "refused rate_limited → try c client rate_limited",
            "refused quota → try d client quota",
        ],
    ),
    "a miss goes to the next at once": (
        flight(),
        ["start → try a client", "miss → try b client empty_at_head", "answer → serve"],
    ),
    "a remembered miss beats a later failure": (
        flight(rounds=3),
        ["start → try a client", "miss → try b client empty_at_head", "failed timeout → serve miss"],
    ),
    "a miss after a failure is served, without another round": (
        flight(rounds=3),
        ["start → try a client", "failed timeout → try b client timeout", "miss → serve miss"],
    ),
    "who insists gets more rounds for a miss": (
        flight("a", "f", rounds=3, empty_rounds=2),
        [
            "start → try a client",
            "miss → try f client empty_at_head",
            "miss → pause",
            "resume → try a retry retry",
            "miss → try f retry empty_at_head",
            "miss → serve miss",
        ],
    ),
    "rounds for a miss are never more than rounds": (
        flight("a", rounds=1, empty_rounds=5),
        ["start → try a client", "miss → serve miss"],
    ),
    "a round that only failed has the rounds of failures": (
        flight("a", rounds=3, empty_rounds=2),
        [
            "start → try a client",
            "failed → pause",
            "resume → try a retry retry",
            "failed → pause",
            "resume → try a retry retry",
            "failed → fail",
        ],
    ),
    "who insists takes a miss above every head all the same": (
        flight(rounds=5, empty_rounds=5),
        ["start → try a client", "miss beyond → serve"],
    ),
    "a miss above every head is the answer": (
        flight("a b", "f", rounds=5, hedges=1),
        ["start → try a client", "miss beyond → serve"],
    ),
    "a miss above every head beats a hedge under way": (
        flight(hedges=1),
        ["start → try a client", "hedge → try b hedge hedge", "miss beyond → serve"],
    ),
    "the escape waits for every primary": (
        flight("a b", "f g"),
        [
            "start → try a client",
            "miss → try b client empty_at_head",
            "miss → try f client empty_at_head",
            "failed → try g client primary_error",
            "miss → serve miss",
        ],
    ),
    "the escape waits for a hedged sibling": (
        flight("a b", "f", hedges=1),
        [
            "start → try a client",
            "hedge → try b hedge hedge",
            "failed timeout → wait",
            "failed transport → try f client primary_error",
            "answer → serve",
        ],
    ),
    "a sibling that answers makes the escape needless": (
        flight("a b", "f", hedges=1),
        ["start → try a client", "hedge → try b hedge hedge", "failed timeout → wait", "answer → serve"],
    ),
    "no primary eligible: the fallback is first": (
        flight("", "f"),
        ["start → try f client primary_error", "answer → serve"],
    ),
    "a hedge never crosses into the fallbacks": (
        flight("a", "f", hedges=3),
        ["start → try a client", "hedge → wait", "miss → try f client empty_at_head", "hedge → wait"],
    ),
    "hedges end with their number": (
        flight("a b c", hedges=1),
        ["start → try a client", "hedge → try b hedge hedge", "hedge → wait"],
    ),
    "a fast miss does not wait for the hedge, nor take its place": (
        flight("a b c", hedges=1),
        ["start → try a client", "miss → try b client empty_at_head", "hedge → try c hedge hedge", "miss → wait"],
    ),
    "ordered: everybody in one list, no escape": (
        flight("a f b"),
        ["start → try a client", "failed → try f client primary_error", "failed → try b client primary_error"],
    ),
    "rounds begin at the top and end": (
        flight("a", "f", rounds=2),
        [
            "start → try a client",
            "failed → try f client primary_error",
            "failed timeout → pause",
            "resume → try a retry retry",
            "failed → try f retry primary_error",
            "failed → fail",
        ],
    ),
    "a round without primaries begins with the fallbacks": (
        flight("", "f g", rounds=2),
        [
            "start → try f client primary_error",
            "failed → try g client primary_error",
            "failed → pause",
            "resume → try f retry retry",
            "failed → try g retry primary_error",
            "failed → fail",
        ],
    ),
    "during a pause nothing is hedged": (
        flight("a", rounds=2, hedges=1),
        ["start → try a client", "failed → pause", "hedge → wait"],
    ),
    "a write that may have reached the node goes nowhere else": (
        flight("a b", "f", rounds=3, hedges=2, is_write=True),
        ["start → try a client", "hedge → wait", "failed timeout → fail"],
    ),
    "a write that was refused goes elsewhere": (
        flight("a", "f", is_write=True),
        ["start → try a client", "refused rate_limited → try f client rate_limited", "answer → serve"],
    ),
    "who is not to be called gives way to the next": (
        flight("a b", "f"),
        [
            "start → try a client",
            "skipped breaker_open → try b client breaker_open",
            "skipped quota → try f client quota",
            "answer → serve",
        ],
    ),
    "a hedge goes to somebody who may be called, or waits": (
        flight("a b c", hedges=2),
        [
            "start → try a client",
            "hedge → try b hedge hedge",
            "skipped breaker_open → try c hedge hedge",
            "skipped breaker_open → wait",
            "answer → serve",
        ],
    ),
    "with nobody to be called the flight fails": (
        flight("a", "f", rounds=2),
        [
            "start → try a client",
            "skipped breaker_open → try f client breaker_open",
            "skipped breaker_open → pause",
            "resume → try a retry retry",
            "answer → serve",
        ],
    ),
    "nobody at all": (flight("", "", rounds=5), ["start → fail"]),
}


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_transcripts(name: str) -> None:
    """Each flight asks for what its transcript says, line by line."""
    machine, expected = TRANSCRIPTS[name]
    events = [line.partition(" → ")[0] for line in expected]
    fresh = Flight(
        machine._primaries,
        machine._fallbacks,
        rounds=machine._rounds,
        empty_rounds=machine._empty_rounds,
        hedges=machine.hedges_left if not machine._is_write else 2,
        is_write=machine._is_write,
    )

    assert play(fresh, *events) == expected


def test_the_first_cause_is_the_policys_where_a_fallback_heads_the_order() -> None:
    """An ordered list that begins with a paid fallback says so in its first attempt."""
    ordered = Flight(["f", "a"], [], first_cause="policy_order")

    assert play(ordered, "start", "failed") == [
        "start → try f client policy_order",
        "failed → try a client primary_error",
    ]


def test_what_happened_is_told() -> None:
    """`escaped`, `beyond_head`, `round` and `n_live` are facts of the event."""
    tiered = flight("a", "f", rounds=2)
    play(tiered, "start")

    assert (tiered.n_live, tiered.escaped, tiered.round) == (1, False, 1)
    play(tiered, "failed", "failed", "resume")
    assert (tiered.n_live, tiered.escaped, tiered.round) == (1, True, 2)
    play(tiered, "miss beyond")
    assert (tiered.n_live, tiered.beyond_head) == (0, True)


@given(
    n_primaries=st.integers(0, 4),
    n_fallbacks=st.integers(0, 3),
    rounds=st.integers(1, 3),
    hedges=st.integers(0, 3),
    choices=st.lists(st.sampled_from(["hedge", "miss", "refused", "failed", "skipped", "answer"]), max_size=60),
)
def test_any_flight_ends_and_asks_nobody_twice_in_a_round(
    n_primaries: int, n_fallbacks: int, rounds: int, hedges: int, choices: list[str]
) -> None:
    """No fallback before each primary was asked and has ended; at most one attempt for each upstream and round."""
    primaries = [f"p{i}" for i in range(n_primaries)]
    fallbacks = [f"f{i}" for i in range(n_fallbacks)]
    machine = Flight(primaries, fallbacks, rounds=rounds, hedges=hedges)
    command = machine.start()
    tried: dict[int, list[str]] = {}
    n_hedged = 0
    for choice in [*choices, *["failed"] * 40]:
        if command.op == TRY:
            assert command.upstream is not None
            asked = tried.setdefault(machine.round, [])
            if command.upstream in fallbacks and not any(name in fallbacks for name in asked):
                assert asked == primaries
                assert machine.n_live == 1
            asked.append(command.upstream)
            n_hedged += command.kind == "hedge"
        elif command.op == PAUSE:
            assert machine.n_live == 0
            command = machine.resume()
            continue
        elif command.op != WAIT:
            break
        if choice == "hedge":
            command = machine.hedge()
        elif choice == "skipped" and command.op == TRY:
            n_hedged -= command.kind == "hedge"
            command = machine.skipped(command, "breaker_open")
        else:
            command = machine.finished(EVENTS.get(choice, FAILED))

    assert command.op in (SERVE, SERVE_MISS, FAIL)
    assert n_hedged <= hedges
    assert all(len(set(asked)) == len(asked) for asked in tried.values())
    assert len(tried) <= rounds
