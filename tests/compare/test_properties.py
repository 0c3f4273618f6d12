import copy
import json
import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gnomon.compare import masks, tolerances
from gnomon.compare.judge import NO_POLICY, Answer, Policy, Question, Verdict, judge
from gnomon.rpc.methods import METHODS
from tests.compare.values import values

QUESTION = Question(method="eth_call", params=[{}, "0x5a"], latest=100, finalized=90)
SWAPPED = {"missing_field": "extra_field", "extra_field": "missing_field"}
TOLERANCES = ["value", "type", "hex_case", "missing_field", "extra_field@**.a", "value@a", "value@*", "array_length"]
KINDS = st.sampled_from(["result", "error", "none"])


def _judged_texts(a: bytes, b: bytes, policy: Policy = NO_POLICY) -> Verdict:
    return judge(QUESTION, Answer(kind="result", fragment=a), Answer(kind="result", fragment=b), policy)


def _judged(a: Any, b: Any, policy: Policy = NO_POLICY) -> Verdict:
    return _judged_texts(json.dumps(a).encode(), json.dumps(b).encode(), policy)


def _changed(value: Any, rng: random.Random) -> Any:
    """Return a copy with one part changed, so that pairs are near each other."""
    value = copy.deepcopy(value)
    if isinstance(value, list) and value and rng.random() < 0.8:
        index = rng.randrange(len(value))
        value[index] = _changed(value[index], rng)
        return value
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice(sorted(value))
        value[name] = _changed(value[name], rng)
        return value
    return rng.choice([None, 0, True, "0x01", [], {}, "0xAB", [1]])


pairs = st.tuples(values, st.randoms(use_true_random=False)).map(lambda pair: (pair[0], _changed(pair[0], pair[1])))


@given(st.tuples(values, values) | pairs)
@example(({"0x1": 1, "0x01": 2}, {"0x001": 3}))
def test_swapping_the_sides_swaps_missing_and_extra(pair: tuple[Any, Any]) -> None:
    """The outcome stays, classes mirror, and the same number of paths is named."""
    forth, back = _judged(*pair), _judged(*reversed(pair))

    assert forth.outcome == back.outcome
    assert {SWAPPED.get(class_, class_) for class_ in forth.classes} == set(back.classes)
    assert len(forth.paths) == len(back.paths)
    if "array_length" not in forth.classes:  # else partners are named by the index that they have in the primary
        assert set(forth.paths) == set(back.paths)


@given(pairs, st.lists(st.sampled_from(TOLERANCES), max_size=3), st.sampled_from(TOLERANCES))
def test_one_more_tolerance_never_turns_tolerated_into_mismatch(
    pair: tuple[Any, Any], some: list[str], one: str
) -> None:
    """Nor does it change what is found, or the order of tolerances matter."""
    less, more, reordered = (
        _judged(*pair, Policy(tolerate=tolerances.compile(texts))) for texts in (some, [*some, one], [one, *some[::-1]])
    )

    assert more == reordered
    assert less.outcome == more.outcome or (less.outcome, more.outcome) == ("mismatch", "tolerated")
    assert (less.class_, less.findings, less.paths) == (more.class_, more.findings, more.paths)


@given(pairs, st.lists(st.sampled_from(["a", "*", "**.a", "*.logs", "logs.*.a", "0", "'a.b'"]), max_size=3))
def test_masks_applied_twice_remove_nothing_more(pair: tuple[Any, Any], texts: list[str]) -> None:
    """But for places that are indexes, which move up when one before them goes."""
    mask_set = masks.compile([text for text in texts if text != "0"])
    value = copy.deepcopy(pair[0])
    mask_set.remove(value)

    assert mask_set.remove(copy.deepcopy(value)) == 0


@given(values)
def test_an_answer_is_identical_to_itself(value: Any) -> None:
    """Whatever it holds."""

    assert _judged(value, value).outcome == "identical"


@given(st.tuples(values, values) | pairs, st.integers(0, 4))
def test_member_order_and_white_space_never_matter(pair: tuple[Any, Any], indent: int) -> None:
    """Both sides may be written in any way."""
    plain = _judged(*pair)
    a, b = (json.dumps(value, sort_keys=True, indent=indent).encode() + b" \n" for value in pair)
    written = _judged_texts(a, b)

    assert (plain.outcome, plain.class_, set(plain.paths)) == (written.outcome, written.class_, set(written.paths))


@given(pairs)
def test_a_value_that_differs_is_never_identical(pair: tuple[Any, Any]) -> None:
    """Unless both are empty; JSON text with sorted members is the judge of the judge."""
    texts = [json.dumps(value, sort_keys=True) for value in pair]
    both_empty = all(value in (None, "", "0x", [], {}) and value is not False for value in pair)

    assert (_judged(*pair).outcome == "identical") == (texts[0] == texts[1] or both_empty)


@given(pairs, st.lists(st.sampled_from(["a", "*", "**.a", "*.logs", "logs.*.a", "0", "'a.b'"]), max_size=3))
def test_masks_only_ever_take_differences_away(pair: tuple[Any, Any], texts: list[str]) -> None:
    """A pair that is equal stays so, and the order of masks never matters."""
    plain = _judged(*pair)
    masked = _judged(*pair, Policy(masks=masks.compile(texts)))
    reordered = _judged(*pair, Policy(masks=masks.compile(reversed(texts))))

    assert masked == reordered
    if plain.outcome == "identical":
        assert masked.outcome == "identical"


@given(
    st.sampled_from([*sorted(METHODS), "nobody_knowsThis", ""]),
    values,
    st.tuples(KINDS, st.binary(max_size=40) | values.map(lambda value: json.dumps(value).encode())),
    st.tuples(KINDS, st.binary(max_size=40) | values.map(lambda value: json.dumps(value).encode())),
    st.none() | st.integers(0, 200),
)
def test_no_input_crashes_it(
    method: str, params: Any, primary: tuple[Any, bytes], shadow: tuple[Any, bytes], head: int | None
) -> None:
    """Any method, parameters, kinds and bytes get a verdict whose parts agree."""
    answers = [Answer(kind=kind, fragment=text if kind != "none" else b"") for kind, text in (primary, shadow)]
    verdict = judge(Question(method=method, params=params, latest=head, finalized=head), answers[0], answers[1])

    assert (verdict.class_ == "none") == (not verdict.findings)
    assert all(path.encode() for path in verdict.paths)
    assert all((f.primary_value + f.shadow_value).encode() for f in verdict.findings)


@pytest.mark.deep
def test_a_million_fuzzed_pairs_get_a_verdict() -> None:
    """Seeded bytes of JSON's own characters, cut and spliced."""
    rng = random.Random(20_000)
    parts = [*(bytes([c]) for c in b'{}[]",:-e1\xff'), b"null", b"true", b"0x1", b"1.0", b"\\u00", b'"a":', b'"0x']
    for _ in range(1_000_000):
        a, b = (b"".join(rng.choices(parts, k=rng.randrange(12))) for _ in range(2))
        verdict = _judged_texts(a, b)

        assert verdict.outcome in ("identical", "mismatch", "undecided")
