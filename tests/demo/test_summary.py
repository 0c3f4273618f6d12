"""The summary's words, and what counts as a shortfall."""

import shlex
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gnomon.demo.measures import Counts, Findings
from gnomon.demo.planted import PLANTS
from gnomon.demo.summary import QUERIES, Facts, program, render, shortfalls, where
from gnomon.demo.world import Endpoint

FACTS = Facts(
    kind="real",
    primary=Endpoint("anvil", "http://127.0.0.1:1", "anvil/v1"),
    shadow=Endpoint("hardhat", "http://127.0.0.1:2", "Hardhat/2"),
    fallback=Endpoint("anvil-paid", "http://127.0.0.1:3", "anvil/v1"),
    client="web3.py 8",
    seconds=30.0,
    calls=1000,
    failed_calls=0,
    last_failure="",
    withheld=7,
    refused=2,
    first_divergence_seconds=4.25,
)


def paid(kind: str, cause: str, n: int, usd: str | None) -> dict[str, Any]:
    return {
        "upstream": "anvil-paid",
        "vendor": "alchemy",
        "kind": kind,
        "cause": cause,
        "n": n,
        "usd": None if usd is None else Decimal(usd),
        "n_unpriced": n if usd is None else 0,
    }


def finding(method: str, path: str, class_: str, n: int = 3) -> dict[str, Any]:
    return {
        "method": method,
        "generic_path": path,
        "class": class_,
        "n": n,
        "path": path,
        "primary_value": "0x1",
        "shadow_value": "",
    }


FOUND = Findings(
    counts=Counts(requests=900, pairs=890, mirrored=890, mismatches=40, final_mismatches=30, paid_calls=9),
    outcomes=[{"outcome": "result", "n": 870}, {"outcome": "verdict", "n": 30}],
    decisions=[{"decision": "mirrored", "n": 890}, {"decision": "short_circuited", "n": 10}],
    verdicts=[
        {"outcome": "identical", "class": "none", "finality": "finalized", "n": 850},
        {"outcome": "mismatch", "class": "missing_field", "finality": "finalized", "n": 30},
        {"outcome": "mismatch", "class": "missing_field", "finality": "realtime", "n": 10},
    ],
    findings=[finding("eth_getLogs", "$.result[*].blockTimestamp", "missing_field")],
    paid=[paid("client", "empty_at_head", 7, "0.00009"), paid("head_poll", "", 60, "0.0006")],
)


def test_nothing_is_missing_when_all_was_found() -> None:
    """The planted faults were found: no shortfall."""
    assert shortfalls(FACTS, FOUND) == []


@pytest.mark.parametrize(
    ("facts", "found", "reason"),
    [
        (FACTS, replace(FOUND, counts=Counts()), "no request reached ClickHouse"),
        (FACTS, replace(FOUND, counts=Counts(requests=5)), "no pair was compared"),
        (FACTS, replace(FOUND, counts=Counts(requests=5, pairs=5, mismatches=5)), "no difference on final data"),
        (FACTS, replace(FOUND, paid=[paid("head_poll", "empty_at_head", 9, "1")]), "no paid call has the cause"),
        (FACTS, replace(FOUND, paid=[paid("client", "primary_error", 9, "1")]), "no paid call has the cause"),
        (replace(FACTS, withheld=0), FOUND, "the run was too short"),
    ],
    ids=["no-requests", "no-pairs", "no-mismatch", "polls-only", "other-cause", "no-fault"],
)
def test_shortfalls(facts: Facts, found: Findings, reason: str) -> None:
    """Each thing that the demonstration promises is missed by name when it did not happen."""
    assert [reason in line for line in shortfalls(facts, found)] == [True]


def test_the_simulated_chain_must_show_every_plant_and_no_more() -> None:
    """Each planted difference that was not found, and each found that was not planted, is a shortfall."""
    facts = replace(FACTS, kind="simulated")
    all_planted = [finding(p.method, p.generic_path, p.class_) for p in PLANTS]
    surprise = finding("eth_getCode", "$.result", "value")

    assert shortfalls(facts, replace(FOUND, findings=all_planted)) == []
    assert [PLANTS[0].says in line for line in shortfalls(facts, replace(FOUND, findings=all_planted[1:]))] == [True]
    assert shortfalls(facts, replace(FOUND, findings=[*all_planted, surprise])) == [
        "found and not planted: eth_getCode $.result value"
    ]


def test_the_summary_says_what_was_found() -> None:
    """Requests, pairs, verdicts, the differing path with an example, paid calls by cause and USD."""
    text = render(FACTS, FOUND)

    for words in (
        "900 stored: 870 result, 30 verdict",
        "890 compared: 850 identical, 40 mismatch",
        "mismatches by class: 40 missing_field",
        "on final data: 30",
        "after 4.2 s",
        "3 × eth_getLogs  $.result[*].blockTimestamp  missing_field",
        "0x1  |  (absent)",
        "USD 0.00069000 at anvil-paid",
        "7 × client empty_at_head",
        "60 × head_poll",
        "7 block look-ups withheld, 2 calls refused",
    ):
        assert words in text


def test_unpriced_is_not_zero() -> None:
    """A call without a price is unpriced, and not counted as nothing."""
    text = render(FACTS, replace(FOUND, paid=[paid("client", "empty_at_head", 7, None)]))

    assert "unpriced" in text


def test_three_queries_to_paste() -> None:
    """The way to SQL is said, with three queries."""
    text = where(Path("/d"), Path("/d/gnomon.yaml"), "http://127.0.0.1:8123", "gnomon", is_kept=False)

    assert len(QUERIES) == 3
    assert text.count("gnomon query --config /d/gnomon.yaml --sql") == 3
    assert "gnomon clickhouse --config /d/gnomon.yaml --data /d" in text
    assert "http://127.0.0.1:8123" in text


def test_what_still_runs_is_not_started_again() -> None:
    """With --keep the queries can be pasted as they are."""
    text = where(Path("/d"), Path("/d/gnomon.yaml"), "http://127.0.0.1:8123", "gnomon", is_kept=True)

    assert "gnomon clickhouse" not in text
    assert text.count("gnomon query") == 3


def test_what_is_to_be_pasted_is_right_for_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a space is one word, and what lies below here is named from here."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my data"
    text = where(folder, folder / "gnomon.yaml", "http://127.0.0.1:8123", ".venv/bin/gnomon", is_kept=False)
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith(".venv/bin/gnomon")]

    assert shlex.split(lines[0]) == [
        *(".venv/bin/gnomon", "clickhouse", "--config", "my data/gnomon.yaml", "--data", "my data")
    ]
    assert [shlex.split(line)[-1] for line in lines[1:]] == [sql for _, sql in QUERIES]


@pytest.mark.parametrize("is_on_path", [True, False])
def test_the_program_is_named_as_the_shell_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_on_path: bool
) -> None:
    """Plain `gnomon` in an activated environment, else the way to it: after `make demo` nothing is on the path."""
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "gnomon").write_text("#!/bin/sh\n")
    (folder / "gnomon").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder) if is_on_path else str(tmp_path))

    assert program() == ("gnomon" if is_on_path else ".venv/bin/gnomon")
