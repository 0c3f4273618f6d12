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


def test_every_file_is_looked_into(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Books are looked up beside the configuration; faults of one file hide none of another, nor books that overlap."""
    (file.parent / "bad.yaml").write_text("vendor: foo\n")
    for name in ("one", "two"):
        (file.parent / f"{name}.yaml").write_text("{vendor: acme, usd_per_million_units: 1, default_units: 1}")
    (file.parent / "rules.yaml").write_text("rules: [{name: FallbackSpend, above: many}]\n")
    file.write_text(
        GOOD
        + "gnomon: {pricing: {books: [nowhere.yaml, bad.yaml, one.yaml, two.yaml]}, alerts: {rules: [rules.yaml]}}\n"
    )

    assert main(["config", "validate", str(file)]) == 2
    told = capsys.readouterr().err
    for part in ("nowhere.yaml: cannot be read", "bad.yaml: default_units", "valid at the same time", "rules.yaml"):
        assert part in told, part


def test_a_vendor_without_a_book_is_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A slip in its name would make all its calls unpriced; a book of one's own is enough."""
    (file.parent / "mine.yaml").write_text("{vendor: acme, usd_per_million_units: 1, default_units: 1}")
    upstreams = ", ".join(
        f"{{id: {name}, endpoint: 'http://127.0.0.1:{port}', evm: {{chainId: 1}}, vendor: {name}}}"
        for port, name in enumerate(("alchmy", "acme", "nobody", "ankr", "self-hosted"), 1)
    )
    file.write_text(
        f"projects: [{{id: main, upstreams: [{upstreams}]}}]\ngnomon: {{pricing: {{books: [mine.yaml]}}}}\n"
    )

    assert main(["config", "validate", str(file)]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "no price book" in line]
    assert [line.partition(":")[2].partition(":")[0].strip() for line in told] == ["main/alchmy", "main/nobody"]
    assert "did you mean `alchemy`?" in told[0]
    assert "gnomon.pricing.books" in told[1]


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
