"""The writer: what it accepts, what it drops, what it refuses to open."""

import errno
import os
import resource
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from gnomon.events.log import (
    Consumer,
    LogAhead,
    LogDamaged,
    LogLocked,
    LogUnknown,
    LogUnusable,
    Reader,
    Writer,
    status,
)
from gnomon.events.log.segment import COMMITTED_WORD, HEADER_BYTES, RECORD_BYTES, segment_name
from tests.events.log.conftest import SEGMENT_BYTES, OpenWriter, fill, read_all, record, segment_files

LARGEST = SEGMENT_BYTES - HEADER_BYTES - RECORD_BYTES


def test_records_are_numbered_from_0_without_a_gap(path: Path, open_writer: OpenWriter) -> None:
    """Over a roll too; a new log is empty."""
    writer = open_writer()
    assert (writer.accepted, writer.dropped) == (0, 0)
    numbers = [writer.append(b"%d" % i) for i in range(200)]

    assert list(range(200)) == numbers
    assert writer.accepted == 200
    assert [b"%d" % i for i in range(200)] == read_all(Reader(path))


@pytest.mark.parametrize("n_bytes", [0, 1, LARGEST - 1, LARGEST])
def test_any_size_up_to_a_whole_segment_is_kept(path: Path, open_writer: OpenWriter, n_bytes: int) -> None:
    """Empty, tiny, all but a byte, exactly filling; twice, so that the second meets a used segment."""
    writer = open_writer()
    records = [record(i, n_bytes) for i in range(2)]

    assert [writer.append(data) for data in records] == [0, 1]
    assert records == read_all(Reader(path))


def test_a_record_larger_than_a_segment_is_dropped_and_counted(path: Path, open_writer: OpenWriter) -> None:
    """It costs nothing else: what fits goes on under the next number, in the same segment."""
    writer = open_writer()
    fill(writer, 1)

    assert writer.append(bytes(LARGEST + 1)) == -1
    assert (writer.append(b"next"), writer.dropped) == (1, 1)
    assert [record(0), b"next"] == read_all(Reader(path))
    assert len(segment_files(path)) == 1


def test_a_segment_is_filled_to_its_last_byte(path: Path, open_writer: OpenWriter) -> None:
    """Ten records fill it exactly; the eleventh begins the next, named by its number."""
    writer = open_writer()
    fill(writer, 10)
    assert [segment_name(0)] == segment_files(path)
    fill(writer, 1)

    assert [segment_name(0), segment_name(10)] == segment_files(path)


def test_big_records_are_the_same_on_fresh_and_on_recycled_segments(path: Path, open_writer: OpenWriter) -> None:
    """`pwrite` on a fresh file, the map on a recycled one: readers see no difference."""
    writer = open_writer(1 << 20, 2 << 20)
    consumer = Consumer(path, "ingest")
    reader = Reader(path)
    for _ in range(6):
        begin = writer.accepted
        for seq in range(begin, begin + 5):
            assert seq == writer.append(record(seq, 190_000))

        assert [record(seq, 190_000) for seq in range(begin, begin + 5)] == read_all(reader)
        consumer.set(reader.seq)
    assert len(segment_files(path)) == 2


def test_without_a_consumer_nothing_is_recycled_and_a_full_log_drops(path: Path, open_writer: OpenWriter) -> None:
    """Four segments of ten; then new events are dropped and counted, the old ones stay."""
    writer = open_writer()
    fill(writer, 40)

    assert [writer.append(record(40)) for _ in range(3)] == [-1] * 3
    assert (writer.accepted, writer.dropped) == (40, 3)
    assert "maxBytes" in writer.trouble
    assert [record(seq) for seq in range(40)] == read_all(Reader(path))


def test_a_full_log_goes_on_when_its_consumer_does(path: Path, open_writer: OpenWriter) -> None:
    """After the drop the numbers have no gap: a gap in the events' own `seq` shows the loss."""
    writer = open_writer()
    consumer = Consumer(path, "ingest")
    fill(writer, 40)
    assert writer.append(b"lost") == -1
    consumer.set(9)
    assert not writer.prepare_next()
    consumer.set(10)
    assert writer.prepare_next()
    fill(writer, 10)

    assert writer.append(b"lost too") == -1
    assert [record(seq) for seq in range(10, 50)] == read_all(Reader(path, 10))
    assert (writer.accepted, writer.dropped) == (50, 2)


def test_a_segment_is_recycled_only_when_all_consumers_are_past_it(path: Path, open_writer: OpenWriter) -> None:
    """The slowest of two holds the log; when it leaves for good the other decides."""
    writer = open_writer()
    fast, slow = Consumer(path, "ingest"), Consumer(path, "shipper")
    fill(writer, 40)
    fast.set(40)
    assert not writer.prepare_next()
    slow.unregister()

    assert writer.prepare_next()


def test_counters_and_id_survive_a_restart_and_a_roll(path: Path, open_writer: OpenWriter) -> None:
    """A restarted writer goes on at the next number with the counts of its predecessors."""
    writer = open_writer()
    fill(writer, 40)
    writer.append(b"lost")
    log_id = writer.log_id
    writer.close()
    consumer = Consumer(path, "ingest")
    consumer.set(40)
    again = open_writer()
    assert (40, 1, log_id) == (again.accepted, again.dropped, again.log_id)
    fill(again, 1)
    again.close()

    assert (again.accepted, again.dropped) == (41, 1)
    assert (open_writer().accepted, status(path).dropped) == (41, 1)


def test_an_unreported_record_behind_the_committed_position_is_nothing(path: Path, open_writer: OpenWriter) -> None:
    """What a killed writer had stored but not committed is not read, and the next record takes its place."""
    writer = open_writer()
    fill(writer, 3)
    committed = struct.pack("=Q", writer._segment.words[COMMITTED_WORD])
    fill(writer, 1)
    writer.close()
    with open(path / segment_name(0), "r+b") as file:
        file.seek(COMMITTED_WORD * 8)
        file.write(committed)

    assert [record(seq) for seq in range(3)] == read_all(Reader(path))
    again = open_writer()
    assert again.append(b"instead") == 3
    assert read_all(Reader(path))[-1] == b"instead"


def test_a_record_is_whole_before_it_is_committed(path: Path, open_writer: OpenWriter) -> None:
    """The committed position is stored once a record, when all of its bytes are there: small, and big by `pwrite`."""
    writer = open_writer(1 << 20, 2 << 20)
    segment, words = writer._segment, writer._words
    seen: list[tuple[int, bytes | None]] = []

    class Spy:
        """Stands in front of the words of the header."""

        def __setitem__(self, word: int, value: int) -> None:
            seen.append((word, segment.record_at(segment.committed()[1], len(seen), value & 0xFFFFFFFF)))
            words[word] = value

    writer._words = Spy()  # type: ignore[assignment]
    records = [record(0), b"", record(2, 50_000), record(3)]
    fill_with = [writer.append(data) for data in records]

    assert fill_with == [0, 1, 2, 3]
    assert seen == [(COMMITTED_WORD, data) for data in records]


def test_an_append_that_raises_leaves_nothing(path: Path, open_writer: OpenWriter) -> None:
    """What is no bytes is refused before anything changes, and the next record takes the number."""
    writer = open_writer()
    fill(writer, 1)
    with pytest.raises(TypeError):
        writer.append("text")  # type: ignore[arg-type]
    fill(writer, 1)

    assert read_all(Reader(path)) == [record(0), record(1)]


@pytest.mark.parametrize("left", ["next.new", "next", "log_id.new", "at-ingest.new"])
def test_what_a_killed_writer_left_half_done_is_no_obstacle(path: Path, open_writer: OpenWriter, left: str) -> None:
    """Unfinished files are taken or replaced, whatever their size."""
    writer = open_writer()
    writer.close()
    (path / left).write_bytes(b"x" * 100)
    again = open_writer()
    fill(again, 25)

    assert [record(seq) for seq in range(25)] == read_all(Reader(path))


def test_a_segment_made_ahead_is_taken_over_by_the_next_writer(path: Path, open_writer: OpenWriter) -> None:
    """It is neither leaked nor made twice."""
    writer = open_writer()
    assert writer.prepare_next()
    writer.close()
    inode = os.stat(path / "next").st_ino
    fill(open_writer(), 11)

    assert inode == os.stat(path / segment_name(10)).st_ino
    assert not (path / "next").exists()


def test_without_a_helper_thread_rolled_segments_are_let_go(path: Path, open_writer: OpenWriter) -> None:
    """Forty rolls leave no forty open files."""
    writer = open_writer()
    consumer = Consumer(path, "ingest")
    fill(writer, 40)
    n_open = len(os.listdir("/proc/self/fd"))
    for _ in range(40):
        consumer.set(writer.accepted)
        fill(writer, 10)

    assert len(os.listdir("/proc/self/fd")) <= n_open + 2


def test_segments_of_another_size_are_replaced_when_the_setting_changes(path: Path, open_writer: OpenWriter) -> None:
    """The old ones are read as they are and not recycled."""
    writer = open_writer()
    fill(writer, 20)
    writer.close()
    consumer = Consumer(path, "ingest")
    again = open_writer(2 * SEGMENT_BYTES, 8 * SEGMENT_BYTES)
    fill(again, 10)
    consumer.set(20)
    fill(again, 60)

    assert [record(seq) for seq in range(20, 90)] == read_all(Reader(path, 20))
    assert os.stat(path / segment_files(path)[-1]).st_size == 2 * SEGMENT_BYTES


def test_consumed_segments_beyond_need_are_removed(path: Path, open_writer: OpenWriter) -> None:
    """After a long absence of its consumer the log shrinks again, one segment at a time."""
    writer = open_writer(max_bytes=10 * SEGMENT_BYTES)
    consumer = Consumer(path, "ingest")
    fill(writer, 95)
    consumer.set(95)
    sizes = []
    for _ in range(10):
        writer.prepare_next()
        sizes.append(len(segment_files(path)))

    assert sizes == [8, 7, 6, 5, 4, 3, 2, 2, 2, 2]


def test_a_second_writer_is_refused_and_told_who_holds_the_log(path: Path, open_writer: OpenWriter) -> None:
    """The message names the directory, the process and the way out; the first writer is not disturbed."""
    writer = open_writer()
    with pytest.raises(LogLocked) as caught:
        Writer(path, SEGMENT_BYTES, 4 * SEGMENT_BYTES)

    assert str(path) in str(caught.value)
    assert str(os.getpid()) == caught.value.holder
    assert "gnomon.events.log.path" in str(caught.value)
    fill(writer, 1)
    writer.close()
    fill(open_writer(), 1)


def test_the_lock_of_a_killed_process_is_free(path: Path, open_writer: OpenWriter) -> None:
    """The kernel lets go of it with the process."""
    script = "import os, signal, sys; from gnomon.events.log import Writer; w = Writer(sys.argv[1]); w.append(b'x'); "
    script += "os.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", script, str(path)], timeout=30, check=False)

    assert done.returncode == -9
    assert open_writer().accepted == 1


def test_a_full_disk_at_the_roll_drops_counts_and_recovers(
    path: Path, open_writer: OpenWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ENOSPC is no exception for the caller; when there is room again the log goes on without a gap."""
    writer = open_writer()
    fill(writer, 10)

    def no_space(fd: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", no_space)
        assert [writer.append(record(10)), writer.append(record(10))] == [-1, -1]
        assert not writer.prepare_next()
    assert "No space left" in writer.trouble
    assert not (path / "next.new").exists()
    assert writer.prepare_next()
    fill(writer, 1)

    assert (writer.trouble, writer.dropped) == ("", 2)
    assert [record(seq) for seq in range(11)] == read_all(Reader(path))


def test_a_limit_of_the_system_drops_and_counts(path: Path, open_writer: OpenWriter) -> None:
    """The same with a refusal by the kernel itself: a file size limit below a segment."""
    writer = open_writer()
    fill(writer, 10)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (HEADER_BYTES, hard))
    try:
        assert writer.append(record(10)) == -1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    writer.prepare_next()
    fill(writer, 1)

    assert writer.dropped == 1


def test_a_big_record_that_the_disk_refuses_is_dropped(
    path: Path, open_writer: OpenWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of `pwrite` costs that record only; a short write is finished through the map."""
    writer = open_writer(1 << 20, 2 << 20)
    pwrite = os.pwrite

    def fails(fd: int, data: bytes, offset: int) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fails)
        assert writer.append(record(0, 50_000)) == -1
        patch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, data[:1000], offset))
        assert writer.append(record(0, 50_000)) == 0

    assert writer.dropped == 1
    assert [record(0, 50_000)] == read_all(Reader(path))


@pytest.mark.parametrize(
    ("segment_bytes", "max_bytes"),
    [
        (0, 1 << 20),
        (HEADER_BYTES + RECORD_BYTES, 1 << 20),
        ((2 << 30) + 1, 1 << 40),
        (SEGMENT_BYTES, 2 * SEGMENT_BYTES - 1),
        (SEGMENT_BYTES, 0),
    ],
)
def test_sizes_out_of_range_are_refused(path: Path, segment_bytes: int, max_bytes: int) -> None:
    """Before anything is made on the disk."""
    with pytest.raises(ValueError, match="want"):
        Writer(path, segment_bytes, max_bytes)
    assert not path.exists()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file in its place: the message says where and why."""
    (tmp_path / "events").write_text("a file")
    with pytest.raises(LogUnusable, match="events"):
        Writer(tmp_path / "events" / "0")


def test_no_room_for_the_first_segment_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer without any segment could keep nothing, so it does not start; the lock is free again."""

    def no_space(fd: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", no_space)
        with pytest.raises(LogUnusable, match="No space left"):
            Writer(path)
    Writer(path, SEGMENT_BYTES, 4 * SEGMENT_BYTES).close()


@pytest.mark.parametrize(
    ("offset", "error"),
    [(0, LogDamaged), (7, LogUnknown), (8, LogDamaged), (24, LogDamaged), (32, LogDamaged), (64, LogDamaged)],
    ids=["magic", "format", "log id", "base", "checksum", "committed"],
)
def test_a_damaged_or_unknown_header_is_refused(
    path: Path, open_writer: OpenWriter, offset: int, error: type[Exception]
) -> None:
    """One flipped bit in any part of it; the error names directory and segment, and nothing is written."""
    writer = open_writer()
    fill(writer, 3)
    writer.close()
    flip(path / segment_name(0), offset)
    before = (path / segment_name(0)).read_bytes()
    with pytest.raises(error, match=str(path)):
        open_writer()

    assert before == (path / segment_name(0)).read_bytes()


def test_a_damaged_record_of_the_newest_segment_is_refused(path: Path, open_writer: OpenWriter) -> None:
    """It says which record; a writer does not go on behind bytes that it cannot vouch for."""
    writer = open_writer()
    fill(writer, 3)
    writer.close()
    flip(path / segment_name(0), HEADER_BYTES + (RECORD_BYTES + 84) + RECORD_BYTES + 5)

    with pytest.raises(LogDamaged, match="record 1 in"):
        open_writer()


@pytest.mark.parametrize("size", [0, 100, HEADER_BYTES, HEADER_BYTES + 50])
def test_a_truncated_newest_segment_is_refused(path: Path, open_writer: OpenWriter, size: int) -> None:
    """Cut within the header or within the records."""
    writer = open_writer()
    fill(writer, 3)
    writer.close()
    os.truncate(path / segment_name(0), size)

    with pytest.raises(LogDamaged):
        open_writer()


def test_a_lost_log_id_is_refused(path: Path, open_writer: OpenWriter) -> None:
    """An id made anew would let consumers take old records for new ones. A cut one is damage too."""
    open_writer().close()
    (path / "log_id").write_bytes(b"short")
    with pytest.raises(LogDamaged, match="log_id"):
        open_writer()
    (path / "log_id").unlink()
    with pytest.raises(LogDamaged, match="log_id"):
        open_writer()


@pytest.mark.parametrize("is_gone", [True, False], ids=["segments gone", "end lost"])
def test_numbers_that_a_consumer_had_are_never_given_again(path: Path, open_writer: OpenWriter, is_gone: bool) -> None:
    """A log that lost its end (power loss) does not go on: its consumer would skip the new records in silence."""
    writer = open_writer()
    fill(writer, 5)
    early = (path / segment_name(0)).read_bytes()
    fill(writer, 3)
    Consumer(path, "ingest").set(8)
    writer.close()
    if is_gone:
        (path / segment_name(0)).unlink()
    else:
        (path / segment_name(0)).write_bytes(early)

    with pytest.raises(LogAhead) as caught:
        open_writer()
    assert (8, 0 if is_gone else 5) == (caught.value.seq, caught.value.end)


def test_a_consumer_file_that_is_none_costs_events_not_exceptions(path: Path, open_writer: OpenWriter) -> None:
    """At the roll the writer serves a client: it drops, counts, and says why."""
    writer = open_writer()
    fill(writer, 10)
    (path / "at-ingest").write_bytes(b"?")

    assert writer.append(record(10)) == -1
    assert "at-ingest" in writer.trouble


def test_a_closed_writer_says_so(path: Path, open_writer: OpenWriter) -> None:
    """Its counters stay readable; closing twice is harmless."""
    writer = open_writer()
    fill(writer, 2)
    writer.close()
    writer.close()

    assert (writer.accepted, writer.dropped, writer.prepare_next()) == (2, 0, False)
    writer.sync()
    with pytest.raises(LogUnusable, match="closed"):
        writer.append(b"late")


def test_files_are_for_their_owner_only(path: Path, open_writer: OpenWriter) -> None:
    """Events hold what users asked."""
    writer = open_writer()
    fill(writer, 11)
    Consumer(path, "ingest")

    assert {0o600} == {os.stat(path / name).st_mode & 0o777 for name in os.listdir(path)}
    assert os.stat(path).st_mode & 0o777 == 0o700


def flip(file: Path, offset: int) -> None:
    """Flip the lowest bit of one byte."""
    with open(file, "r+b") as opened:
        opened.seek(offset)
        byte = opened.read(1)[0]
        opened.seek(offset)
        opened.write(bytes([byte ^ 1]))
