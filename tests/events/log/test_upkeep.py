"""The helper thread: it makes segments ahead and syncs, and never gets in the way."""

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gnomon.events.log import Consumer, Reader, Upkeep
from tests.events.log.conftest import OpenWriter, fill, read_all, record


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Poll until the condition holds, ten seconds at most."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def test_the_next_segment_is_made_when_half_of_this_one_is_used(path: Path, open_writer: OpenWriter) -> None:
    """Not before; so the roll finds it ready."""
    writer = open_writer(1 << 20, 4 << 20)
    upkeep = Upkeep(writer)
    upkeep.start()
    try:
        writer.append(bytes(100_000))
        time.sleep(0.25)
        assert not (path / "next").exists()
        writer.append(bytes(500_000))
        wait_for((path / "next").exists, "no segment made ahead")
        inode = os.stat(path / "next").st_ino
        writer.append(bytes(700_000))
    finally:
        upkeep.stop()

    assert inode == os.stat(path / "seg-00000000000000000002").st_ino


def test_intervals_sync_only_what_is_new(open_writer: OpenWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sync after new records, none while idle, and one more at the end."""
    writer = open_writer()
    upkeep = Upkeep(writer, sync_seconds=0.01)
    upkeep.start()
    try:
        fill(writer, 3)
        wait_for(lambda: upkeep.n_syncs >= 1, "no sync")
        time.sleep(0.05)
        n_idle = upkeep.n_syncs
        time.sleep(0.1)
        assert n_idle == upkeep.n_syncs
        fill(writer, 1)
    finally:
        upkeep.stop()

    assert n_idle < upkeep.n_syncs


def test_every_segment_written_since_the_last_sync_is_synced(
    path: Path, open_writer: OpenWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those rolled away included, each before it is closed, and the directory with their names."""
    writer = open_writer()
    synced: list[str] = []
    fdatasync, fsync = os.fdatasync, os.fsync

    def note(fd: int, sync: Callable[[int], None]) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
        sync(fd)

    monkeypatch.setattr(os, "fdatasync", lambda fd: note(fd, fdatasync))
    monkeypatch.setattr(os, "fsync", lambda fd: note(fd, fsync))
    writer.sync()
    fill(writer, 35)
    writer.prepare_next()
    writer.sync()
    names = [f"seg-{base:020d}" for base in (0, 10, 20, 30)]

    assert synced[:2] == [names[0], "0"]
    assert sorted(synced[2:-1]) == names
    assert synced[-1] == "0"


def test_a_failing_disk_is_counted_and_logged_and_does_not_end_the_thread(
    open_writer: OpenWriter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next interval tries again."""
    writer = open_writer()
    fdatasync = os.fdatasync

    def fails(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", fails)
    upkeep = Upkeep(writer, sync_seconds=0.01)
    upkeep.start()
    try:
        fill(writer, 1)
        wait_for(lambda: upkeep.n_sync_failures >= 2, "no second try")
        monkeypatch.setattr(os, "fdatasync", fdatasync)
        wait_for(lambda: upkeep.n_syncs >= 1, "no recovery")
    finally:
        upkeep.stop()

    assert "sync failed" in caplog.text


def test_nothing_is_lost_while_the_thread_works(path: Path, open_writer: OpenWriter) -> None:
    """Rolls, syncs, preparation and recycling at once: every accepted record is read, in order."""
    writer = open_writer()
    consumer, reader = Consumer(path, "ingest"), Reader(path)
    upkeep = Upkeep(writer, sync_seconds=0.001)
    upkeep.start()
    found: list[bytes] = []
    try:
        for _ in range(2_000):
            writer.append(record(writer.accepted))
            if writer.accepted % 7 == 0:
                found += read_all(reader)
                consumer.set(reader.seq)
    finally:
        upkeep.stop()
    found += read_all(reader)

    assert upkeep.n_syncs > 0
    assert upkeep.n_sync_failures == 0
    assert writer.accepted > 1_500
    assert writer.accepted + writer.dropped == 2_000
    assert [record(seq) for seq in range(writer.accepted)] == found


@pytest.mark.parametrize("seconds", [0, -1.0])
def test_an_interval_of_nothing_is_refused(open_writer: OpenWriter, seconds: float) -> None:
    """None means never."""
    with pytest.raises(ValueError, match="sync_seconds"):
        Upkeep(open_writer(), sync_seconds=seconds)


def test_what_a_full_log_drops_is_told_once_and_at_the_end(
    path: Path, open_writer: OpenWriter, caplog: pytest.LogCaptureFixture
) -> None:
    """The first loss at once, the next ones together: a log that is full for long says little, but the whole number."""
    writer = open_writer(1 << 20, 2 << 20)
    upkeep = Upkeep(writer)
    upkeep.start()
    try:
        while writer.append(bytes(100_000)) >= 0:
            pass
        wait_for(lambda: len(caplog.records) == 1, "nothing told")
        for _ in range(4):
            assert writer.append(bytes(100_000)) == -1
        time.sleep(0.25)
        assert len(caplog.records) == 1
    finally:
        upkeep.stop()

    assert [f"event log {path} is full: {n} events dropped" in caplog.messages[i] for i, n in ((0, 1), (1, 4))] == [
        True,
        True,
    ]


def test_a_log_with_room_says_nothing(open_writer: OpenWriter, caplog: pytest.LogCaptureFixture) -> None:
    """Nor does one that dropped in a former life."""
    writer = open_writer(1 << 20, 2 << 20)
    while writer.append(bytes(100_000)) >= 0:
        pass
    upkeep = Upkeep(writer)
    upkeep.start()
    time.sleep(0.25)
    upkeep.stop()

    assert caplog.messages == []
