"""A browser for tests: Debian's Chromium by Playwright; axe-core from npm, in a folder that `make clients` fills."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

AXE_VERSION: Final = "4.14.1"
COMMANDS: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")


def browser() -> str | None:
    """Return the browser's command: `GNOMON_CHROMIUM`, or what is installed."""
    named = os.environ.get("GNOMON_CHROMIUM")
    return named or next((path for name in COMMANDS if (path := shutil.which(name))), None)


def folder() -> Path:
    """Return where axe-core is."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "gnomon" / "browser" / f"axe-core-{AXE_VERSION}"


def axe() -> Path:
    """Return axe-core's script."""
    return folder() / "node_modules" / "axe-core" / "axe.min.js"


def missing() -> str | None:
    """Return what is missing and how to get it, or None."""
    if browser() is None:
        return "no Chromium: apt-get install chromium, or name one in GNOMON_CHROMIUM"
    if importlib.util.find_spec("playwright") is None:
        return "no playwright: pip install 'gnomon[dev]'"
    return None if axe().is_file() else "no axe-core: make clients"


def install() -> None:
    """Install axe-core, once."""
    if axe().is_file():
        return
    folder().mkdir(parents=True, exist_ok=True)
    (folder() / "package.json").write_text('{"private": true}')
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", f"axe-core@{AXE_VERSION}"],
        cwd=folder(),
        check=True,
        stdout=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    install()
    print(folder())
    sys.exit(None if axe().is_file() else 1)
