"""
Where the real nodes come from: folders named by `GNOMON_NODES`, else a cache folder filled once by npm.

Nothing here is needed at run time: without npm, or when the install fails, the simulated chain takes their place.
"""

import asyncio
import json
import os
import platform
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gnomon.demo.errors import NodesUnavailable
from gnomon.process import child_environment

PINNED: Final[Mapping[str, str]] = {"@foundry-rs/anvil": "1.7.1", "hardhat": "2.29.1"}
"""Hardhat 3 asks for Node 22.13; 2.29 runs on every Node from 18."""
INSTALL_SECONDS: Final = 300.0
FOLDERS_VARIABLE: Final = "GNOMON_NODES"
_MACHINES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class Installation:
    """Programs that are there; `shadow` is "hardhat" or "ganache"."""

    anvil: Path
    node: Path
    shadow: str
    shadow_script: Path
    folder: Path
    """The folder whose `node_modules` holds the shadow."""


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder for the pinned versions, below the user's cache."""
    base = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".cache")
    versions = "-".join(f"{name.rpartition('/')[2]}-{version}" for name, version in PINNED.items())
    return Path(base) / "gnomon" / "nodes" / versions


def locate(folders: Sequence[Path]) -> Installation | None:
    """Return anvil and a second implementation from the first folder that has each, or None."""
    node = shutil.which("node")
    anvil = next((path for folder in folders for path in [_anvil_in(folder)] if path), None)
    if anvil is None:
        on_path = shutil.which("anvil")
        anvil = Path(on_path) if on_path else None
    if node is None or anvil is None:
        return None
    for folder in folders:
        for kind, script_of in (("hardhat", _hardhat_in), ("ganache", _ganache_in)):
            script = script_of(folder)
            if script:
                return Installation(anvil, Path(node), kind, script, folder)
    return None


def _anvil_in(folder: Path) -> Path | None:
    machine = _MACHINES.get(platform.machine().lower(), platform.machine())
    path = folder / "node_modules" / "@foundry-rs" / f"anvil-{platform.system().lower()}-{machine}" / "bin" / "anvil"
    return path if os.access(path, os.X_OK) else None


def _hardhat_in(folder: Path) -> Path | None:
    """Return the command of hardhat 2; hardhat 3 has another configuration and another command."""
    script = folder / "node_modules" / "hardhat" / "internal" / "cli" / "bootstrap.js"
    return script if script.is_file() else None


def _ganache_in(folder: Path) -> Path | None:
    script = folder / "node_modules" / "ganache" / "dist" / "node" / "cli.js"
    return script if script.is_file() else None


def folders(environment: Mapping[str, str]) -> list[Path]:
    """Return where to look, in order."""
    named = [Path(part) for part in environment.get(FOLDERS_VARIABLE, "").split(os.pathsep) if part]
    return [*named, cache_folder(environment)]


async def find_or_install(environment: Mapping[str, str], say: Callable[[str], None]) -> Installation:
    """
    Return real nodes, installing the pinned ones into the cache folder when there are none.

    Raises:
        NodesUnavailable: no Node or npm here, or the install failed.
    """
    found = locate(folders(environment))
    if found:
        return found
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NodesUnavailable("npm is not installed")
    target = cache_folder(environment)
    listing = ", ".join(f"{name} {version}" for name, version in PINNED.items())
    say(f"installing {listing} into {target} (once; about 340 MB, half a minute)")
    await _install(npm, target)
    found = locate([target])
    if found is None:
        raise NodesUnavailable(f"npm installed no anvil for {platform.system()} {platform.machine()} in {target}")
    return found


async def _install(npm: str, target: Path) -> None:
    """Install into a folder beside `target` and move it there when it is whole."""
    work = target.with_name(f"{target.name}.{os.getpid()}")
    work.mkdir(parents=True, exist_ok=True)
    (work / "package.json").write_text(json.dumps({"private": True, "dependencies": dict(PINNED)}))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gnomon.demo.tether", npm, "install"),
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--loglevel=error",
        cwd=work,
        env=child_environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(INSTALL_SECONDS):
            _, stderr = await process.communicate()
        if process.returncode:
            tail = stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
            raise NodesUnavailable(f"npm install failed with status {process.returncode}: {tail[0][:200]}")
        with suppress(OSError):  # somebody else finished first: theirs is as good
            work.rename(target)
    except TimeoutError:
        raise NodesUnavailable(f"npm install took more than {INSTALL_SECONDS:.0f} s") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        shutil.rmtree(work, ignore_errors=True)
