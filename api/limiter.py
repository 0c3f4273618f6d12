"""How often one caller may ask: a bucket of permits for each name, filled at a rate. As many buckets as tokens."""

from dataclasses import dataclass


@dataclass(slots=True)
class _Bucket:
    permits: float
    at: float


class Limiter:
    """Buckets by name; pure, time is an argument."""

    def __init__(self, per_second: float, burst: int, max_names: int = 1024) -> None:
        """
        Args:
            per_second: permits that a bucket gets; 0 = no limit.
            burst: permits that it holds at most.
            max_names: more names than this share one bucket, so that memory is bounded whoever asks.
        """
        self._per_second = per_second
        self._burst = float(burst)
        self._max_names = max_names
        self._buckets: dict[str, _Bucket] = {}

    def wait_seconds(self, name: str, now: float) -> float:
        """
        Take a permit and return 0, or take none and return after how many seconds there will be one.

        Args:
            now: monotonic.
        """
        if not self._per_second:
            return 0.0
        bucket = self._buckets.get(name)
        if bucket is None:
            if len(self._buckets) >= self._max_names:
                name = ""
            bucket = self._buckets.setdefault(name, _Bucket(self._burst, now))
        bucket.permits = min(self._burst, bucket.permits + (now - bucket.at) * self._per_second)
        bucket.at = now
        if bucket.permits >= 1.0:
            bucket.permits -= 1.0
            return 0.0
        return (1.0 - bucket.permits) / self._per_second
