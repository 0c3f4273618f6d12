"""`python -m gnomon.cli.reference FOLDER` writes every page."""

import sys
from pathlib import Path

from gnomon.cli.reference import PAGES


def main(folder: Path) -> None:
    """Write the pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, render in PAGES.items():
        (folder / name).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
