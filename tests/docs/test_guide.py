"""The guide as a newcomer has it: a new folder, real nodes, every command of a page in its order."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import GUIDE, README
from tests.docs.snippets import blocks
from tests.docs.trial import Trial
from tests.services import ROOT

FIRST = ROOT / "docs" / "guide" / "first-hour.md"
pytestmark = [pytest.mark.e2e, pytest.mark.clickhouse, pytest.mark.nodes, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def hour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """The first hour gone by: findings, a mask, an alert that was delivered; each block gave what stands around it."""
    trial = Trial(tmp_path_factory.mktemp("hour"))
    try:
        for block in blocks(FIRST):
            trial.go(block)
        yield trial
    finally:
        trial.close()


def test_the_first_hour_does_what_it_says(hour: Trial) -> None:
    """A rule, a receiver and both endpoints are at work at its end."""
    assert sorted(hour.running) == ["gnomon demo --nodes", "gnomon up 2> up.log", "python3 receiver.py"]


@pytest.mark.parametrize("page", [README, *(page for page in GUIDE if page != FIRST)], ids=lambda page: page.stem)
def test_a_page_does_what_it_says(page: Path, hour: Trial) -> None:
    """After the first hour; the next page finds its files again."""
    with hour.kept():
        for block in blocks(page):
            hour.go(block)
