"""Differences that are forgiven, everywhere or below a path."""

import json

import pytest

from gnomon.compare import tolerances
from gnomon.compare.errors import MaskError, ToleranceError
from gnomon.compare.judge import Answer, Policy, Question, Verdict, judge


def _judge(a: object, b: object, *tolerated: str, kind: str = "result") -> Verdict:
    sides = [Answer(kind=kind, fragment=json.dumps(value).encode()) for value in (a, b)]  # type: ignore[arg-type]
    return judge(Question(method="eth_x"), sides[0], sides[1], Policy(tolerate=tolerances.compile(tolerated)))


BLOCK = {"size": "0x1", "logs": [{"address": "0xAB", "data": "0x1"}]}


@pytest.mark.parametrize(
    ("other", "tolerated", "outcome"),
    [
        ({**BLOCK, "size": "0x2"}, ["value"], "tolerated"),
        ({**BLOCK, "size": "0x2"}, ["value@size"], "tolerated"),
        ({**BLOCK, "size": "0x2"}, ["value@**.size"], "tolerated"),
        ({**BLOCK, "size": "0x2"}, ["value@logs"], "mismatch"),
        ({**BLOCK, "size": "0x2"}, ["type@size"], "mismatch"),
        ({**BLOCK, "size": "0x2"}, ["value@siz", "value@size.x"], "mismatch"),
        ({"size": "0x1", "logs": [{"address": "0xab", "data": "0x2"}]}, ["hex_case", "value@logs.*.data"], "tolerated"),
        ({"size": "0x1", "logs": [{"address": "0xab", "data": "0x2"}]}, ["hex_case", "value@logs.1.data"], "mismatch"),
        ({"size": "0x1", "logs": [{"address": "0xab", "data": "0x2"}]}, ["hex_case@logs", "value@logs"], "tolerated"),
        ({"size": "0x1", "logs": [{"address": "0xab", "data": "0x2"}]}, ["hex_case@logs"], "mismatch"),
        ({"size": "0x1"}, ["missing_field@logs"], "tolerated"),
        ({"size": "0x1", "logs": []}, ["empty_vs_data@logs"], "tolerated"),
    ],
)
def test_a_pair_is_tolerated_when_every_difference_is(other: object, tolerated: list[str], outcome: str) -> None:
    """A path forgives its member and what lies below it, in the one class."""
    verdict = _judge(BLOCK, other, *tolerated)

    assert verdict.outcome == outcome
    assert verdict.class_ != "none"
    assert verdict.paths


def test_a_path_forgives_nothing_in_errors() -> None:
    """Paths lead from the root of a result."""
    a, b = {"code": 3, "message": "x"}, {"code": 3, "message": "y"}

    assert _judge(a, b, "error_message@message", "error_message@**.message", kind="error").outcome == "mismatch"
    assert _judge(a, b, "error_message", kind="error").outcome == "tolerated"


def test_the_version_is_the_tolerances_themselves() -> None:
    """In one order and spelling."""
    a = tolerances.compile(["value@'size'", "hex_case", "value@a.b", "hex_case"])
    b = tolerances.compile(["value@a.'b'", "value@size", "hex_case"])

    assert a.version == b.version == "hex_case,value@a.b,value@size"
    assert tolerances.compile([]) == tolerances.NO_TOLERANCES


def test_what_is_no_tolerance_is_refused() -> None:
    """With the classes, or a pointer into the path."""
    with pytest.raises(ToleranceError, match="'hexcase' names no class of difference; there are stale_head"):
        tolerances.compile(["hexcase"])
    with pytest.raises(ToleranceError, match="'@size' names no class"):
        tolerances.compile(["@size"])
    with pytest.raises(MaskError, match="is empty"):
        tolerances.compile(["value@"])
    with pytest.raises(MaskError, match="character 2"):
        tolerances.compile(["value@a[0]"])
