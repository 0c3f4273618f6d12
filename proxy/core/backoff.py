"""How long a retry waits. Pure: no clock, no chance."""

from gnomon.config.model import Retry


def waits(retry: Retry) -> tuple[float, ...]:
    """
    Return the seconds before each round but the first: `delay`, each time `backoffFactor` longer, never above the cap.

    What is random is added by the caller: anything from 0 to `jitter`, on top of the cap too.
    """
    cap = retry.backoff_max_seconds
    wait = min(retry.delay_seconds, cap)
    found = []
    for _ in range(retry.max_attempts - 1):
        found.append(wait)
        wait = min(wait * retry.backoff_factor, cap)
    return tuple(found)
