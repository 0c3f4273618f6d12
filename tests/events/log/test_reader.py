"""The reader: every record in order, or a named error."""

import os
import shutil
import struct
from pathlib import Path

import pytest

from gnomon.events.log import (
    Consumer,
    LogAhead,
    LogBehind,
    LogDamaged,
    LogError,
    LogMissing,
    LogReplaced,
    LogUnknown,
    Reader,
)
from gnomon.events.log.segment import COMMITTED_WORD, HEADER_BYTES, RECORD_BYTES, segment_name
from tests.events.log.conftest import OpenWriter, fill, read_all, record, segment_files
from tests.events.log.test_writer import flip

STEP = RECORD_BYTES + 84


def test_before_the_first_writer_there_is_no_log(path: Path) -> None:
    """No directory, an empty one, one with an id only: come again later."""
    for make in (lambda: None, lambda: path.mkdir(parents=True), lambda: (path / "log_id").write_bytes(bytes(16))):
        make()
        with pytest.raises(LogMissing):
            Reader(path)


@pytest.mark.parametrize("seq", [0, 1, 9, 10, 11, 20, 25])
def test_reading_begins_anywhere(path: Path, open_writer: OpenWriter, seq: int) -> None:
    """At the first record, within a segment, at both sides of a segment's end, at the end of the log."""
    writer = open_writer()
    fill(writer, 25)
    reader = Reader(path, seq)
    assert (writer.log_id, seq) == (reader.log_id, reader.seq)

    assert [record(i) for i in range(seq, 25)] == read_all(reader)
    assert reader.seq == 25
    fill(writer, 1)
    assert (25, [record(25)]) == reader.read()


def test_an_empty_log_has_no_records_until_one_comes(path: Path, open_writer: OpenWriter) -> None:
    """Nothing new is an empty list, as often as one asks."""
    writer = open_writer()
    reader = Reader(path)
    assert [reader.read() for _ in range(3)] == [(0, [])] * 3
    fill(writer, 1)

    assert (0, [record(0)]) == reader.read()


@pytest.mark.parametrize(
    ("limit", "max_bytes", "expected"),
    [
        (1, 1 << 20, 1),
        (9, 1 << 20, 9),
        (10, 1 << 20, 10),
        (11, 1 << 20, 10),
        (100, 1, 1),
        (100, STEP, 1),
        (100, STEP + 1, 2),
        (100, 3 * STEP, 3),
    ],
)
def test_a_read_is_bounded(path: Path, open_writer: OpenWriter, limit: int, max_bytes: int, expected: int) -> None:
    """By records and by bytes, at least one; a segment's end ends an answer too. Nothing is skipped by it."""
    fill(open_writer(), 15)
    reader = Reader(path)

    assert (0, [record(i) for i in range(expected)]) == reader.read(limit, max_bytes)
    assert [record(i) for i in range(expected, 15)] == read_all(reader)


@pytest.mark.parametrize(("limit", "max_bytes"), [(0, 1), (1, 0), (-1, -1)])
def test_bounds_below_one_are_refused(path: Path, open_writer: OpenWriter, limit: int, max_bytes: int) -> None:
    """They could only mean an endless loop."""
    fill(open_writer(), 1)
    with pytest.raises(ValueError, match="at least 1"):
        Reader(path).read(limit, max_bytes)


def test_a_position_above_the_end_is_named(path: Path, open_writer: OpenWriter) -> None:
    """It is never waited for in silence."""
    fill(open_writer(), 15)
    with pytest.raises(LogAhead) as caught:
        Reader(path, 16)

    assert (caught.value.seq, caught.value.end) == (16, 15)


def test_a_position_below_the_start_is_named(path: Path, open_writer: OpenWriter) -> None:
    """With the oldest record that is left."""
    writer = open_writer()
    consumer = Consumer(path, "ingest")
    fill(writer, 40)
    consumer.set(25)
    fill(writer, 10)
    with pytest.raises(LogBehind) as caught:
        Reader(path, 9)

    assert (caught.value.seq, caught.value.start) == (9, 10)


def test_a_reader_at_a_segments_end_goes_on_although_that_segment_was_recycled(
    path: Path, open_writer: OpenWriter
) -> None:
    """It has consumed the segment, so the writer takes it, and the reader's map shows other content at its place."""
    writer = open_writer(max_bytes=2 * 4096 + 2 * 10 * STEP)
    consumer, reader = Consumer(path, "ingest"), Reader(path)
    found: list[bytes] = []
    for n in (10, 10, 10, 5, 5, 10, 1):
        fill(writer, n)
        found += read_all(reader)
        consumer.set(reader.seq)

    assert [record(seq) for seq in range(51)] == found
    assert len(segment_files(path)) == 2


def test_a_segment_taken_but_not_yet_used_again_is_no_trouble(path: Path, open_writer: OpenWriter) -> None:
    """Made ahead it has its old content and no name; its reader goes on by the next name."""
    writer = open_writer()
    consumer, reader = Consumer(path, "ingest"), Reader(path)
    fill(writer, 10)
    assert len(read_all(reader)) == 10
    fill(writer, 1)
    consumer.set(10)
    assert writer.prepare_next()
    assert segment_name(0) not in segment_files(path)

    assert [record(10)] == read_all(reader)


def test_a_segment_recycled_in_the_middle_of_reading_is_named(path: Path, open_writer: OpenWriter) -> None:
    """A reader slower than all consumers loses records: it is told which, and gets nothing false before."""
    writer = open_writer(max_bytes=2 * 4096 + 2 * 10 * STEP)
    consumer, reader = Consumer(path, "ingest"), Reader(path)
    fill(writer, 20)
    assert (0, [record(i) for i in range(4)]) == reader.read(limit=4)
    consumer.set(20)
    fill(writer, 15)
    with pytest.raises(LogBehind) as caught:
        reader.read()

    assert (caught.value.seq, caught.value.start) == (4, 20)
    with pytest.raises(LogBehind):
        reader.read()


def test_removed_segments_are_named(path: Path, open_writer: OpenWriter) -> None:
    """Somebody removed the middle one: the reader does not wait for it for ever."""
    fill(open_writer(), 30)
    reader = Reader(path)
    (path / segment_name(10)).unlink()
    assert len(reader.read()[1]) == 10
    with pytest.raises(LogBehind) as caught:
        reader.read()
    assert (caught.value.seq, caught.value.start) == (10, 20)
    with pytest.raises(LogBehind):
        Reader(path, 15)
    assert [record(i) for i in range(20, 30)] == read_all(Reader(path, 20))


@pytest.mark.parametrize(("n_read", "n_new"), [(0, 0), (0, 15), (5, 0), (5, 3), (5, 15), (12, 15)])
def test_a_log_replaced_under_its_reader_is_named(path: Path, open_writer: OpenWriter, n_read: int, n_new: int) -> None:
    """The directory was moved away and a new log begun, whose newest segment may have the same name: its id is told."""
    writer = open_writer()
    fill(writer, n_read)
    reader = Reader(path)
    writer.close()
    shutil.move(path, path.parent / "old")
    assert n_read == 0 or reader.read()[1]
    with pytest.raises(LogMissing):
        read_all(reader)
    again = open_writer()
    fill(again, n_new)
    with pytest.raises(LogReplaced) as caught:
        read_all(reader)

    assert (writer.log_id, again.log_id) == (caught.value.old_id, caught.value.new_id)


@pytest.mark.parametrize(
    ("offset", "error"),
    [(0, LogDamaged), (7, LogUnknown), (8, LogDamaged), (24, LogDamaged), (32, LogDamaged)],
    ids=["magic", "format", "log id", "base", "checksum"],
)
def test_a_damaged_or_unknown_header_is_named(
    path: Path, open_writer: OpenWriter, offset: int, error: type[Exception]
) -> None:
    """On opening, and when a reader comes to that segment later."""
    fill(open_writer(), 15)
    reader = Reader(path)
    flip(path / segment_name(10), offset)

    with pytest.raises(error, match=str(path)):
        Reader(path, 12)
    assert len(reader.read()[1]) == 10
    with pytest.raises(error, match=str(path)):
        reader.read()


@pytest.mark.parametrize("end", [0, HEADER_BYTES - 1, 1 << 31])
def test_a_committed_position_outside_the_segment_is_named(path: Path, open_writer: OpenWriter, end: int) -> None:
    """Below the header or above the file's end."""
    writer = open_writer()
    fill(writer, 3)
    writer.close()
    patch(path / segment_name(0), COMMITTED_WORD * 8, struct.pack("=Q", 3 << 32 | end))

    with pytest.raises(LogDamaged, match="committed"):
        Reader(path)


@pytest.mark.parametrize("place", [0, 1, 3, 4, 7, 8, 15, 16, 60, STEP - 1])
@pytest.mark.parametrize("damaged", [0, 4, 9])
def test_a_flipped_bit_in_a_record_is_named(path: Path, open_writer: OpenWriter, place: int, damaged: int) -> None:
    """In length, checksum, number or bytes: the records before it come, it does not, nor does any after it."""
    fill(open_writer(), 15)
    reader = Reader(path)
    flip(path / segment_name(0), HEADER_BYTES + damaged * STEP + place)
    if damaged:
        assert (0, [record(i) for i in range(damaged)]) == reader.read()
    for _ in range(2):
        with pytest.raises(LogDamaged, match=f"record {damaged} in {segment_name(0)}"):
            reader.read()

    assert damaged == reader.seq


@pytest.mark.parametrize("place", [2, 9])
def test_damage_on_the_way_to_the_wanted_record_is_named(path: Path, open_writer: OpenWriter, place: int) -> None:
    """A record is found by walking lengths: a wrong length or number there is no way to it."""
    fill(open_writer(), 15)
    flip(path / segment_name(0), HEADER_BYTES + 3 * STEP + place)

    with pytest.raises(LogDamaged, match="record 3"):
        Reader(path, 5)


def test_zeros_in_place_of_records_are_no_empty_records(path: Path, open_writer: OpenWriter) -> None:
    """What a power loss may leave behind a header that reached the disk: the first record is empty and 0 otherwise."""
    writer = open_writer()
    assert writer.append(b"") == 0
    writer.close()
    patch(path / segment_name(0), HEADER_BYTES, bytes(RECORD_BYTES))

    with pytest.raises(LogDamaged, match="record 0"):
        Reader(path).read()


@pytest.mark.parametrize("size", [0, 100, HEADER_BYTES, HEADER_BYTES + 5 * STEP])
def test_a_truncated_segment_is_named(path: Path, open_writer: OpenWriter, size: int) -> None:
    """Before anything of it is read: its header says more than the file has."""
    fill(open_writer(), 15)
    os.truncate(path / segment_name(0), size)

    with pytest.raises(LogDamaged):
        Reader(path)


def test_a_closed_reader_says_so(path: Path, open_writer: OpenWriter) -> None:
    """Closing twice is harmless."""
    open_writer()
    reader = Reader(path)
    reader.close()
    reader.close()
    with pytest.raises(LogError, match="closed"):
        reader.read()


def patch(file: Path, offset: int, content: bytes) -> None:
    """Write over some bytes of a file."""
    with open(file, "r+b") as opened:
        opened.seek(offset)
        opened.write(content)
