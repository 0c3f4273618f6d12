"""
A dead letter as a record of `gnomon.dead_letters.v1`, and how many are too many.

The table `gnomon_core.dead_letters` has every one of them once, with its bytes. The topic is for those who want to be
told: at least once, and without the bytes where they would not fit.
"""

from base64 import b64encode
from collections import deque

import msgspec

from ingest.batch import Poison

MAX_BYTES = 512 << 10
"""Longer records travel without their bytes; the table has them."""
WINDOW_SECONDS = 60.0


class Letter(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The record's value, as JSON."""

    topic: str
    partition: int
    offset: int
    reason: str
    detail: str
    n_bytes: int
    bytes_base64: str = ""
    v: int


_encode = msgspec.json.Encoder().encode


def record(topic: str, partition: int, poison: Poison) -> tuple[bytes, bytes]:
    """Return key and value: letters of one partition keep their order."""
    letter = Letter(
        v=1,
        topic=topic,
        partition=partition,
        offset=poison.off,
        reason=poison.reason,
        detail=poison.detail,
        n_bytes=len(poison.data),
        bytes_base64=b64encode(poison.data).decode() if len(poison.data) <= MAX_BYTES else "",
    )
    return f"{topic}/{partition}".encode(), _encode(letter)


class Allowance:
    """How many dead letters a partition may have within a minute before a person must look."""

    def __init__(self, limit: int) -> None:
        """
        Args:
            limit: 0 = any number.
        """
        self._limit = limit
        self._counts: deque[tuple[float, int]] = deque()
        self._n = 0

    def add(self, n: int, now: float) -> None:
        """Count letters."""
        if n:
            self._counts.append((now, n))
            self._n += n

    def is_exceeded(self, now: float) -> bool:
        """Return whether there were too many within the last minute."""
        while self._counts and self._counts[0][0] <= now - WINDOW_SECONDS:
            self._n -= self._counts.popleft()[1]
        return self._limit > 0 and self._n > self._limit
