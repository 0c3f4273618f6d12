"""How often one caller may ask."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.limiter import Limiter


def test_a_burst_then_the_rate() -> None:
    """Three at once, then one each half second; the wait is told exactly."""
    limiter = Limiter(2.0, 3)

    assert [limiter.wait_seconds("a", 10.0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert limiter.wait_seconds("a", 10.25) == pytest.approx(0.25)
    assert limiter.wait_seconds("a", 10.5) == 0
    assert limiter.wait_seconds("a", 10.5) == 0.5


def test_callers_do_not_share() -> None:
    """One who asks too often leaves the others alone."""
    limiter = Limiter(1.0, 1)
    limiter.wait_seconds("a", 0.0)

    assert limiter.wait_seconds("a", 0.0) > 0
    assert limiter.wait_seconds("b", 0.0) == 0


def test_zero_is_no_limit() -> None:
    """As the setting says."""
    limiter = Limiter(0.0, 1)

    assert {limiter.wait_seconds("a", 0.0) for _ in range(1000)} == {0.0}


def test_names_beyond_the_bound_share_one_bucket() -> None:
    """Memory stays bounded whoever asks."""
    limiter = Limiter(1.0, 1, max_names=2)

    assert [limiter.wait_seconds(name, 0.0) for name in ("a", "b", "c", "d")] == [0, 0, 0, 1.0]


@given(st.lists(st.floats(0, 2), max_size=200))
def test_no_more_than_burst_and_rate_get_through(pauses: list[float]) -> None:
    """Whenever they come."""
    limiter = Limiter(5.0, 4)
    now, n_through = 0.0, 0
    for pause in pauses:
        now += pause
        n_through += limiter.wait_seconds("a", now) == 0

    assert n_through <= 4 + 5 * now + 1e-6
