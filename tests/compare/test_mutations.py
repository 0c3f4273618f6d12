"""
One change in one answer gives `mismatch` at exactly its path: on answers of this repository, and on those of
execution-apis where the shared folder is at hand.
"""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from gnomon.compare.judge import Answer, Kind, Question, Verdict, judge
from gnomon.compare.paths import render
from tests.compare.shared import shared_folder
from tests.compare.values import ANSWERS

Case = tuple[str, Any, Kind, Any]
N_MUTATIONS = 400
_MISSING = "no shared cases (GNOMON_SHARED, or ../shared)"


def _own() -> list[Case]:
    return [(method, params, "result", result) for method, (params, result) in ANSWERS.items()]


def _execution_apis() -> list[Case]:
    folder = shared_folder("execution-apis")
    if folder is None:
        pytest.skip(_MISSING)
    cases: list[Case] = []
    for file in sorted(folder.glob("*/*.io")):
        request: dict[str, Any] = {}
        for line in file.read_text().splitlines():
            if line.startswith(">> "):
                request = json.loads(line[3:])
            elif line.startswith("<< "):
                response = json.loads(line[3:])
                kind: Kind = "error" if "error" in response else "result"
                cases.append((request["method"], request.get("params"), kind, response[kind]))
    return cases


def _judged(case: Case, other: Any, **style: Any) -> Verdict:
    method, params, kind, value = case
    primary = Answer(kind=kind, fragment=json.dumps(value).encode())
    shadow = Answer(kind=kind, fragment=json.dumps(other, **style).encode())
    return judge(Question(method=method, params=params, latest=100, finalized=100), primary, shadow)


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, (dict, list)) and value:
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(member, (*path, key))
    else:
        yield path


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _other(value: Any, rng: random.Random) -> Any:
    """Return another leaf than `value`."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str) and value:
        last = rng.choice([digit for digit in "0123456789abcdef" if digit != value[-1].lower()])
        return rng.choice([value[:-1] + last, value + last])
    return "0xabc1"


def _mutate(value: Any, rng: random.Random) -> tuple[Any, list[str | int], bool]:
    """Return a changed copy, the path that must be named, and whether elements were moved."""
    value = copy.deepcopy(value)
    path = rng.choice(list(_leaves(value)))
    if not path:
        return _other(value, rng), [], False
    parent, key = _at(value, path[:-1]), path[-1]
    kind = rng.choice(["change", "drop", "add", "move"])
    if kind == "drop":
        del parent[key]
    elif kind == "add" and isinstance(parent, list):
        parent.insert(rng.randrange(len(parent) + 1), "0xadded")
    elif kind == "add":
        parent["added"] = "0x1"
        return value, [*path[:-1], "added"], False
    elif kind == "move" and isinstance(parent, list) and any(element != parent[0] for element in parent):
        before = list(parent)
        while parent == before:
            rng.shuffle(parent)
        return value, [*path[:-1]], True
    else:
        parent[key] = _other(parent[key], rng)
        return value, [*path], False
    return value, [*path[:-1]] if isinstance(parent, list) else [*path], False


@pytest.mark.parametrize("source", [_own, _execution_apis])
def test_every_answer_is_identical_to_itself(source: Any) -> None:
    """Also written with its members in another order; equal refusals have nothing to compare."""
    for case in source():
        expected = {"identical"} if case[2] == "result" else {"identical", "incomparable"}

        assert _judged(case, case[3]).outcome in expected
        assert _judged(case, case[3], sort_keys=True, indent=1).outcome in expected


def _check_mutations(cases: list[Case], n: int, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(n):
        case = rng.choice(cases)
        other, path, is_moved = _mutate(case[3], rng)
        verdict = _judged(case, other)
        where = (case[0], verdict.paths, path)

        assert set(verdict.paths) == {render(f"$.{case[2]}", path)}, where
        if case[2] == "result":
            assert verdict.outcome in ("mismatch", "incomparable"), where
            assert not is_moved or verdict.outcome == "incomparable" or verdict.class_ == "array_order", where


@pytest.mark.parametrize("source", [_own, _execution_apis])
def test_one_change_is_found_at_exactly_its_path(source: Any) -> None:
    """A leaf changed, a member dropped or added, elements dropped, added or moved; seeded."""
    _check_mutations(source(), N_MUTATIONS, seed=4)


@pytest.mark.deep
@pytest.mark.parametrize("source", [_own, _execution_apis])
def test_ten_thousand_changes_are_found_at_exactly_their_path(source: Any) -> None:
    """The same at length."""
    _check_mutations(source(), 10_000, seed=5)
