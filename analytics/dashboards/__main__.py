"""`python -m analytics.dashboards FOLDER` writes one JSON file for each dashboard."""

import sys
from pathlib import Path

from analytics.dashboards import dashboards


def main(folder: Path) -> None:
    """Write the files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for dashboard in dashboards():
        (folder / dashboard.file).write_text(dashboard.text(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
