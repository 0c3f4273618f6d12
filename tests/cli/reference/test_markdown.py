"""Cells and units of the reference's tables."""

import doctest

import pytest

from gnomon.cli.reference import events, markdown, metrics


@pytest.mark.parametrize("module", [markdown, events, metrics], ids=lambda m: m.__name__)
def test_the_examples_hold(module: object) -> None:
    """What the docstrings show is what happens."""
    failed, tried = doctest.testmod(module)  # type: ignore[arg-type]

    assert failed == 0
    assert tried > 0
