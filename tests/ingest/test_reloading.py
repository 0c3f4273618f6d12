"""Prices and masks that change while the steps run."""

import logging
import time
from collections.abc import Callable

import pytest

from gnomon.config.model import Settings
from gnomon.cost.book import parse
from gnomon.cost.charge import Charger, PriceBooks
from gnomon.cost.errors import PriceBookError
from ingest.batch import decode
from ingest.comparisons import Policies
from ingest.reloading import Reloader
from ingest.rows import Context, rows_of
from ingest.settings import context
from tests.ingest.events import mixture


def priced(usd: int) -> Context:
    book = parse(f"{{vendor: alchemy, usd_per_million_units: {usd}, default_units: 1}}", "b")
    return Context(Charger(PriceBooks({}, [book])), Policies({}), keep_bodies="none")


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def bill(steps: Context) -> set[object]:
    rows = rows_of(decode(0, mixture(60)), steps, 0).rows.tables["attempts"]
    vendors, charges = rows.column("vendor"), rows.column("usd")
    return {usd for vendor, usd in zip(vendors, charges, strict=True) if vendor == "alchemy"}


def test_the_steps_go_on_with_what_was_read() -> None:
    """Whoever holds the context charges by the new books from then on."""
    steps, counted = priced(1), list[str]()
    reloader = Reloader(steps, lambda: priced(3), counted.append)
    reloader.start()
    before = bill(steps)
    reloader.request()
    until(lambda: counted)
    reloader.stop()

    assert before == {10**6}
    assert bill(steps) == {3 * 10**6}
    assert counted == ["ok"]


def test_a_file_that_cannot_be_used_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It is told, and counted; the next one counts."""
    steps, counted = priced(1), list[str]()
    answers: list[Callable[[], Context]] = [lambda: priced(2), lambda: _refused()]

    def read() -> Context:
        return answers.pop()()

    reloader = Reloader(steps, read, counted.append)
    reloader.start()
    with caplog.at_level(logging.ERROR):
        reloader.request()
        until(lambda: counted == ["invalid"])
        assert bill(steps) == {10**6}
        reloader.request()
        until(lambda: len(counted) == 2)
    reloader.stop()

    assert "the old one stays in force: price book x: odd" in caplog.text
    assert bill(steps) == {2 * 10**6}


def _refused() -> Context:
    raise PriceBookError("x", ["odd"])


def test_everything_is_taken_over() -> None:
    """No member is left behind."""
    steps, other = priced(1), context(Settings())
    steps.become(other)

    assert steps == other
