"""The pages of docs/reference are what the code says now."""

from pathlib import Path

import pytest

from gnomon.cli.reference import PAGES
from gnomon.cli.reference.__main__ import main
from tests.services import ROOT

FOLDER = ROOT / "docs" / "reference"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_written_whole(name: str, tmp_path: Path) -> None:
    """`python -m gnomon.cli.reference FOLDER` writes each page; `tests/test_packaging.py` holds the committed ones."""
    main(tmp_path / "made")

    assert (tmp_path / "made" / name).read_text("utf-8") == PAGES[name]()


def test_no_page_is_left_behind() -> None:
    """Every file of the folder is made by the code."""
    assert {file.name for file in FOLDER.iterdir()} == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_no_cell_of_a_table_tears_its_row(name: str) -> None:
    """Each row of a table has as many cells as its head."""
    for block in PAGES[name]().split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        widths = {len(row.replace("\\|", "").split("|")) for row in rows}

        assert len(widths) <= 1, rows[0]
