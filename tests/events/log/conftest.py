"""Logs with small segments."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gnomon.events.log import Reader, Writer
from gnomon.events.log.segment import HEADER_BYTES, RECORD_BYTES

SEGMENT_BYTES = HEADER_BYTES + 10 * (RECORD_BYTES + 84)
"""Ten records of 84 bytes fill a segment exactly."""

OpenWriter = Callable[..., Writer]


def record(seq: int, n_bytes: int = 84) -> bytes:
    """Return the record that tests store under a number."""
    return (b"%d:" % seq * n_bytes)[:n_bytes]


def fill(writer: Writer, n: int) -> None:
    """Append records by their numbers; each must be accepted."""
    for _ in range(n):
        seq = writer.accepted
        assert seq == writer.append(record(seq))


def read_all(reader: Reader) -> list[bytes]:
    """Return everything that the reader has now, and check that the numbers are dense."""
    found: list[bytes] = []
    begin = reader.seq
    while True:
        first, records = reader.read()
        assert begin + len(found) == first
        if not records:
            return found
        found += records


def segment_files(path: Path) -> list[str]:
    """Return the names of the segment files, in order."""
    return sorted(name for name in os.listdir(path) if name.startswith("seg-"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a directory for a log; not made yet."""
    return tmp_path / "events" / "0"


@pytest.fixture
def open_writer(path: Path) -> Iterator[OpenWriter]:
    """Return a way to open writers that are closed at the end."""
    opened: list[Writer] = []

    def open_one(segment_bytes: int = SEGMENT_BYTES, max_bytes: int = 4 * SEGMENT_BYTES) -> Writer:
        writer = Writer(path, segment_bytes, max_bytes)
        opened.append(writer)
        return writer

    yield open_one
    for writer in opened:
        writer.close()
