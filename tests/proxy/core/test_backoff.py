"""The waits between rounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.config.model import Retry
from proxy.core.backoff import waits


def retry(attempts: int, delay: float, factor: float = 1.2, cap: float = 3.0) -> Retry:
    return Retry(max_attempts=attempts, delay_seconds=delay, backoff_factor=factor, backoff_max_seconds=cap)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (retry(1, 1.0), []),
        (retry(2, 1.0), [1.0]),
        (retry(4, 0.0), [0.0, 0.0, 0.0]),
        (retry(4, 1.0, 2.0, 8.0), [1.0, 2.0, 4.0]),
        (retry(5, 1.0, 2.0, 3.0), [1.0, 2.0, 3.0, 3.0]),
        (retry(4, 1.0, 1.0), [1.0, 1.0, 1.0]),
        (retry(3, 5.0, 2.0, 3.0), [3.0, 3.0]),
        (retry(3, 1.0, 0.5), [1.0, 0.5]),
        (retry(100, 1.0, 1e300, 2.0), [1.0] + [2.0] * 98),
    ],
    ids=[
        "no retry",
        "one",
        "no delay",
        "doubling",
        "capped",
        "steady",
        "above the cap",
        "shrinking",
        "enormous factor",
    ],
)
def test_waits_grow_up_to_the_cap(policy: Retry, expected: list[float]) -> None:
    assert list(waits(policy)) == expected


@given(st.integers(1, 100), st.floats(0, 100), st.floats(1, 1e9), st.floats(0, 100))
def test_no_wait_is_above_the_cap_or_below_the_last(attempts: int, delay: float, factor: float, cap: float) -> None:
    found = waits(retry(attempts, delay, factor, cap))

    assert len(found) == attempts - 1
    assert all(0 <= wait <= cap for wait in found)
    assert list(found) == sorted(found)
