"""`gnomon config` tells by text and exit status whether a file can be used."""

from pathlib import Path

import pytest

from gnomon.cli import main

GOOD = "projects: [{id: main, upstreams: [{id: a, endpoint: 'http://127.0.0.1:1', evm: {chainId: 1}}]}]\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gnomon.yaml"
    path.write_text(GOOD)
    return path


def test_a_valid_file_exits_0(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line on stdout says what the file holds."""
    assert main(["config", "validate", str(file)]) == 0
    assert "valid; project main: evm:1 (1 primary)" in capsys.readouterr().out


def test_warnings_go_to_stderr_and_change_no_status(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What has no effect is named beside the result, not in it."""
    file.write_text(GOOD + "metrics: {port: 4001}\n")

    assert main(["config", "validate", str(file)]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("warning: line 2: metrics: ignored")
    assert "metrics" not in captured.out


def test_an_invalid_file_exits_2_with_every_problem(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Problems are messages: they go to stderr, one a line."""
    file.write_text(GOOD + "colour: red\nsize: 1\n")

    assert main(["config", "validate", str(file)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line.split(":")[1].strip() for line in captured.err.splitlines()[1:]] == ["colour", "size"]


def test_allow_insecure_is_passed_on(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The option turns a refused guard into a warning."""
    file.write_text(GOOD + "gnomon: {proxy: {host: 0.0.0.0}}\n")

    assert main(["config", "validate", str(file)]) == 2
    assert main(["config", "validate", str(file), "--allow-insecure"]) == 0
    assert "ignored by --allow-insecure" in capsys.readouterr().err


def test_a_price_book_that_is_not_there_makes_the_file_invalid(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `gnomon up` would refuse is not called valid."""
    file.write_text(GOOD + "gnomon: {pricing: {books: [/nowhere.yaml]}}\n")

    assert main(["config", "validate", str(file)]) == 2
    assert "price book /nowhere.yaml: cannot be read" in capsys.readouterr().err


def test_an_alert_rule_file_that_is_not_there_makes_the_file_invalid(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `gnomon alerts` would refuse is not called valid."""
    file.write_text(GOOD + "gnomon: {alerts: {rules: [nowhere.yaml]}}\n")

    assert main(["config", "validate", str(file)]) == 2
    assert "nowhere.yaml" in capsys.readouterr().err


def test_dump_prints_yaml(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The settings in force are on stdout."""
    assert main(["config", "dump", "--config", str(file)]) == 0
    assert "shortCircuitFutureBlocks: false" in capsys.readouterr().out


def test_a_missing_file_exits_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without an argument `gnomon.yaml` is meant, and its absence is explained."""
    monkeypatch.chdir(tmp_path)

    assert main(["config", "validate"]) == 2
    assert "gnomon.yaml: 1 problem" in capsys.readouterr().err
