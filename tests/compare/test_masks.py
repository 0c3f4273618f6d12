import copy
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.compare import masks
from gnomon.compare.errors import MaskError
from gnomon.errors import UsageError
from tests.compare.values import values


def _masked(value: Any, *texts: str) -> Any:
    value = copy.deepcopy(value)
    masks.compile(texts).remove(value)
    return value


LOGS = {
    "logs": [{"data": 1, "x": 2}, {"data": 3}],
    "log": 4,
    "a.b": {"c": 5, "d": 6},
    "m": {"p": {"x": 7}, "q": {"x": 8}},
}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((), LOGS),
        (("log",), {k: v for k, v in LOGS.items() if k != "log"}),
        (("lo",), LOGS),
        (("logs.*.data",), LOGS | {"logs": [{"x": 2}, {}]}),
        (("logs.data",), LOGS),
        (("logs.1.data",), LOGS | {"logs": [{"data": 1, "x": 2}, {}]}),
        (("logs.1",), LOGS | {"logs": [{"data": 1, "x": 2}]}),
        (("logs.*",), LOGS | {"logs": []}),
        (("'a.b'.c",), LOGS | {"a.b": {"d": 6}}),
        (('"a.b".c',), LOGS | {"a.b": {"d": 6}}),
        (("a.b.c",), LOGS),
        (("m.*.x",), LOGS | {"m": {"p": {}, "q": {}}}),
        (("**.x",), LOGS | {"logs": [{"data": 1}, {"data": 3}], "m": {"p": {}, "q": {}}}),
        (("**.log",), {k: v for k, v in LOGS.items() if k != "log"}),
        (("m.**.x",), LOGS | {"m": {"p": {}, "q": {}}}),
        (("**.logs.**.data",), LOGS | {"logs": [{"x": 2}, {}]}),
        (("*.p", "m.q"), LOGS | {"m": {}}),
        (("logs", "logs.*.data"), {k: v for k, v in LOGS.items() if k != "logs"}),
        (("logs.*.data", "logs"), {k: v for k, v in LOGS.items() if k != "logs"}),
        (("*",), {}),
    ],
)
def test_a_mask_takes_whole_segments_out(texts: tuple[str, ...], expected: object) -> None:
    """Names, indexes, one level, any depth, quoted names, wildcards beside names; never a part of a name."""

    assert expected == _masked(LOGS, *texts)


def test_a_mask_on_a_root_list_begins_with_a_wildcard() -> None:
    """`*.a` is for each element; `a` finds nothing in a list; a scalar has nothing to mask."""

    assert _masked([{"a": 1, "b": 2}], "*.a") == [{"b": 2}]
    assert _masked([{"a": 1}], "a") == [{"a": 1}]
    assert _masked("0x1", "a", "*", "**.a") == "0x1"


def test_what_was_removed_is_counted() -> None:
    """Each member and element once, whatever number of masks names it."""
    value = [{"a": 1, "b": {"a": 2}}, {"a": 3}]

    assert masks.compile(["**.a", "*.a", "*.b.a"]).remove(value) == 3


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("  ", 0),
        (".a", 0),
        ("a..b", 2),
        ("a.", 1),
        ("$.result.a", 0),
        ("a[0]", 1),
        ("a**", 1),
        ("a.b*", 3),
        ("**", 0),
        ("a.**", 2),
        ("'a", 0),
        ("'a\\", 0),
        ("'a'b", 3),
        ("a.'b'c", 5),
        ("a b", 1),
        ('a"b', 1),
        ("x" * 1001, 0),
    ],
)
def test_what_is_no_mask_is_refused_with_a_pointer(text: str, position: int) -> None:
    """The message shows the text and a caret under the character."""
    with pytest.raises(MaskError) as caught:
        masks.compile(["fine.one", text])

    assert position == caught.value.position
    assert str(caught.value).endswith("\n    " + " " * position + "^")
    assert isinstance(caught.value, UsageError)
    assert isinstance(caught.value, ValueError)


def test_too_many_masks_are_refused() -> None:
    """1,000 are taken, 1,001 are not."""
    masks.compile([f"m{n}" for n in range(1000)])
    with pytest.raises(MaskError):
        masks.compile([f"m{n}" for n in range(1001)])


def test_many_wildcards_stay_cheap() -> None:
    """States are built on demand, so deep alternatives do not explode."""
    texts = [".".join(["**"] + ["*"] * n + [name]) for n in range(1, 12) for name in ("a", "b", "c")]
    value: Any = {"a": 1}
    for _ in range(60):
        value = {"x": value, "b": 1}

    assert masks.compile(texts).remove(value) > 0


@pytest.mark.parametrize("text", ["a", "*.logs.*.x", "**.x", "'a.b'.c", r"'it\'s'", r"'back\\slash'", "''", "'*'", "0"])
def test_a_mask_shown_reads_back(text: str) -> None:
    """`show` gives one spelling that means the same."""

    assert masks.parse(masks.show(masks.parse(text))) == masks.parse(text)


@given(st.lists(st.text(alphabet="ab.*'\"\\$[ 0", max_size=8), max_size=3))
def test_any_text_is_a_mask_or_the_named_error(texts: list[str]) -> None:
    """No text crashes the compiler, and what it takes can be applied."""
    try:
        found = masks.compile(texts)
    except MaskError:
        return
    found.remove({"a": {"b": [1, {"a": 2}]}})


MASKS = st.lists(
    st.lists(st.sampled_from(["a", "b", "'a.b'", "*", "**", "0", "logs"]), max_size=3).map(
        lambda s: ".".join([*s, "a"])
    ),
    max_size=4,
)


@given(values, MASKS, st.randoms(use_true_random=False))
def test_masks_commute_and_are_idempotent(value: Any, texts: list[str], rng: random.Random) -> None:
    """Their order and repetition never matter, one by one gives the same as all at once, and a second time nothing."""
    once = _masked(value, *texts)
    shuffled = texts + texts[:1]
    rng.shuffle(shuffled)

    assert once == _masked(value, *shuffled)
    assert masks.compile(texts) == masks.compile(shuffled)
    assert masks.compile(texts).version == masks.compile(shuffled).version
    if not any("0" in text for text in texts):
        one_by_one = value
        for text in shuffled:
            one_by_one = _masked(one_by_one, text)
        assert once == one_by_one
        assert once == _masked(once, *texts)


def test_versions_differ_when_masks_do() -> None:
    """A verdict can be traced to the masks that it used; without masks there is no version."""

    assert masks.compile(["a"]).version != masks.compile(["b"]).version
    assert masks.compile([]).version == ""
    assert masks.compile(["'a'"]).version == masks.compile(["a"]).version
