"""Delays learnt from durations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.config.model import Quantile
from proxy.core.latency import SAMPLES, Delay, Latencies, delay_for


def latencies(*seconds: float) -> Latencies:
    kept = Latencies()
    for one in seconds:
        kept.add(one)
    return kept


@pytest.mark.parametrize(
    ("samples", "q", "expected"),
    [
        ((), 0.5, None),
        ((3.0,), 0.01, 3.0),
        ((3.0,), 0.99, 3.0),
        ((1.0, 2.0), 0.5, 1.0),
        ((1.0, 2.0), 0.51, 2.0),
        ((4.0, 1.0, 3.0, 2.0), 0.75, 3.0),
        (tuple(float(i) for i in range(1, 101)), 0.99, 99.0),
        (tuple(float(i) for i in range(1, 101)), 0.999, 100.0),
    ],
)
def test_the_nearest_rank(samples: tuple[float, ...], q: float, expected: float | None) -> None:
    """The smallest sample that at least a share of `q` does not exceed."""
    assert latencies(*samples).quantile(q) == expected


@given(st.lists(st.floats(0, 10), min_size=1, max_size=300), st.floats(0.01, 0.99))
def test_a_quantile_is_a_recent_sample(samples: list[float], q: float) -> None:
    """Samples older than the ring have no say."""
    kept = latencies(*samples)

    assert kept.quantile(q) in samples[-SAMPLES:]


def test_old_samples_are_forgotten() -> None:
    """After as many new ones as the ring holds, nothing of the old is left."""
    assert latencies(*[9.0] * SAMPLES, *[1.0] * SAMPLES).quantile(0.99) == 1.0


LEARNT = Quantile(quantile=0.9, min_seconds=0.1, max_seconds=1.0)


@pytest.mark.parametrize(
    ("setting", "samples", "expected"),
    [
        (0.25, (), Delay(0.25, False)),
        (LEARNT, (), Delay(1.0, True)),
        (Quantile(quantile=0.9, min_seconds=0.1, max_seconds=1.0, base_seconds=0.3), (), Delay(0.3, True)),
        (Quantile(quantile=0.9, min_seconds=0.1, max_seconds=1.0, base_seconds=0.05), (), Delay(0.1, True)),
        (Quantile(quantile=0.9, min_seconds=0.1, max_seconds=1.0, base_seconds=0.3), (0.2,), Delay(0.5, True)),
        (LEARNT, (0.01,), Delay(0.1, True)),
        (LEARNT, (0.1,), Delay(0.1, True)),
        (LEARNT, (0.4,), Delay(0.4, True)),
        (LEARNT, (7.0,), Delay(1.0, True)),
    ],
)
def test_a_delay_is_held_within_its_bounds(
    setting: float | Quantile, samples: tuple[float, ...], expected: Delay
) -> None:
    """Without samples it is its base, else its upper bound: a cold start cuts nothing short."""
    assert delay_for(setting, latencies(*samples)) == expected
