"""A package that shadows a room is named before anything runs."""

import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

import pytest

from gnomon import rooms
from tests.services import ROOT


def finder(*folders: Path) -> Callable[[str], ModuleSpec | None]:
    return lambda name: PathFinder.find_spec(name, [str(folder) for folder in folders])


def make_package(folder: Path, name: str) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").touch()
    return folder


def test_our_own_rooms_are_ours() -> None:
    """In the environment of the tests nothing stands in the way."""
    rooms.check()


def test_the_list_is_what_is_packaged() -> None:
    """Each top-level package of the distribution but `gnomon` itself is checked."""
    packaging = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    patterns = packaging["tool"]["setuptools"]["packages"]["find"]["include"]
    packaged = {pattern.rstrip("*") for pattern in patterns if (ROOT / pattern.rstrip("*") / "__init__.py").is_file()}

    assert packaged - {"gnomon"} == set(rooms.ROOMS)


def test_a_package_in_front_is_named(tmp_path: Path) -> None:
    """Another `proxy` earlier on the path is an error that tells where it is and what to do."""
    ours = make_package(tmp_path / "ours", "proxy")
    theirs = make_package(tmp_path / "theirs", "proxy")

    with pytest.raises(rooms.ShadowedRoom, match=r"theirs/proxy.*environment of its own"):
        rooms.check(["proxy"], ours, finder(theirs, ours))
    rooms.check(["proxy"], ours, finder(ours, theirs))


def test_a_module_in_front_is_named(tmp_path: Path) -> None:
    """A single file `proxy.py` in the folder one starts in counts as well."""
    ours = make_package(tmp_path / "ours", "proxy")
    (tmp_path / "proxy.py").touch()

    with pytest.raises(rooms.ShadowedRoom, match=r"proxy\.py"):
        rooms.check(["proxy"], ours, finder(tmp_path, ours))


def test_a_missing_room_is_named(tmp_path: Path) -> None:
    """A half-installed distribution says so."""
    with pytest.raises(rooms.ShadowedRoom, match="`proxy` is missing"):
        rooms.check(["proxy"], tmp_path, finder(tmp_path))


def test_the_command_checks_at_start(tmp_path: Path) -> None:
    """`gnomon` started where another `proxy` is found first refuses with status 1 and one line."""
    make_package(tmp_path, "proxy")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from gnomon.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "config", "validate", "none.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == 1
    assert ran.stderr.startswith(f"gnomon: the package `proxy` at {tmp_path.resolve() / 'proxy'}")
