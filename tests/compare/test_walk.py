from typing import Any

import pytest

from gnomon.compare import exact
from gnomon.compare.paths import keys_of, render
from gnomon.compare.walk import DEEP, TooMany, Walk
from tests.compare.values import HASH, OTHER_HASH, block, log, receipt, transaction


def _walk(a: Any, b: Any, limit: int = 1000) -> dict[str, str]:
    """Return path → class."""
    walk = Walk(exact.same, limit)
    return {render("$", keys_of(found.place)): found.class_ for found in walk.run(a, b)}


def _without(value: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: member for name, member in value.items() if name not in names}


TRACE = {"transactionHash": HASH, "traceAddress": [0], "result": {"output": "0x"}}


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": True}, {"$.a": "type"}),
        ({"a": 1}, {}, {"$.a": "missing_field"}),
        ({}, {"a": 1}, {"$.a": "extra_field"}),
        ({"a": None}, {}, {"$.a": "null_vs_absent"}),
        ({}, {"a": None}, {"$.a": "null_vs_absent"}),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, {"$.a.b[1]": "value"}),
        ([1, 2, 3], [3, 1, 2], {"$": "array_order"}),
        ([1, 1, 2], [1, 2, 2], {"$[1]": "value"}),
        ([1, True], [True, 1], {"$": "array_order"}),
        ([1, 2], [1, 2, 3], {"$": "array_length"}),
        ([], [1], {"$": "empty_vs_data"}),
        ({"a": [[1, 2], [3]]}, {"a": [[2, 1], [3]]}, {"$.a[0]": "array_order"}),
        (None, {"a": 1}, {"$": "empty_vs_data"}),
        (
            {"0xAb": {"n": 1}},
            {"0xab": {"n": 1}},
            {"$['0xAb']": "hex_case", "$['0xab']": "hex_case"},
        ),
        (
            {"0xAb": {"n": 1}, "b": 1},
            {"0xab": {"n": 2}, "c": 1},
            {
                "$['0xAb']": "hex_case",
                "$['0xab']": "hex_case",
                "$['0xAb'].n": "value",
                "$.b": "missing_field",
                "$.c": "extra_field",
            },
        ),
        (
            {"0x1": 1, "0x01": 2},
            {"0x001": 1},
            {"$['0x1']": "hex_padding", "$['0x001']": "hex_padding", "$['0x01']": "missing_field"},
        ),
        (block(), block(hash=OTHER_HASH), {"$.hash": "reorg_block_hash"}),
        (block(), block(hash=OTHER_HASH, number="0x65"), {"$.hash": "value", "$.number": "value"}),
        (block(), block(hash=None), {"$.hash": "empty_vs_data"}),
        (log(0), log(0, blockHash=OTHER_HASH), {"$.blockHash": "reorg_block_hash"}),
    ],
)
def test_differences_have_their_place_and_class(a: Any, b: Any, expected: dict[str, str]) -> None:
    """Members, elements, order, length, spellings of names, and two hashes at one height."""

    assert expected == _walk(a, b)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([log(0), log(1), log(2)], [log(1), log(2, data="0x")], {"$": "array_length", "$[2].data": "empty_vs_data"}),
        ([receipt(0), receipt(1)], [receipt(1, status="0x0")], {"$": "array_length", "$[1].status": "value"}),
        ([transaction(0)], [transaction(1), transaction(0, gas="0x1")], {"$": "array_length", "$[0].gas": "value"}),
        (
            [TRACE],
            [TRACE | {"traceAddress": []}, TRACE | {"result": {}}],
            {"$": "array_length", "$[0].result.output": "missing_field"},
        ),
        (
            [TRACE, {"type": "reward"}],
            [TRACE | {"result": {}}],
            {"$": "array_length", "$[0].result.output": "missing_field"},
        ),
        (
            [{"index": "0x1", "amount": "0x1"}],
            [{"index": "0x2", "amount": "0x1"}, {"index": "0x1", "amount": "0x3"}],
            {"$": "array_length", "$[0].amount": "value"},
        ),
        (
            [{"txHash": HASH, "result": 1}],
            [{"txHash": OTHER_HASH, "result": 1}, {"txHash": HASH, "result": 2}],
            {"$": "array_length", "$[0].result": "value"},
        ),
        ([log(0), log(0, data="0x1")], [log(0, data="0x2")], {"$": "array_length"}),
        ([{"pc": 1}, {"pc": 2}], [{"pc": 2}], {"$": "array_length"}),
        ([log(0), 5], [log(0, data="0x2")], {"$": "array_length"}),
    ],
)
def test_lists_of_different_length_are_aligned_by_key(a: Any, b: Any, expected: dict[str, str]) -> None:
    """Partners by key are compared, at the primary's index; without a key, or with one used twice, only the list."""

    assert expected == _walk(a, b)


def test_the_limit_of_differences_stops_the_walk() -> None:
    """At the limit all is well; one more raises, and what was found stays."""
    a, b = [0] * 10, [1] * 10
    walk = Walk(exact.same, 9)
    with pytest.raises(TooMany):
        walk.run(a, b)

    assert len(walk.differences) == 9
    assert len(_walk(a, b, limit=10)) == 10


def test_elements_keep_their_index_when_a_mask_took_others() -> None:
    """The path names the place in the answer, not in what the mask left."""
    a, b = [1, 2], [1, 3]
    walk = Walk(exact.same, 10, {id(a): [4, 7]})

    assert [render("$", keys_of(found.place)) for found in walk.run(a, b)] == ["$[7]"]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, 2, 3], [3, 1, 2], [("array_order", [])]),
        ([True], [1], [("type", [0])]),
        ({"x": [{"y": 1}]}, {"x": [{"y": 2}]}, [("value", ["x", 0, "y"])]),
        (
            [{"hash": "0x1", "v": 1}, {"hash": "0x2", "v": 1}],
            [{"hash": "0x2", "v": 2}],
            [("array_length", []), ("value", [1, "v"])],
        ),
    ],
)
@pytest.mark.parametrize("depth", [0, DEEP - 2, DEEP - 1, DEEP, 200])
def test_differences_are_the_same_at_any_depth(a: Any, b: Any, expected: list[Any], depth: int) -> None:
    """Where values are compared by number too."""
    for _ in range(depth):
        a, b = {"calls": a}, {"calls": b}
    found = Walk(exact.same, 100).run(a, b)

    assert [(d.class_, keys_of(d.place)[depth:]) for d in found] == expected


def test_depth_does_not_multiply_the_work() -> None:
    """A long list below 300 levels is looked at a bounded number of times."""
    n_looked = 0

    class Counted(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal n_looked
            n_looked += 1
            return str.__eq__(self, str(other))

    a: Any = [*(Counted(i) for i in range(100)), 1]
    b: Any = [*(Counted(i) for i in range(100)), 2]
    for _ in range(300):
        a, b = [a], [b]
    Walk(exact.same, 10).run(a, b)

    assert n_looked < 100 * 2 * DEEP
