"""Keys have a partition that no version changes."""

from collections import Counter

import pytest

from gnomon.kafka.partitions import partition_of


@pytest.mark.parametrize(
    ("key", "n", "expected"),
    [(b"", 12, 10), (b"evm:1", 1, 0), (b"evm:1", 3, 2), (b"alchemy", 12, 2), (b"9f3c51d0aa11bb22-1f", 12, 3)],
)
def test_a_key_stays_in_its_partition(key: bytes, n: int, expected: int) -> None:
    """These are pinned: where one changes, equal keys of two versions would lose their order."""
    assert partition_of(key, n) == expected


def test_request_ids_spread_over_the_partitions() -> None:
    """Ids of one worker, which differ in their counter alone, fall on all partitions about alike."""
    counts = Counter(partition_of(b"9f3c51d0aa11bb22-%x" % n, 12) for n in range(12_000))

    assert len(counts) == 12
    assert min(counts.values()) > 800
    assert max(counts.values()) < 1200
