"""
What is said of each shape that eRPC's documentation shows: exactly these warnings and errors, and no others.

`fixtures/erpc/NAME.yaml` are files of our own in those shapes, `NAME.said` what the loader says of them, a line each.
What is promised for later (`gnomon/config/pending.py`) is left out: it changes as things come into force.
"""

from pathlib import Path

import pytest

from gnomon.config.errors import ConfigError
from gnomon.config.load import load
from gnomon.config.pending import PENDING
from tests.config.test_load import FIXTURES

SHAPES = FIXTURES / "erpc"
NAMES = ("ALCHEMY", "BACKEND", "DRPC", "INFURA", "ONFINALITY", "TENDERLY")
ENVIRONMENT = {name: f"{name.lower()}-key-1" for name in NAMES}
LOADED = (
    "code",
    "failsafe",
    "let-in",
    "networks",
    "smallest",
    "upstreams",
    "whole",
)
"""Files that can be used as they are."""


def said(file: Path, *, allow_insecure: bool = False) -> list[str]:
    """Return what the loader says of a file."""
    try:
        lines = [f"warning {w}" for w in load(file, environment=ENVIRONMENT, allow_insecure=allow_insecure).warnings]
    except ConfigError as error:
        lines = [f"error {problem}" for problem in error.problems]
        if not allow_insecure and all(map(is_pending, lines)):
            return said(file, allow_insecure=True)
    return [line for line in lines if not is_pending(line)]


def is_pending(line: str) -> bool:
    """Say whether a line is about what is promised for later."""
    return any(pending.message in line for pending in PENDING.values())


@pytest.mark.parametrize("name", sorted(file.stem for file in SHAPES.glob("*.yaml")))
def test_a_shape_is_answered_exactly(name: str) -> None:
    """Neither a part that is silently ignored nor an error about what is right."""
    expected = (SHAPES / f"{name}.said").read_text("utf-8").splitlines()

    assert said(SHAPES / f"{name}.yaml") == expected


@pytest.mark.parametrize("name", sorted(file.stem for file in SHAPES.glob("*.yaml")))
def test_which_shapes_load(name: str) -> None:
    """A file that is no use because of what it guards, or because of a slip, is refused; the others load."""
    refused = any(line.startswith("error ") for line in said(SHAPES / f"{name}.yaml"))

    assert refused is (name not in LOADED)


@pytest.mark.parametrize("name", ["code-money", "money", "open"])
def test_what_guards_can_be_waived(name: str) -> None:
    """With `--allow-insecure` each guard that is not in force is a warning that says so."""
    lines = said(SHAPES / f"{name}.yaml", allow_insecure=True)

    assert not [line for line in lines if line.startswith("error ")]
    assert any("ignored by --allow-insecure: " in line for line in lines)


def test_what_is_no_guard_cannot_be_waived() -> None:
    """Slips stay errors, whatever is allowed."""
    assert len(said(SHAPES / "words.yaml", allow_insecure=True)) == len(said(SHAPES / "words.yaml"))
