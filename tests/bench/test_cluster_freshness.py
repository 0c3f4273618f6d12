"""How old a row is when it is seen, from what was asked of SQL."""

import pytest

from bench.cluster_freshness import ages


def test_a_row_is_as_old_as_the_first_look_that_shows_it() -> None:
    """By the greatest offset of its own partition: what another partition shows says nothing of it."""
    answered = [10.0, 10.1, 10.2, 10.3]
    polls = [(10.5, {}), (11.0, {0: 4}), (11.5, {0: 4, 1: 0}), (12.0, {0: 7, 1: 0})]
    places = {0: (0, 4), 1: (1, 0), 2: (0, 5), 3: (0, 7)}

    assert ages(answered, polls, places) == pytest.approx([1.0, 1.4, 1.8, 1.7])


def test_a_row_that_was_never_seen_has_no_age() -> None:
    """It is missing from the figures, and so from their number."""
    assert ages([1.0, 1.0], [(2.0, {0: 3})], {0: (0, 3), 1: (0, 4)}) == [1.0]
    assert ages([5.0], [(4.9, {0: 0})], {0: (0, 0)}) == [0.0]
