"""Imports point one way: the table of the design holds for every module, and the checker can fail."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.directions import OWN, TABLE, violation, violations
from tests.services import ROOT


def test_imports_point_one_way() -> None:
    """No module imports what its room may not."""
    assert violations(ROOT) == []


def test_every_room_of_the_clone_has_a_row() -> None:
    """A new folder below `gnomon` needs a row of its own."""
    folders = {f"gnomon.{file.parent.name}" for file in (ROOT / "gnomon").glob("*/__init__.py")}
    tops = {top for top in OWN if (ROOT / top / "__init__.py").is_file()}

    assert (folders | tops) - set(TABLE) == set()


@pytest.mark.parametrize(
    ("module", "imported", "expected"),
    [
        ("proxy.server", "ingest.runner", "proxy may not import ingest.runner"),
        ("proxy.server", "gnomon.compare.walk", "proxy may not import gnomon.compare.walk"),
        ("proxy.core.flight", "proxy.tasks", "proxy.core may not import proxy.tasks"),
        ("proxy.core.flight", "uvloop", "proxy.core may not import the third party uvloop"),
        ("gnomon.rpc.methods", "gnomon.compare.masks", "gnomon.rpc may not import gnomon.compare.masks"),
        ("gnomon.events.codec", "proxy", "gnomon.events may not import proxy"),
        ("ingest.sink", "analytics.gate", "ingest may not import analytics.gate"),
        ("ingest.sink", "clickhouse_connect", "ingest may not import the third party clickhouse_connect"),
        ("analytics.migrate", "proxy.server", "analytics may not import proxy.server"),
        ("gnomon.config.load", "gnomon.cli", "gnomon.config may not import gnomon.cli"),
        ("proxy.core.flight", "gnomon.rpc.methods", None),
        ("proxy.server", "proxy.core.flight", None),
        ("ingest.sink", "analytics.store.Store", None),
        ("analytics.whatif", "proxy.core.flight", None),
        ("gnomon.cli.up", "ingest.runner", None),
        ("gnomon.rpc.methods", "functools", None),
    ],
)
def test_the_checker_knows_right_from_wrong(module: str, imported: str, expected: str | None) -> None:
    """Each direction of the table, with what it forbids."""
    assert violation(module, imported) == expected


def test_the_checker_reads_files(tmp_path: Path) -> None:
    """Relative, late and aliased imports are found, with their lines."""
    (tmp_path / "proxy" / "core").mkdir(parents=True)
    (tmp_path / "proxy" / "core" / "flight.py").write_text(
        "from .. import tasks\n\ndef late() -> None:\n    import ingest.runner as runner\n    from . import heads\n"
    )

    assert violations(tmp_path) == [
        "proxy/core/flight.py:1: proxy.core may not import proxy.tasks",
        "proxy/core/flight.py:4: proxy.core may not import ingest.runner",
    ]


def test_importing_the_loader_imports_no_comparison() -> None:
    """A service that only proxies reads its file without loading what compares."""
    code = "import sys, gnomon.config.load; print([m for m in sys.modules if m.startswith('gnomon.compare')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)

    assert ran.stdout.strip() == "[]"
