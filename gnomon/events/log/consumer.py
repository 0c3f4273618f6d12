"""
Consumers of a log, by name: each says up to where it no longer needs the log.

A file `at-<name>`: magic 8 | log id 16 | position u64 (the next record it needs). The position is one aligned 8-byte
store, so it is never seen half written. A segment is recycled when **all** registered consumers are past it; with
none registered nothing ever is.
"""

import mmap
import os
import re
from struct import Struct

from gnomon.events.errors import LogAhead, LogDamaged, LogMissing
from gnomon.events.log.segment import list_bases, read_log_id, read_newest, write_whole

CONSUMER_PREFIX = "at-"
_MAGIC = b"GNMNPOS1"
_LAYOUT = Struct("=8s16sQ")
_POSITION_WORD = 3
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class Consumer:
    """
    One consumer's position in one log. It is kept across restarts; one process at a time uses a name.

    Registering keeps the records from then on: a new consumer begins at the oldest record that is there.
    """

    def __init__(self, path: str | os.PathLike[str], name: str) -> None:
        """
        Open the position, registering the consumer when it is new.

        Raises:
            ValueError: `name` is no word of a-z, 0-9, `_`, `-`, or longer than 64.
            LogMissing: there is no log in the directory yet.
            LogDamaged: the position's file is not one, or is another log's.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"consumer name {name!r}: want 1 to 64 of a-z, 0-9, _ and -")
        self.path = os.fspath(path)
        self.name = name
        self.log_id = read_log_id(self.path)
        self._file = os.path.join(self.path, CONSUMER_PREFIX + name)
        if not os.path.exists(self._file):
            self._register()
        self._map, self._words = _open_position(self.path, self._file, self.log_id, is_writable=True)

    def _register(self) -> None:
        bases = list_bases(self.path)
        if not bases:
            raise LogMissing(self.path)
        write_whole(self._file, _LAYOUT.pack(_MAGIC, self.log_id, bases[0]))

    def get(self) -> int:
        """Return the next record that this consumer needs."""
        return self._words[_POSITION_WORD]

    def set(self, seq: int) -> None:
        """
        Say that every record below `seq` is done with: it may be gone when this returns.

        Raises:
            ValueError: `seq` is negative.
            LogAhead: `seq` is above the end of the log; the position stays as it was.
        """
        if seq < 0:
            raise ValueError(f"position {seq} is negative")
        end = read_newest(self.path).end
        if seq > end:
            raise LogAhead(self.path, seq, end)
        self._words[_POSITION_WORD] = seq

    def close(self) -> None:
        """Let go of the file; the consumer stays registered."""
        self._words.release()
        self._map.close()

    def unregister(self) -> None:
        """Close it, and no longer keep anything in the log for it."""
        self.close()
        os.unlink(self._file)


def consumer_positions(path: str, log_id: bytes) -> dict[str, int]:
    """
    Return the position of every registered consumer of the log.

    Raises:
        LogDamaged: a position's file is not one, or is another log's.
    """
    positions = {}
    for entry in os.listdir(path):
        if not entry.startswith(CONSUMER_PREFIX) or entry.endswith(".new"):
            continue
        try:
            opened, words = _open_position(path, os.path.join(path, entry), log_id, is_writable=False)
        except FileNotFoundError:  # unregistered between the listing and the opening
            continue
        positions[entry[len(CONSUMER_PREFIX) :]] = words[_POSITION_WORD]
        words.release()
        opened.close()
    return positions


def _open_position(path: str, file: str, log_id: bytes, *, is_writable: bool) -> "tuple[mmap.mmap, memoryview[int]]":
    fd = os.open(file, os.O_RDWR if is_writable else os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        if size != _LAYOUT.size:
            raise LogDamaged(path, f"{os.path.basename(file)} has {size} bytes instead of {_LAYOUT.size}")
        opened = mmap.mmap(fd, size, access=mmap.ACCESS_WRITE if is_writable else mmap.ACCESS_READ)
    finally:
        os.close(fd)
    magic, found_id, _ = _LAYOUT.unpack_from(opened)
    if magic != _MAGIC or found_id != log_id:
        opened.close()
        raise LogDamaged(path, f"{os.path.basename(file)} is not a position in log {log_id.hex()}")
    return opened, memoryview(opened).cast("Q")
