import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.compare.cases import BadCase, as_line, judge_case, read_case
from gnomon.compare.errors import MaskError, ToleranceError
from tests.compare.shared import shared_folder
from tests.compare.values import HASH, block, log, receipt

_SHARED = shared_folder("divergence")
_FILES = sorted(_SHARED.glob("*.json")) if _SHARED is not None else []
_SAME = {"identical_masked": "identical", "tolerated": "identical"}


def _verdict(**members: Any) -> dict[str, Any]:
    line = {"id": "x", "network": "evm:1", "head": {"latest": 100, "finalized": 90}, "ignore_fields": [], **members}
    case = read_case(json.dumps(line).encode())
    found: dict[str, Any] = json.loads(as_line(case.case_id, judge_case(case)))
    return found


@pytest.mark.skipif(not _FILES, reason="no shared cases (GNOMON_SHARED, or ../shared)")
@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_a_known_divergence_gets_the_verdict_a_careful_person_gives(file: Path) -> None:
    """By the pass rule of the specification's cases."""
    members = json.loads(file.read_text())
    expected = members.pop("expected")
    found = _verdict(**members)
    outcome = _SAME.get(found["outcome"], found["outcome"])

    assert outcome in [expected["outcome"], *expected.get("outcome_also_ok", [])]
    assert found["class"] in [expected["class"], *expected.get("class_also_ok", [])]
    assert found["finality"] in [expected["finality"], *expected.get("finality_also_ok", [])]
    if outcome == "mismatch":
        assert sorted(set(found["paths"])) == sorted(expected["paths"])


def _result(value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": value}


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        (
            {
                "method": "eth_getBlockByNumber",
                "params": ["0x50", True],
                "primary": _result(block()),
                "shadow": _result(block(size="0x1")),
            },
            ("mismatch", "value", "finalized", ["$.result.size"]),
        ),
        (
            {
                "method": "eth_getBlockReceipts",
                "params": ["0x50"],
                "ignore_fields": ["*.logs.*.data", "*.status"],
                "primary": _result([receipt(0)]),
                "shadow": _result([receipt(0, status="0x0", logs=[log(0, data="0x1"), log(1, data="0x2")])]),
            },
            ("identical_masked", "none", "finalized", []),
        ),
        (
            {
                "method": "eth_call",
                "params": [{}, "0x50"],
                "primary_raw": '{"id":1,"result":1.0}',
                "primary": _result(2),
                "shadow_raw": '{"id":7,"result":1}',
                "tolerate": ["encoding"],
            },
            ("tolerated", "encoding", "finalized", ["$.result"]),
        ),
        (
            {"method": "eth_call", "params": [{}, "0x50"], "primary": _result(1), "shadow_raw": "<html>"},
            ("missing", "none", "finalized", []),
        ),
        (
            {
                "method": "eth_getLogs",
                "params": [{"fromBlock": "0x1", "toBlock": "0x5f"}],
                "primary": _result([log(0)]),
                "shadow": _result([]),
                "head": None,
            },
            ("mismatch", "empty_vs_data", "unknown", ["$.result"]),
        ),
        (
            {
                "method": "(batch)",
                "params": [{"id": 1, "method": "eth_chainId"}],
                "primary": [_result("0x1")],
                "shadow": [_result("0x2")],
            },
            ("mismatch", "value", "finalized", ["$[0].result"]),
        ),
        (
            {
                "method": "(batch)",
                "params": [{"id": 1, "method": "eth_chainId"}],
                "primary": [_result("0x1")],
                "shadow": {"id": None, "error": {"code": -32005, "message": "rate limit exceeded"}},
            },
            ("error", "error_vs_result", "unknown", ["$.error", "$.result"]),
        ),
        (
            {
                "method": "eth_getTransactionByHash",
                "params": [HASH],
                "primary_raw": '{"result":' + "[" * 5000 + "]" * 5000 + "}",
                "shadow": _result(None),
            },
            ("undecided", "none", "unknown", []),
        ),
    ],
)
def test_a_line_brings_its_own_masks_and_tolerances(members: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """Wire text wins over the parsed response; no JSON is no answer; batches are lists."""
    found = _verdict(**members)

    assert found == dict(zip(("id", "outcome", "class", "finality", "paths"), ("x", *expected), strict=True))


def test_numbers_of_a_line_keep_their_spelling() -> None:
    """Also where the response is given parsed."""
    text = '{"id":1,"method":"x","primary":{"result":9007199254740993},"shadow":{"result":9007199254740992}}'
    big = read_case(text.encode())
    decimal = read_case(b'{"id":1,"method":"x","primary":{"result":1.0},"shadow":{"result":1}}')

    assert judge_case(big).class_ == "value"
    assert judge_case(decimal).class_ == "encoding"


def test_wire_text_may_be_no_utf8() -> None:
    """Half surrogate pairs in the line stand for what was on the wire."""
    line = rb'{"id":1,"primary_raw":"{\"result\":\"\udcff\"}","shadow_raw":"{\"result\":\"\\ud800\"}"}'

    assert judge_case(read_case(line)).paths == ("$.result",)


def test_equal_texts_are_identical_however_deep() -> None:
    """Bytes decide before depth does."""
    deep = '{"result":' + "[" * 5000 + "]" * 5000 + "}"

    assert _verdict(method="x", primary_raw=deep, shadow_raw=deep)["outcome"] == "identical"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"nul",
        b"{}",
        b'{"primary":{}}',
        b'{"primary":{},"shadow":{},"head":5}',
        b'{"primary":{},"shadow":{},"head":{"latest":"0x1"}}',
        b'{"primary":{},"shadow":{},"ignore_fields":"a"}',
        b'{"primary":{},"shadow":{},"method":5}',
        b'{"primary_raw":5,"shadow":{}}',
        b'{"primary":{},"shadow":{}}x',
        b'{"primary":{},"shadow":{},"head":{"latest":-1}}',
    ],
)
def test_what_is_no_case_is_one_named_error(line: bytes) -> None:
    """The message says what is wrong."""
    with pytest.raises(BadCase, match=r"\w"):
        read_case(line)


def test_a_mask_or_tolerance_that_does_not_compile_is_named() -> None:
    """With its place."""
    with pytest.raises(MaskError):
        read_case(b'{"primary":{},"shadow":{},"ignore_fields":["a..b"]}')
    with pytest.raises(ToleranceError):
        read_case(b'{"primary":{},"shadow":{},"tolerate":["no_class"]}')


@given(st.binary(max_size=60) | st.text(max_size=30).map(lambda text: text.encode()))
def test_any_line_is_a_case_or_the_named_error(line: bytes) -> None:
    """No line crashes it."""
    try:
        case = read_case(
            b'{"primary":{"result":' + line + b'},"shadow_raw":' + json.dumps(line.decode("latin1")).encode() + b"}"
        )
    except (BadCase, MaskError):
        return
    assert as_line(case.case_id, judge_case(case))
