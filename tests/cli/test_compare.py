"""`gnomon compare` as a user runs it, on simulated endpoints."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gnomon.cli import main
from gnomon.demo.chain import RpcFault
from gnomon.demo.planted import PLANTS
from tests.sidebyside.endpoints import chain, faulty, serving

FAST = ["--rate", "2000", "--concurrency", "8", "--seconds", "30"]


def compare(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["compare", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    status, out, _ = compare(capsys, *arguments, "--format", "json")
    return status, json.loads(out)


def test_identical_chains(capsys: pytest.CaptureFixture[str]) -> None:
    """Two endpoints that agree give status 0, no finding, and no outcome but identical and incomparable."""
    with serving(chain().answer, chain().answer) as (a, b):
        status, report = as_json(capsys, a, b, *FAST)

    assert status == 0
    assert report["findings"] == []
    assert set(report["outcomes"]) <= {"identical", "incomparable"}
    assert report["outcomes"]["identical"] > 200


def test_planted_differences_are_found_each_exactly_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Every planted difference is one finding with its class, a count and an example; nothing else is one."""
    with serving(chain().answer, faulty().answer) as (a, b):
        status, report = as_json(capsys, a, b, *FAST)

    found = sorted((f["method"], f["generic_path"], f["class"]) for f in report["findings"])
    assert found == sorted((p.method, p.generic_path, p.class_) for p in PLANTS)
    assert status == 1
    assert all(f["n"] >= 1 and f["example"]["params"] for f in report["findings"])


def test_json_has_the_members_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    """The object has exactly the members that users rely on, and its numbers agree with each other."""
    with serving(chain().answer, faulty().answer) as (a, b):
        _, report = as_json(capsys, a, b, *FAST)

    assert list(report) == ["primary", "shadow", "requests", "outcomes", "classes", "findings"]
    assert (report["primary"], report["shadow"]) == (a, b)
    assert report["requests"] == sum(report["outcomes"].values()) == sum(report["classes"].values())
    assert {tuple(f) for f in report["findings"]} == {("method", "generic_path", "class", "n", "example")}


def test_results_on_stdout_messages_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """The report is the only thing on stdout; the common final block is said on stderr."""
    with serving(chain().answer, faulty().answer) as (a, b):
        status, out, err = compare(capsys, a, b, *FAST, "--method", "eth_getLogs")

    assert status == 1
    assert "$.result[*].blockTimestamp" in out
    assert "They differ on final data" in out
    assert "common final block 18 (finalized at both)" in err
    assert "common final block" not in out


def test_a_mask_takes_a_path_out(capsys: pytest.CaptureFixture[str]) -> None:
    """With the differing path masked the answers are equal, and said to be so by the mask."""
    with serving(chain().answer, faulty().answer) as (a, b):
        mask = ["--method", "eth_getLogs", "--mask", "eth_getLogs=*.blockTimestamp"]
        status, report = as_json(capsys, a, b, *FAST, *mask)

    assert status == 0
    assert report["findings"] == []
    assert report["outcomes"]["identical_masked"] > 0


def test_methods_are_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the methods asked for are compared, though others lead to their questions."""
    with serving(chain().answer, faulty().answer) as (a, b):
        methods = ["--method", "eth_getTransactionReceipt", "--method", "eth_getCode"]
        status, report = as_json(capsys, a, b, *FAST, *methods)

    assert status == 1
    assert {f["method"] for f in report["findings"]} == {"eth_getTransactionReceipt"}
    assert report["requests"] > 20


def test_a_range_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """Only blocks of the range are sampled; a range above the common final block ends there, and that is said."""
    asked: list[object] = []
    source = chain()

    def recording(method: str, params: Sequence[object]) -> object:
        if method == "eth_getBlockByNumber":
            asked.append(params[0])
        return source.answer(method, params)

    with serving(recording, chain().answer) as (a, b):
        status, _, err = compare(capsys, a, b, *FAST, "--from-block", "15", "--to-block", "0xffff")

    assert status == 0
    assert {int(str(at), 16) for at in asked if str(at).startswith("0x")} == {15, 16, 17, 18}
    assert "sampling ends at 18" in err


def test_questions_from_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A file's questions are asked in place of a sample; a difference at a final height is status 1."""
    file = tmp_path / "questions.jsonl"
    file.write_text(
        '{"method":"eth_chainId"}\n'
        '{"jsonrpc":"2.0","id":9,"method":"eth_getBlockByNumber","params":["0x5",false]}\n'
        '{"method":"eth_sendRawTransaction","params":["0x00"]}\n'
    )
    with serving(chain().answer, faulty().answer) as (a, b):
        status, report = as_json(capsys, a, b, *FAST, "--requests", str(file))

    assert status == 1
    assert report["requests"] == 2
    assert report["outcomes"] == {"identical": 1, "mismatch": 1}
    assert [f["generic_path"] for f in report["findings"]] == ["$.result.totalDifficulty"]


@pytest.mark.parametrize(
    ("question", "status"),
    [
        ('{"method":"eth_getBlockByNumber","params":["0x14",false]}', 0),
        ('{"method":"eth_getBlockByNumber","params":["0x12",false]}', 1),
        ('{"method":"eth_getTransactionReceipt","params":["HASH_OF_FINAL"]}', 1),
        ('{"method":"eth_getTransactionReceipt","params":["HASH_OF_NEWEST"]}', 0),
    ],
    ids=["unfinalised", "final", "final-by-hash", "unfinalised-by-hash"],
)
def test_only_final_data_decides(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, question: str, status: int
) -> None:
    """A difference above the common final block, by number or by hash, is shown and does not fail the run."""
    source: Any = chain()
    for name, height in (("HASH_OF_FINAL", "0x4"), ("HASH_OF_NEWEST", "0x14")):
        question = question.replace(name, source.answer("eth_getBlockByNumber", [height, False])["transactions"][0])
    file = tmp_path / "questions.jsonl"
    file.write_text(question)

    with serving(chain().answer, faulty().answer) as (a, b):
        seen, report = as_json(capsys, a, b, *FAST, "--requests", str(file))

    assert report["outcomes"] == {"mismatch": 1}
    assert status == seen


def test_what_one_does_not_serve_is_asked_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A method that one endpoint does not have is one error, not one a block, and is named."""
    source = chain()

    def without_receipts(method: str, params: Sequence[object]) -> object:
        if method == "eth_getBlockReceipts":
            raise RpcFault(-32601, "the method eth_getBlockReceipts does not exist/is not available")
        return source.answer(method, params)

    with serving(chain().answer, without_receipts) as (a, b):
        status, out, _ = compare(capsys, a, b, "--rate", "2000", "--concurrency", "1")

    assert status == 0
    assert "not served by shadow: eth_getBlockReceipts" in out
    assert "1 error" in out


def test_different_chains_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Two chain ids are an error that names both."""
    with serving(chain().answer, chain(chain_id=1).answer) as (a, b):
        status, out, err = compare(capsys, a, b)

    assert (status, out) == (1, "")
    assert "different chains: 31337 (primary) and 1 (shadow)" in err


def test_an_endpoint_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """An address where nobody listens is an error with the address, soon."""
    with serving(chain().answer) as (a,):
        status, out, err = compare(capsys, a, "http://127.0.0.1:1")

    assert (status, out) == (1, "")
    assert "http://127.0.0.1:1 does not answer eth_chainId" in err


def test_nothing_in_common_is_a_failure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """When no question is answered by both, the status is not success."""

    def refusing(method: str, params: Sequence[object]) -> object:
        if method == "eth_getBalance":
            raise RpcFault(-32000, "missing trie node")
        return chain().answer(method, params)

    file = tmp_path / "q.jsonl"
    file.write_text('{"method":"eth_getBalance","params":["0x0000000000000000000000000000000000000001","0x1"]}')
    with serving(chain().answer, refusing) as (a, b):
        status, out, _ = compare(capsys, a, b, "--requests", str(file))

    assert status == 1
    assert "Nothing could be compared" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ftp://x", "http://y"], "is no HTTP address"),
        (["http://x", "127.0.0.1:8545"], "is no HTTP address"),
        (["http://x", "http://y", "--method", "eth_sendRawTransaction"], "a sample of the chain has no such question"),
        (["http://x", "http://y", "--mask", "blockTimestamp"], "write METHOD=PATH"),
        (["http://x", "http://y", "--mask", "eth_call="], "write METHOD=PATH"),
        (["http://x", "http://y", "--requests", "/nowhere/at/all"], "cannot read /nowhere/at/all"),
        (["http://x", "http://y", "--requests", "/dev/null"], "holds no request"),
        (["http://x", "http://y", "--requests", "/dev/null", "--from-block", "1"], "belong to sampling"),
    ],
)
def test_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    """Wrong use is status 2 with what to do."""
    status, out, err = compare(capsys, *arguments)

    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    "arguments", [["--rate", "0"], ["--seconds", "-1"], ["--concurrency", "0"], ["--from-block", "-1"]]
)
def test_limits_of_numbers(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """Numbers outside their range are refused by the parser."""
    with pytest.raises(SystemExit) as ended:
        main(["compare", "http://x", "http://y", *arguments])

    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_ctrl_c_ends_with_what_was_found() -> None:
    """Interrupted, it reports the pairs so far and ends with 130."""
    with serving(chain().answer, faulty().answer) as (a, b):
        command = [sys.executable, "-c", "import sys; from gnomon.cli import main; sys.exit(main())", "compare"]
        process = subprocess.Popen(
            [*command, a, b, "--format", "json", "--rate", "40"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        while "questions" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)

    assert process.returncode == 130
    assert 1 <= json.loads(out)["requests"] < 200
