"""What rules do to a pair, and to the stored pairs of a method."""

from collections.abc import Sequence

import pytest

from gnomon.compare import masks, tolerances
from gnomon.compare.judge import Answer, Policy, Question, judge
from gnomon.compare.preview import Effect, Elsewhere, Kind, Preview, elsewhere, preview

QUESTION = Question(method="eth_getBlockReceipts", network="evm:1")


def policy(masked: Sequence[str] = (), tolerated: Sequence[str] = ()) -> Policy:
    return Policy(masks=masks.compile(masked), tolerate=tolerances.compile(tolerated))


def previewed(
    primary: bytes,
    shadow: bytes,
    masked: Sequence[str] = (),
    tolerated: Sequence[str] = (),
    explained: Sequence[str] = (),
    judged_bytes: int = 1 << 20,
) -> Preview:
    return preview(
        QUESTION,
        Answer(kind="result", fragment=primary),
        Answer(kind="result", fragment=shadow),
        policy(masked, tolerated),
        explained_masks=[text for text in explained if "@" not in text and text != "value"],
        explained_tolerances=[text for text in explained if "@" in text or text == "value"],
        judged_bytes=judged_bytes,
    )


def told(effects: Sequence[Effect]) -> dict[str, list[tuple[str, str, int]] | None]:
    return {
        one.rule: None if one.findings is None else [(f.generic_path, f.class_, f.n_paths) for f in one.findings]
        for one in effects
    }


A, B = b'[{"t":1,"n":1,"x":5},{"t":2,"n":2,"x":5}]', b'[{"n":3,"x":5},{"n":2,"x":6}]'


def test_each_mask_says_what_it_hides_alone() -> None:
    """On or off: the kinds that are gone with it, with the places of each; one that hides nothing says so."""
    found = previewed(A, B, ["*.t"], explained=["*.t", "*.n", "*.*", "*.gone"])

    assert told(found.masks) == {
        "*.t": [("$.result[*].t", "missing_field", 2)],
        "*.n": [("$.result[*].n", "value", 1)],
        "*.*": [
            ("$.result[*].n", "value", 1),
            ("$.result[*].t", "missing_field", 2),
            ("$.result[*].x", "value", 1),
        ],
        "*.gone": [],
    }


def test_each_place_says_what_becomes_of_it() -> None:
    """Masked, tolerated, or counted: all that differs without rules, in order."""
    found = previewed(A, B, ["*.t"], ["value@*.n"])

    assert [(one.path, one.class_, one.state) for one in found.places] == [
        ("$.result[0].n", "value", "tolerated"),
        ("$.result[0].t", "missing_field", "masked"),
        ("$.result[1].x", "value", "counted"),
        ("$.result[1].t", "missing_field", "masked"),
    ]


def test_a_tolerance_says_what_it_forgives_of_the_rest() -> None:
    """What a mask hides already is not forgiven too."""
    found = previewed(A, B, ["*.n"], explained=["value", "value@*.n", "missing_field@*.t"])

    assert told(found.tolerances) == {
        "value": [("$.result[*].x", "value", 1)],
        "value@*.n": [],
        "missing_field@*.t": [("$.result[*].t", "missing_field", 2)],
    }


@pytest.mark.parametrize(
    ("masked", "tolerated"), [((), ()), (("*.t",), ()), (("*.t", "*.n", "*.x"), ()), (("*.t",), ("value",))]
)
def test_the_verdict_is_the_one_that_is_stored(masked: tuple[str, ...], tolerated: tuple[str, ...]) -> None:
    """There is one comparer: `judge` gives the same with the same rules."""
    answers = Answer(kind="result", fragment=A), Answer(kind="result", fragment=B)

    assert judge(QUESTION, *answers, policy(masked, tolerated)) == previewed(A, B, masked, tolerated).verdict


def test_a_mask_within_reordered_elements_takes_the_order_too() -> None:
    """The list differs as a whole; with the mask nothing is left, so the mask hid that."""
    found = previewed(b'[{"t":1},{"t":2}]', b'[{"t":2},{"t":1}]', ["*.t"], explained=["*.t"])

    assert told(found.masks) == {"*.t": [("$.result", "array_order", 1)]}
    assert [(one.path, one.state) for one in found.places] == [("$.result", "masked")]


def test_a_large_pair_is_judged_and_not_explained_without_end() -> None:
    """The verdict always; the effects of masks as far as the bytes to be read go."""
    found = previewed(A, B, ["*.t"], explained=["*.t", "*.n", "*.x"], judged_bytes=2 * len(A + B))

    assert found.verdict.outcome == "mismatch"
    assert [one.findings is None for one in found.masks] == [False, False, True]


def test_answers_that_are_not_kept_explain_nothing() -> None:
    """Undecided without their texts: what a mask hides is not known, which is not nothing."""
    found = preview(QUESTION, Answer(kind="result"), Answer(kind="result"), policy(["*.t"]), explained_masks=["*.t"])

    assert (found.verdict.outcome, found.verdict.reason) == ("undecided", "no_body")
    assert found.masks == (Effect("*.t", None),)


def test_stored_pairs_are_counted_by_what_is_left_of_them() -> None:
    """Cleared: nothing is left; touched: something went. Errors have no masks; a path that is none counts as left."""
    n = Kind("$.result[3].n", "$.result[*].n", "value")
    x = Kind("$.result[0].x", "$.result[*].x", "value")
    error = Kind("$.error.n", "$.error.n", "error_message")
    sets = [("s1", [n], 5), ("s1", [n, x], 3), ("s1", [x], 2), ("s2", [error], 1), ("s2", [Kind("?", "?", "value")], 1)]

    assert elsewhere(sets, masks.compile(["*.n", "n"]), tolerances.compile([])) == {
        "s1": Elsewhere(10, 5, 8, {("$.result[*].n", "value"): 8}),
        "s2": Elsewhere(2, 0, 0, {}),
    }
    assert elsewhere(sets, masks.NO_MASKS, tolerances.compile(["value@*.x", "error_message"])) == {
        "s1": Elsewhere(10, 2, 5, {("$.result[*].x", "value"): 5}),
        "s2": Elsewhere(2, 1, 1, {("$.error.n", "error_message"): 1}),
    }
