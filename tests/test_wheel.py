"""What is released is the wheel: built from the clone, installed elsewhere, it has everything that it runs on."""

import os
import site
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.services import ROOT

pytestmark = pytest.mark.e2e


def run(command: Sequence[str | Path], cwd: Path, **environment: str) -> str:
    """Return stdout; a failure shows what the command said."""
    ran = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from what git tracks, so that nothing that lies about gets in."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    listed = run(["git", "ls-files", "-z"], ROOT).split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "bench/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source], folder)
    return next(folder.glob("gnomon-*.whl"))


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel in an environment of its own that sees the dependencies installed here; return `gnomon`."""
    folder = tmp_path_factory.mktemp("elsewhere") / "venv"
    run([sys.executable, "-m", "venv", "--without-pip", folder], folder.parent)
    python = folder / "bin" / "python"
    run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel],
        folder.parent,
    )
    own = next(folder.glob("lib/python*/site-packages"))
    # A .pth file adds the packages installed here, but not the editable clone among them: pth files there are not read.
    (own / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return folder / "bin" / "gnomon"


def test_the_wheel_holds_each_file_of_its_rooms(wheel: Path) -> None:
    """SQL, price books and pages are package data: what git tracks below a room is in the wheel."""
    held = set(zipfile.ZipFile(wheel).namelist())
    packaging = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    rooms = [pattern.rstrip("*") for pattern in packaging["tool"]["setuptools"]["packages"]["find"]["include"]]
    tracked = [name for name in run(["git", "ls-files", "-z", *rooms], ROOT).split("\0") if name]

    assert [name for name in tracked if (ROOT / name).is_file() and name not in held] == []
    assert not [name for name in held if name.startswith(("tests/", "bench/"))]


def test_the_command_runs_outside_the_clone(command: Path, tmp_path: Path) -> None:
    """Version, checks of a configuration and the list of questions need no file of the clone."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    file = tmp_path / "gnomon.yaml"
    file.write_text("projects: [{id: main, upstreams: [{id: a, endpoint: 'http://127.0.0.1:1', evm: {chainId: 1}}]}]")

    assert run([command, "--version"], tmp_path) == f"gnomon {version}\n"
    assert "valid" in run([command, "config", "validate", file], tmp_path)
    assert run([command, "query", "--list"], tmp_path).strip()


def test_modules_come_from_the_wheel(command: Path, tmp_path: Path) -> None:
    """The test would prove nothing if the clone were imported."""
    code = "import gnomon, analytics; print(gnomon.__file__, analytics.__file__)"
    printed = run([command.parent / "python", "-c", code], tmp_path)

    assert str(ROOT) not in printed
    assert printed.count(str(command.parent.parent)) == 2


def test_migrations_are_there(command: Path, tmp_path: Path) -> None:
    """Each migration of the clone can be read as package data."""
    code = (
        "from importlib.resources import files\n"
        "print(*sorted(f.name for f in (files('analytics') / 'migrations').iterdir() if f.name.endswith('.sql')))"
    )
    printed = run([command.parent / "python", "-c", code], tmp_path).split()

    assert printed == sorted(file.name for file in (ROOT / "analytics" / "migrations").glob("*.sql"))
    assert printed
