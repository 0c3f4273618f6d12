"""The benchmarks can be called by the names that are shown."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.__main__ import main, names


def test_each_name_is_a_module() -> None:
    """With hyphens where its name has underscores; helpers have no name."""
    known = names()

    assert {"chaos", "cluster-chaos", "cluster-freshness"} <= set(known)
    assert [name for name in known if find_spec(f"bench.{name.replace('-', '_')}") is None] == []
    assert [name for name in known if name.startswith(("-", "_"))] == []


def test_an_unknown_name_is_told_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, as for any wrong usage."""
    assert main(["cluster"]) == 2
    assert "cluster-chaos" in capsys.readouterr().err


def test_help_says_what_each_measures(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each, status 0."""
    assert main(["--help"]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]

    assert [name for name, _ in lines] == names()
    assert [name for name, text in lines if not text.endswith(".")] == []


def test_each_has_its_section_with_its_command() -> None:
    """docs/benchmarks.md."""
    page = (Path(__file__).parents[2] / "docs/benchmarks.md").read_text(encoding="utf-8")
    sections = dict(section.split("\n", 1) for section in page.split("\n## ")[1:])

    assert sorted(sections) == names()
    assert [name for name, text in sections.items() if f"    python -m bench {name}" not in text] == []
