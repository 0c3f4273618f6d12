"""The state of a log as other processes see it."""

from pathlib import Path

import pytest

from gnomon.events.log import Consumer, LogDamaged, LogMissing, LogStatus, status
from gnomon.events.log.segment import HEADER_BYTES, segment_name
from tests.events.log.conftest import SEGMENT_BYTES, OpenWriter, fill


def test_status_of_a_running_log(path: Path, open_writer: OpenWriter) -> None:
    """Sizes, counters and each consumer's lag, while the writer has it open."""
    writer = open_writer()
    ingest, _ = Consumer(path, "ingest"), Consumer(path, "shipper")
    fill(writer, 35)
    writer.prepare_next()
    fill(writer, 5)
    writer.append(b"lost")
    ingest.set(38)

    assert status(path) == LogStatus(
        log_id=writer.log_id,
        size_bytes=4 * SEGMENT_BYTES,
        n_segments=4,
        start=0,
        accepted=40,
        dropped=1,
        positions={"ingest": 38, "shipper": 0},
    )
    assert status(path).lag_by_consumer == {"ingest": 2, "shipper": 40}


def test_status_counts_the_segment_made_ahead_and_the_oldest_that_is_left(path: Path, open_writer: OpenWriter) -> None:
    """A recycled segment is in neither count twice."""
    writer = open_writer()
    consumer = Consumer(path, "ingest")
    fill(writer, 25)
    consumer.set(12)
    writer.prepare_next()
    seen = status(path)

    assert (seen.size_bytes, seen.n_segments, seen.start, seen.accepted) == (3 * SEGMENT_BYTES, 2, 10, 25)


def test_status_of_no_log(path: Path) -> None:
    """There is no writer yet."""
    with pytest.raises(LogMissing):
        status(path)


def test_status_of_a_damaged_log(path: Path, open_writer: OpenWriter) -> None:
    """A newest segment without a header, or with another base, has no counters to believe."""
    open_writer().close()
    file = path / segment_name(0)
    content = file.read_bytes()
    file.write_bytes(content[: HEADER_BYTES - 1])
    with pytest.raises(LogDamaged, match="cut short"):
        status(path)
    file.write_bytes(content[:24] + b"\x01" + content[25:])
    with pytest.raises(LogDamaged, match="begins with record 1"):
        status(path)
