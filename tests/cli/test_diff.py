"""`gnomon diff` as a user runs it."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gnomon.cli import main

RECEIPTS = [{"transactionHash": f"0x{n:064x}", "status": "0x1", "gasUsed": "0x5208"} for n in range(30)]


def _file(folder: Path, name: str, value: Any) -> str:
    path = folder / name
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return str(path)


def _response(value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": value}


@pytest.mark.parametrize(
    ("primary", "shadow", "options", "status", "first"),
    [
        (_response({"a": 1, "b": 2}), _response({"b": 2, "a": 1}), [], 0, "identical · unknown"),
        (_response({"a": 1}), _response({"a": 2}), [], 1, "mismatch · value · unknown"),
        (_response({"a": 1}), _response({"a": 2}), ["--mask", "a"], 0, "identical_masked · unknown"),
        (_response("0x1"), _response("0x01"), ["--tolerate", "hex_padding"], 0, "tolerated · hex_padding · unknown"),
        (
            _response("0x1"),
            {"id": 2, "error": {"code": 3, "message": "x"}},
            [],
            1,
            "mismatch · error_vs_result · unknown",
        ),
        (
            _response("0x1"),
            {"id": 2, "error": {"code": -32005, "message": "x"}},
            [],
            1,
            "error · error_vs_result · unknown",
        ),
        (
            _response("Geth"),
            _response("Besu"),
            ["--method", "web3_clientVersion"],
            0,
            "incomparable · value · unknown · web3_clientVersion",
        ),
        ({"a": 1}, {"a": 1}, [], 0, "identical · unknown"),
        ({"a": 1}, _response({"a": 2}), [], 1, "mismatch · value · unknown"),
        ([1, 2], [2, 1], [], 1, "mismatch · array_order · unknown"),
        ([], [1], [], 1, "mismatch · empty_vs_data · unknown"),
        (
            [_response(1)],
            [_response(2)],
            ["--params", '[{"id":1,"method":"eth_chainId"}]'],
            1,
            "mismatch · value · finalized",
        ),
        ("0x1", "0x2", [], 1, "mismatch · value · unknown"),
        (
            _response({"a": 1}),
            _response(None),
            ["--method", "eth_getBlockByNumber", "--params", '["0x10"]', "--latest", "16", "--finalized", "9"],
            1,
            "mismatch · stale_head · unfinalized · eth_getBlockByNumber",
        ),
        (b"[" * 5000 + b"]" * 5000, _response(1), [], 1, "undecided · unknown"),
        (b'"\xff"', b'"\xfe"', [], 1, "mismatch · value · unknown"),
    ],
)
def test_a_pair_gets_a_verdict_and_a_status(
    primary: Any,
    shadow: Any,
    options: list[str],
    status: int,
    first: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """0 when the same, masked, tolerated or without a right answer; 1 when not; the first line says it all."""
    found = main(["diff", _file(tmp_path, "a.json", primary), _file(tmp_path, "b.json", shadow), *options])

    assert (found, capsys.readouterr().out.splitlines()[0]) == (status, first)


def test_many_equal_differences_are_one_block(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Big lists are folded: one path without index, a count, one example."""
    other = [{name: value for name, value in one.items() if name != "status"} for one in RECEIPTS]
    status = main(["diff", _file(tmp_path, "a.json", RECEIPTS), _file(tmp_path, "b.json", other)])
    out = capsys.readouterr().out

    assert status == 1
    assert "$.result[*].status  missing_field  ×30" in out
    assert "(absent)" in out
    assert len(out.splitlines()) < 12


def test_colour_follows_the_terminal_and_no_color(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never into a pipe, on a terminal unless NO_COLOR is set, always when asked."""
    files = [_file(tmp_path, "a.json", {"a": 1}), _file(tmp_path, "b.json", {"a": 2})]
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    main(["diff", *files])
    piped = capsys.readouterr().out
    main(["diff", *files, "--color", "always"])
    asked = capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    main(["diff", *files])
    terminal = capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main(["diff", *files])
    refused = capsys.readouterr().out

    assert ["\x1b" in text for text in (piped, asked, terminal, refused)] == [False, True, True, False]


def test_the_long_form_shows_what_the_masks_leave(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """DeepDiff's view beside the verdict, which it does not decide."""
    files = [_file(tmp_path, "a.json", {"a": 1.5, "b": 2}), _file(tmp_path, "b.json", {"a": 2.5, "b": 3})]
    main(["diff", *files, "--long", "--mask", "b"])
    out = capsys.readouterr().out

    assert "root['a']" in out
    assert "root['b']" not in out


def test_the_long_form_has_a_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Past it a line says so, and the verdict stands."""
    files = [_file(tmp_path, "a.json", ["x" * 3_000_000]), _file(tmp_path, "b.json", ["y" * 3_000_000])]

    assert main(["diff", *files, "--long"]) == 1
    assert "no long form: it is for single answers up to 2 MiB" in capsys.readouterr().out


def test_the_long_form_stops_after_a_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts of many lines can hold DeepDiff up for minutes; the verdict is there all the same."""
    monkeypatch.setattr("gnomon.cli.diff._LONG_SECONDS", 0.2)
    lines = ["\n".join(map(str, range(0, 30_000, step))) for step in (1, 2)]
    files = [_file(tmp_path, "a.json", lines[0]), _file(tmp_path, "b.json", lines[1])]

    assert main(["diff", *files, "--long"]) == 1
    assert "mismatch" in (out := capsys.readouterr().out)
    assert "no long form: DeepDiff did not come to an end" in out


def test_the_long_form_is_folded_and_cannot_paint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A thousand lines at most, escapes shown."""
    files = [_file(tmp_path, f"{n}.json", {f"\x1b[31m{i}": i + n for i in range(1500)}) for n in (0, 1)]
    main(["diff", *files, "--long"])
    out = capsys.readouterr().out

    assert "… and 500 more lines" in out
    assert "\x1b" not in out


CASES: list[dict[str, Any]] = [
    {
        "id": "one",
        "method": "eth_chainId",
        "params": [],
        "primary": _response("0x1"),
        "shadow": _response("0x2"),
        "head": None,
    },
    {
        "id": 2,
        "method": "eth_call",
        "params": [{}, "0x1"],
        "primary_raw": '{"result":1.0}',
        "shadow_raw": '{"result":1}',
        "head": {"latest": 9, "finalized": 5},
        "tolerate": ["encoding"],
    },
    {
        "id": None,
        "method": "eth_getLogs",
        "params": [{}],
        "primary": _response([{"a": 1, "b": 2}]),
        "shadow": _response([{"a": 1}]),
        "ignore_fields": ["*.b"],
    },
]
VERDICTS = [
    {"id": "one", "outcome": "mismatch", "class": "value", "finality": "finalized", "paths": ["$.result"]},
    {"id": 2, "outcome": "tolerated", "class": "encoding", "finality": "finalized", "paths": ["$.result"]},
    {"id": None, "outcome": "identical_masked", "class": "none", "finality": "unknown", "paths": []},
]


def test_cases_come_out_in_order_one_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 0 whatever the verdicts; blank lines are passed over."""
    text = "\n\n".join(map(json.dumps, CASES)) + "\n"
    status = main(["diff", "--cases", _file(tmp_path, "cases.jsonl", text.encode())])

    assert (status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]) == (0, VERDICTS)


def test_cases_are_read_from_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`-` is stdin."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(CASES[0]).encode())))

    assert main(["diff", "--cases", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == VERDICTS[0]


def test_a_line_that_is_no_case_is_named_and_the_others_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is undecided under its id where it has one; the status is 2."""
    bad_mask = {**CASES[0], "id": "bad", "ignore_fields": ["a..b"]}
    text = "\n".join(["not json", json.dumps(bad_mask), json.dumps(CASES[0])])
    status = main(["diff", "--cases", _file(tmp_path, "cases.jsonl", text.encode())])
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]

    assert status == 2
    assert [(line["id"], line["outcome"]) for line in lines] == [
        (None, "undecided"),
        ("bad", "undecided"),
        ("one", "mismatch"),
    ]
    assert "line 1: no JSON object" in err
    assert "line 2: mask 'a..b', character 3" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name two files"),
        (["a.json"], "name two files"),
        (["-", "-"], "stdin can be one"),
        (["nowhere.json", "nowhere.json"], "nowhere.json: No such file"),
        (["--cases", "nowhere.jsonl"], "nowhere.jsonl: No such file"),
        (["a.json", "--cases", "-"], "leave out the others"),
        (["--cases", "-", "--mask", "a"], "each line brings its own"),
        (["{a}", "{b}", "--mask", "$.a"], "character 1: masks start at the result"),
        (["{a}", "{b}", "--params", "{"], "--params is no JSON"),
        (["{a}", "{html}"], "holds no JSON"),
    ],
)
def test_a_wrong_command_says_what_to_do(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on stderr, nothing on stdout, status 2."""
    names = {
        "a": _file(tmp_path, "a", {"a": 1}),
        "b": _file(tmp_path, "b", {"a": 2}),
        "html": _file(tmp_path, "h", b"<html>"),
    }
    status = main(["diff", *(names.get(a[1:-1], a) if a.startswith("{") and len(a) > 1 else a for a in arguments)])
    out, err = capsys.readouterr()

    assert (status, out) == (2, "")
    assert says in err


def test_an_unknown_class_is_refused_with_the_known_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With status 2."""
    status = main(["diff", _file(tmp_path, "a", 1), _file(tmp_path, "b", 2), "--tolerate", "nothing"])

    assert status == 2
    assert "hex_padding" in capsys.readouterr().err


def test_help_leads_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    """Commands to copy."""
    with pytest.raises(SystemExit):
        main(["diff", "--help"])

    assert "gnomon diff primary.json shadow.json" in capsys.readouterr().out
