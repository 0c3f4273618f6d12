"""The benchmarks can be called by the names that are shown."""

from importlib.util import find_spec

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
