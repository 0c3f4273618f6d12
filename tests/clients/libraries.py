"""Where viem and ethers are: the folder that `make clients` fills, or the one that `GNOMON_CLIENTS` names."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

PINNED: Final = {"ethers": "6.17.0", "viem": "2.57.20"}


def folder() -> Path:
    """Return the folder of the pinned versions."""
    named = os.environ.get("GNOMON_CLIENTS")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    versions = "-".join(f"{name}-{version}" for name, version in PINNED.items())
    return Path(base) / "gnomon" / "clients" / versions


def missing() -> str | None:
    """Return what is missing and how to get it, or None."""
    if shutil.which("node") is None:
        return "no node: apt-get install nodejs npm"
    if not all((folder() / "node_modules" / name / "package.json").exists() for name in PINNED):
        return "no viem and ethers: make clients"
    return None


def install() -> None:
    """Install the pinned versions, once."""
    if missing() is None:
        return
    target = folder()
    target.mkdir(parents=True, exist_ok=True)
    (target / "package.json").write_text('{"private": true}')
    packages = [f"{name}@{version}" for name, version in PINNED.items()]
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *packages], cwd=target, check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip


if __name__ == "__main__":
    install()
    print(folder())
    sys.exit(missing())
