"""Real nodes are looked for where they may be, and never needed."""

import asyncio
import os
import platform
from pathlib import Path

import pytest

from gnomon.demo import installation
from gnomon.demo.errors import NodesUnavailable


def make(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder on PATH; it holds a `node`."""
    folder = tmp_path / "bin"
    make(folder / "node")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    return folder


def add(folder: Path, *names: str) -> None:
    files = {
        "anvil": "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil",
        "hardhat": "node_modules/hardhat/internal/cli/bootstrap.js",
        "hardhat3": "node_modules/hardhat/dist/src/cli.js",
        "ganache": "node_modules/ganache/dist/node/cli.js",
    }
    for name in names:
        make(folder / files[name])


@pytest.mark.parametrize(
    ("first", "second", "shadow", "folder"),
    [
        (["anvil", "hardhat"], [], "hardhat", "first"),
        (["anvil", "ganache"], [], "ganache", "first"),
        (["anvil", "hardhat", "ganache"], [], "hardhat", "first"),
        (["anvil", "ganache"], ["anvil", "hardhat"], "ganache", "first"),
        (["anvil", "hardhat3"], ["hardhat"], "hardhat", "second"),
        ([], ["anvil", "ganache"], "ganache", "second"),
    ],
)
@pytest.mark.usefixtures("programs")
def test_locates(tmp_path: Path, first: list[str], second: list[str], shadow: str, folder: str) -> None:
    """The folder named first wins; hardhat 3, which has another command line, is passed over."""
    add(tmp_path / "first", *first)
    add(tmp_path / "second", *second)

    found = installation.locate([tmp_path / "first", tmp_path / "second"])

    assert found is not None
    assert (found.shadow, found.folder) == (shadow, tmp_path / folder)


@pytest.mark.parametrize("present", [[], ["anvil"], ["hardhat"]])
@pytest.mark.usefixtures("programs")
def test_half_a_set_is_none(tmp_path: Path, present: list[str]) -> None:
    """Without anvil, or without a second implementation, there are no real nodes."""
    add(tmp_path, *present)

    assert installation.locate([tmp_path]) is None


@pytest.mark.usefixtures("programs")
def test_without_npm_the_reason_is_said(tmp_path: Path) -> None:
    """No npm is a named error, for which the caller takes the simulated chain."""
    with pytest.raises(NodesUnavailable, match="npm is not installed"):
        asyncio.run(installation.find_or_install({"XDG_CACHE_HOME": str(tmp_path)}, print))


def test_a_failed_install_leaves_nothing(tmp_path: Path, programs: Path) -> None:
    """When npm fails its last words are in the error, and no half-filled folder stays."""
    npm = make(programs / "npm")
    npm.write_text("#!/bin/sh\necho 'E404 no such thing' >&2\nexit 3\n")
    said: list[str] = []

    with pytest.raises(NodesUnavailable, match="status 3: E404 no such thing"):
        asyncio.run(installation.find_or_install({"XDG_CACHE_HOME": str(tmp_path / "cache")}, said.append))

    assert len(said) == 1
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.name == "package.json"]


def test_an_install_that_works_is_kept(tmp_path: Path, programs: Path) -> None:
    """What npm put into the folder is found, now and the next time without npm."""
    npm = make(programs / "npm")
    files = ["node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil", "node_modules/hardhat/internal/cli/bootstrap.js"]
    lines = [f"/bin/mkdir -p {os.path.dirname(f)}; /bin/echo x > {f}; /bin/chmod 755 {f}" for f in files]
    npm.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}

    installed = asyncio.run(installation.find_or_install(environment, print))
    npm.unlink()

    assert installed.shadow == "hardhat"
    assert installed == asyncio.run(installation.find_or_install(environment, print))


def test_folders_come_from_the_environment(tmp_path: Path) -> None:
    """Folders named by the user come before the cache."""
    environment = {"GNOMON_NODES": f"/a{os.pathsep}/b", "XDG_CACHE_HOME": str(tmp_path)}

    assert [Path("/a"), Path("/b"), installation.cache_folder(environment)] == installation.folders(environment)
