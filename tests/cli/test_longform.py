"""DeepDiff in a process of its own."""

import time

import pytest

from gnomon.cli.longform import OutOfTime, deepdiff
from gnomon.compare.exact import decode


def test_values_arrive_as_they_are() -> None:
    """Decimals are exact, half surrogate pairs and bytes that are no UTF-8 are carried through."""
    assert "1.10000000000000000001" in deepdiff(decode(b"1.1"), decode(b"1.10000000000000000001"), 60)
    assert deepdiff(decode(b'"\\ud800a"'), decode(b'"\xff\\n"'), 60).startswith('Value of root changed from "\ud800a"')


def test_what_takes_too_long_is_ended() -> None:
    """Though DeepDiff would go on for a minute."""
    texts = ["\n".join(map(str, range(0, 30_000, step))) for step in (1, 2)]
    started = time.monotonic()

    with pytest.raises(OutOfTime):
        deepdiff(texts[0], texts[1], 0.5)
    assert time.monotonic() - started < 30
