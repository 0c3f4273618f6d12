"""Consumers: positions by name that outlive their process."""

from pathlib import Path

import pytest

from gnomon.events.log import Consumer, LogAhead, LogDamaged, LogMissing, Reader
from tests.events.log.conftest import OpenWriter, fill


def test_a_position_is_kept_by_name(path: Path, open_writer: OpenWriter) -> None:
    """Each name has its own; opened again it is where it was."""
    fill(open_writer(), 20)
    one, two = Consumer(path, "ingest"), Consumer(path, "shipper-2")
    one.set(7)
    assert (one.get(), two.get()) == (7, 0)
    one.close()

    assert Consumer(path, "ingest").get() == 7


def test_a_new_consumer_begins_at_the_oldest_record(path: Path, open_writer: OpenWriter) -> None:
    """What was recycled before it came is not its loss."""
    writer = open_writer()
    first = Consumer(path, "ingest")
    fill(writer, 40)
    first.set(25)
    fill(writer, 10)
    late = Consumer(path, "shipper")

    assert late.get() == 10
    Reader(path, late.get())


def test_a_consumer_that_left_and_returns_begins_anew(path: Path, open_writer: OpenWriter) -> None:
    """Unregistering forgets the position."""
    fill(open_writer(), 20)
    consumer = Consumer(path, "ingest")
    consumer.set(15)
    consumer.unregister()

    assert Consumer(path, "ingest").get() == 0


def test_a_position_may_be_set_back_and_up_to_the_end_but_not_beyond(path: Path, open_writer: OpenWriter) -> None:
    """Beyond the end it would let records go that nobody has seen."""
    fill(open_writer(), 20)
    consumer = Consumer(path, "ingest")
    for seq in (20, 0, 3):
        consumer.set(seq)
        assert seq == consumer.get()
    with pytest.raises(LogAhead):
        consumer.set(21)
    with pytest.raises(ValueError, match="negative"):
        consumer.set(-1)

    assert consumer.get() == 3


@pytest.mark.parametrize("name", ["", "a/b", "..", "Ingest", "a b", "a.new", "-a", "a" * 65, "ü"])
def test_names_that_are_no_file_name_are_refused(path: Path, open_writer: OpenWriter, name: str) -> None:
    """A name is a part of a file's name."""
    open_writer()
    with pytest.raises(ValueError, match="consumer name"):
        Consumer(path, name)


def test_before_the_first_writer_there_is_no_log(path: Path) -> None:
    """Neither without the directory nor with an id only."""
    with pytest.raises(LogMissing):
        Consumer(path, "ingest")
    path.mkdir(parents=True)
    (path / "log_id").write_bytes(bytes(16))
    with pytest.raises(LogMissing):
        Consumer(path, "ingest")


@pytest.mark.parametrize("change", ["cut", "magic", "log id"])
def test_a_file_that_is_no_position_in_this_log_is_refused(path: Path, open_writer: OpenWriter, change: str) -> None:
    """A position of another log, copied here, would skip this one's records."""
    fill(open_writer(), 1)
    Consumer(path, "ingest").close()
    file = path / "at-ingest"
    content = file.read_bytes()
    file.write_bytes({"cut": content[:-1], "magic": b"x" + content[1:], "log id": content[:8] + bytes(24)}[change])

    with pytest.raises(LogDamaged, match="at-ingest"):
        Consumer(path, "ingest")
