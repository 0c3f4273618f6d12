"""Where the shared cases are: `GNOMON_SHARED`, or a folder `shared` beside the repository; they are no part of it."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def shared_folder(name: str) -> Path | None:
    """Return a folder of the shared cases, or None where there is none."""
    base = Path(os.environ.get("GNOMON_SHARED") or ROOT.parent / "shared")
    folder = base / "cases" / name
    return folder if folder.is_dir() else None
