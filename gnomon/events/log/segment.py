"""
One segment file: its layout, its header, its map.

A segment `seg-<base>` (base = number of its first record) has a fixed size and is allocated as a whole:

    0     magic 8 | log id 16 | base u64 | crc32 of those 32 bytes u32
    64    committed u64 = records << 32 | position behind the last one
    72    dropped u64: records refused since the log began
    4096  records: length u32 | checksum u32 | seq u64 | bytes

* A record exists when `committed` covers it. That is one aligned 8-byte store, made after the record's bytes, so a
  process that dies at any instruction leaves the record whole or leaves nothing. What lies behind is nothing.
* The checksum is the low half of xxh3-64 (ten times faster than crc32), seeded with seq + 1, so that neither an older
  record of a recycled segment nor a run of zeros passes.
* Words are in the byte order of the machine: a log is read where it was written.

tests/events/log/test_kill.py kills writers in a loop to show it.
"""

import mmap
import os
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from xxhash import xxh3_64_intdigest

from gnomon.events.errors import LogDamaged, LogMissing, LogReplaced, LogUnknown

MAGIC = b"GNMNLOG2"
HEADER_BYTES = 4096
RECORD = Struct("=IIQ")
RECORD_BYTES = RECORD.size
FIXED = Struct("=8s16sQI")
FIXED_CRC_BYTES = 32

BASE_WORD = 3
COMMITTED_WORD = 8
DROPPED_WORD = 9

COUNT_SHIFT = 32
LOW = 0xFFFFFFFF
MAX_SEGMENT_BYTES = 2 << 30
LOG_ID_BYTES = 16
LOG_ID_FILE = "log_id"
NEXT_FILE = "next"
"""The segment made ahead; it gets its name and header at the roll."""
SEGMENT_PREFIX = "seg-"


def segment_name(base: int) -> str:
    """Return the file name of the segment that begins with record `base`."""
    return f"{SEGMENT_PREFIX}{base:020d}"


def list_bases(path: str) -> list[int]:
    """Return the first record of every segment in the directory, ascending; none when there is no directory."""
    try:
        names = os.listdir(path)
    except FileNotFoundError:
        return []
    return sorted(int(name[4:]) for name in names if name.startswith(SEGMENT_PREFIX) and name[4:].isdecimal())


def read_log_id(path: str) -> bytes:
    """
    Return the log's id (16 bytes), made when the log was.

    Raises:
        LogMissing: there is none yet.
        LogDamaged: the file is not 16 bytes long.
    """
    try:
        with open(os.path.join(path, LOG_ID_FILE), "rb") as file:
            log_id = file.read()
    except FileNotFoundError:
        raise LogMissing(path) from None
    if len(log_id) != LOG_ID_BYTES:
        raise LogDamaged(path, f"{LOG_ID_FILE} has {len(log_id)} bytes instead of {LOG_ID_BYTES}")
    return log_id


def write_whole(file: str, content: bytes) -> None:
    """Make a small file that appears whole or not at all, for its owner only."""
    unfinished = f"{file}.new"
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(fd)
    os.rename(unfinished, file)


class Newest(NamedTuple):
    """What the newest segment's header says of the whole log."""

    end: int
    """The number that the next appended record will have: the records accepted since the log began."""
    dropped: int
    """Records refused since the log began."""


def read_newest(path: str) -> Newest:
    """
    Return the counters of a log, from any process.

    Raises:
        LogMissing: there is no log in the directory.
        LogDamaged: the newest segment has no whole header.
    """
    while True:
        bases = list_bases(path)
        if not bases:
            raise LogMissing(path)
        try:
            with open(os.path.join(path, segment_name(bases[-1])), "rb") as file:
                opened = mmap.mmap(file.fileno(), HEADER_BYTES, access=mmap.ACCESS_READ)
        except FileNotFoundError:  # consumed and recycled between the listing and the opening
            continue
        except ValueError:
            raise LogDamaged(path, f"{segment_name(bases[-1])} is cut short") from None
        with opened, memoryview(opened) as view, view.cast("Q") as words:
            committed, dropped, base = words[COMMITTED_WORD], words[DROPPED_WORD], words[BASE_WORD]
            if base == bases[-1]:
                return Newest(base + (committed >> COUNT_SHIFT), dropped)
            if bases[-1] == list_bases(path)[-1]:
                raise LogDamaged(path, f"{segment_name(base)} begins with record {base}")


class Segment:
    """
    One mapped segment file.

    The map stays valid when the file is renamed, recycled or removed; `words[BASE_WORD]` then tells that the content
    is another's. A file cut short under its map kills the process that touches it (SIGBUS): nobody does that.
    """

    __slots__ = ("base", "fd", "file", "is_fresh", "map", "size_bytes", "words")

    def __init__(self, file: str, base: int, *, is_writable: bool, is_fresh: bool = False) -> None:
        self.file = file
        self.base = base
        self.is_fresh = is_fresh
        """Never written yet: a big record goes by `pwrite`, which is cheaper than a fault for each page."""
        self.fd = os.open(file, os.O_RDWR if is_writable else os.O_RDONLY)
        try:
            self.size_bytes = os.fstat(self.fd).st_size
            access = mmap.ACCESS_WRITE if is_writable else mmap.ACCESS_READ
            if self.size_bytes < HEADER_BYTES:
                raise LogDamaged(os.path.dirname(file), f"{os.path.basename(file)} is cut short")
            self.map = mmap.mmap(self.fd, self.size_bytes, access=access)
        except BaseException:
            os.close(self.fd)
            raise
        self.words = memoryview(self.map)[:HEADER_BYTES].cast("Q")

    def close(self) -> None:
        """Unmap and close; what was stored stays stored."""
        self.words.release()
        self.map.close()
        os.close(self.fd)

    def is_still_named(self) -> bool:
        """Return whether the segment's name still means this file."""
        try:
            return os.stat(self.file).st_ino == os.fstat(self.fd).st_ino
        except FileNotFoundError:
            return False

    def committed(self) -> tuple[int, int]:
        """Return (records, position behind the last), both of one moment."""
        word = self.words[COMMITTED_WORD]
        return word >> COUNT_SHIFT, word & LOW

    def write_header(self, log_id: bytes, base: int, dropped: int) -> None:
        """
        Make this an empty segment that begins with record `base`.

        Readers may still have the file mapped under its former base: first nothing is committed, then the base
        changes, and only later records appear, so such a reader sees the change before it sees a new record.
        """
        self.words[COMMITTED_WORD] = HEADER_BYTES
        self.words[DROPPED_WORD] = dropped
        self.words[BASE_WORD] = base
        checked = FIXED.pack(MAGIC, log_id, base, 0)[:FIXED_CRC_BYTES]
        self.map[: FIXED.size] = FIXED.pack(MAGIC, log_id, base, crc32(checked))
        self.base = base

    def check_header(self, path: str, log_id: bytes) -> None:
        """
        Compare the header with what the segment is taken for.

        Raises:
            LogUnknown: another format.
            LogReplaced: the header is whole, and another log's.
            LogDamaged: the checksum, the base or the committed position is wrong.
        """
        name = os.path.basename(self.file)
        magic, found_id, base, crc = FIXED.unpack_from(self.map)
        if magic != MAGIC and magic[:7] == MAGIC[:7]:
            raise LogUnknown(path, f"{name} has format {magic[7:]!r}, this version knows {MAGIC[7:]!r}")
        if magic != MAGIC or crc32(self.map[:FIXED_CRC_BYTES]) != crc:
            raise LogDamaged(path, f"the header of {name}")
        if found_id != log_id:
            raise LogReplaced(path, log_id, found_id)
        if base != self.base:
            raise LogDamaged(path, f"{name} begins with record {base}")
        count, end = self.committed()
        if not HEADER_BYTES <= end <= self.size_bytes or count * RECORD_BYTES > end - HEADER_BYTES:
            raise LogDamaged(path, f"{name}: committed position {end} of {self.size_bytes} bytes, {count} records")

    def record_at(self, offset: int, seq: int, end: int) -> bytes | None:
        """Return record `seq` if it lies whole and right at `offset`, below `end`; else None."""
        start = offset + RECORD_BYTES
        if start > end:
            return None
        length, checksum, found = RECORD.unpack_from(self.map, offset)
        if found != seq or start + length > end:
            return None
        record = self.map[start : start + length]
        return record if xxh3_64_intdigest(record, seq + 1) & LOW == checksum else None

    def check_records(self, path: str) -> None:
        """
        Read every committed record.

        Raises:
            LogDamaged: one has another number, length or checksum than was written.
        """
        name = os.path.basename(self.file)
        count, end = self.committed()
        offset = HEADER_BYTES
        for seq in range(self.base, self.base + count):
            record = self.record_at(offset, seq, end)
            if record is None:
                raise LogDamaged(path, f"record {seq} in {name}")
            offset += RECORD_BYTES + len(record)
        if offset != end:
            raise LogDamaged(path, f"{name}: {end - offset} bytes behind its {count} records")
