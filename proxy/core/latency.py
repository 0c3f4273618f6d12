"""Durations of one method, and the delay that a quantile of them asks for."""

import math

from msgspec import Struct

from gnomon.config.model import Duration

SAMPLES = 256


class Latencies:
    """The last `SAMPLES` durations, in seconds."""

    __slots__ = ("_at", "_ring")

    def __init__(self) -> None:
        self._ring: list[float] = []
        self._at = 0

    def add(self, seconds: float) -> None:
        """Take one duration."""
        if len(self._ring) < SAMPLES:
            self._ring.append(seconds)
        else:
            self._ring[self._at] = seconds
            self._at = (self._at + 1) % SAMPLES

    def quantile(self, q: float) -> float | None:
        """Return the q-quantile (nearest rank), or None without samples."""
        if not self._ring:
            return None
        ordered = sorted(self._ring)
        return ordered[min(len(ordered), max(1, math.ceil(q * len(ordered)))) - 1]


class Delay(Struct, frozen=True):
    """A delay in seconds, and whether it moves with the samples."""

    seconds: float
    is_adaptive: bool


def delay_for(duration: Duration, latencies: Latencies) -> Delay:
    """
    Return the delay that a setting means now.

    A quantile is base + observed quantile, held within its bounds; without samples it is its base, or the upper
    bound where there is none: a cold start must not cut calls short.
    """
    if isinstance(duration, float | int):
        return Delay(float(duration), False)
    observed = latencies.quantile(duration.quantile)
    if observed is None:
        seconds = duration.base_seconds or duration.max_seconds
    else:
        seconds = duration.base_seconds + observed
    return Delay(min(max(seconds, duration.min_seconds), duration.max_seconds), True)
