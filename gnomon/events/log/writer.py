"""
The writer of a log: one process appends, at about a microsecond a record.

`append` stores through the map, or by `pwrite` where a big record meets a fresh file, and never waits for anything
but the kernel. Segments are allocated as a whole, so a full disk is an error at the roll, and the record counts as
dropped. The next segment is made ahead by `prepare_next`, outside the caller's hot path (a new one costs 4 to 28 ms,
a recycled one 0.1 to 2.6).

Locks: `append` takes none. A roll and `prepare_next` exclude each other by `_roll_lock`; who unmaps or syncs retired
segments holds `_retire_lock`, which a roll never waits for.
"""

import os
import threading
import time

from xxhash import xxh3_64_intdigest

from gnomon.events.errors import LogAhead, LogError, LogUnusable
from gnomon.events.log.consumer import consumer_positions
from gnomon.events.log.directory import open_checked, read_or_make_log_id, take_lock
from gnomon.events.log.segment import (
    COMMITTED_WORD,
    COUNT_SHIFT,
    DROPPED_WORD,
    HEADER_BYTES,
    LOW,
    MAX_SEGMENT_BYTES,
    RECORD,
    RECORD_BYTES,
    Segment,
    list_bases,
    segment_name,
)
from gnomon.events.log.supply import Supply

PWRITE_FROM_BYTES = 32768
"""On a fresh file `pwrite` beats the copy through the map from here on: no fault for each page."""
RETRY_SECONDS = 0.02
"""A roll that failed is tried again after this time at the earliest: a full log must not cost a scan per event."""
MAX_RETIRED = 2
"""Retired segments that a roll leaves to the helper thread; more than that and there is none: the roll unmaps them."""


class Writer:
    """
    Appends records to the log in one directory. The only writer there, by a lock; one thread appends.

    A record is in the log when `append` has returned: it then survives the death of any process. Power loss is
    another promise, see `sync`.
    """

    __slots__ = (
        "_by_map_below", "_dropped", "_id", "_is_syncing", "_limit", "_lock_fd", "_map", "_retire_lock", "_retired",
        "_retry_at", "_roll_lock", "_segment", "_seq", "_start", "_supply", "_word", "_words", "max_bytes", "path",
        "segment_bytes", "trouble",
    )  # fmt: skip
    _limit: int
    """Size of the current segment; 0 = closed."""
    _start: int
    """Where the next record goes."""
    _seq: int
    _word: int
    """The committed word of the current segment."""
    _by_map_below: int
    _dropped: int

    def __init__(self, path: str | os.PathLike[str], segment_bytes: int = 64 << 20, max_bytes: int = 4 << 30) -> None:
        """
        Open the log for appending, making it when there is none; a restarted writer goes on at the next number.

        Args:
            path: the log's directory; made when missing, with its parents.
            segment_bytes: size of each new segment file, header of 4,096 bytes included.
            max_bytes: bound of all segment files together, at least two segments.

        Raises:
            ValueError: a size is out of its range.
            LogLocked: another process writes this log.
            LogUnusable: the directory cannot be made or written, or has no room for the first segment.
            LogUnknown, LogDamaged: what is there is not what a writer of this version left.
            LogAhead: a consumer has had records that are not there any more (power loss): their numbers must not be
                given a second time. Move the directory away; a new log has a new id.
        """
        if not HEADER_BYTES + RECORD_BYTES < segment_bytes <= MAX_SEGMENT_BYTES:
            raise ValueError(
                f"segment_bytes {segment_bytes}: want {HEADER_BYTES + RECORD_BYTES + 1} to {MAX_SEGMENT_BYTES}"
            )
        if max_bytes < 2 * segment_bytes:
            raise ValueError(f"max_bytes {max_bytes}: want at least two segments of {segment_bytes} bytes")
        self.path = os.fspath(path)
        self.segment_bytes = segment_bytes
        self.max_bytes = max_bytes
        self.trouble = ""
        """Why there is no next segment, or a big record was not stored; empty when the last attempt went well."""
        self._retired: list[Segment] = []
        self._is_syncing = False
        self._retry_at = 0.0
        self._roll_lock = threading.Lock()
        self._retire_lock = threading.Lock()
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            self._lock_fd = take_lock(self.path)
        except OSError as error:
            raise LogUnusable(self.path, f"cannot be used: {error}") from error
        try:
            self._id = read_or_make_log_id(self.path)
            self._supply = Supply(self.path, self._id, segment_bytes, max_bytes)
            self._open_newest()
        except OSError as error:
            os.close(self._lock_fd)
            raise LogUnusable(self.path, f"cannot be used: {error}") from error
        except LogError:
            os.close(self._lock_fd)
            raise

    @property
    def log_id(self) -> bytes:
        """The log's id, 16 bytes; kept as long as the log."""
        return self._id

    @property
    def accepted(self) -> int:
        """Records appended since the log began, by all its writers: the number of the next one."""
        return self._seq

    @property
    def dropped(self) -> int:
        """Records refused since the log began, by all its writers."""
        return self._dropped

    @property
    def used_ratio(self) -> float:
        """How much of the current segment is used, 0 to 1."""
        return self._start / max(self._limit, 1)

    # Appending ------------------------------------------------------------------------------------------------------

    def append(self, data: bytes) -> int:
        """
        Store one record.

        Returns:
            Its number (dense, from 0 when the log began), or -1 when it was dropped and counted: the log is full, the
            disk is, or the record is larger than a segment.

        Raises:
            LogUnusable: the writer is closed.
        """
        length = len(data)
        start = self._start
        end = start + RECORD_BYTES + length
        if end > self._limit:
            return self._append_after_roll(data)
        seq = self._seq
        following = seq + 1
        RECORD.pack_into(self._map, start, length, xxh3_64_intdigest(data, following) & LOW, seq)
        if length < self._by_map_below:
            self._map[start + RECORD_BYTES : end] = data
        elif not self._write_big(data, start + RECORD_BYTES):
            return self._drop()
        # Own state first: an exception from here on (a signal handler's) then costs an unreported record at most, and
        # never lets the next append write over a committed one.
        self._start = end
        self._seq = following
        self._word = word = self._word + (RECORD_BYTES + (1 << COUNT_SHIFT)) + length
        self._words[COMMITTED_WORD] = word
        return seq

    def _write_big(self, data: bytes, offset: int) -> bool:
        try:
            written = os.pwrite(self._segment.fd, data, offset)
        except OSError as error:
            self.trouble = str(error)
            return False
        if written != len(data):
            self._map[offset : offset + len(data)] = data
        return True

    def _append_after_roll(self, data: bytes) -> int:
        if self._limit == 0:
            raise LogUnusable(self.path, "this writer is closed")
        if HEADER_BYTES + RECORD_BYTES + len(data) > self.segment_bytes or not self._roll():
            return self._drop()
        return self.append(data)

    def _drop(self) -> int:
        self._dropped += 1
        self._words[DROPPED_WORD] = self._dropped
        return -1

    # Rolling --------------------------------------------------------------------------------------------------------

    def prepare_next(self) -> bool:
        """
        Make the next segment, so that the roll does not have to; call it from another thread, now and then.

        It also unmaps what was rolled away, and removes one consumed segment at a time when there are more than the
        next rolls need.

        Returns:
            Whether a segment stands ready. Where none can be had, `trouble` says why, and `append` drops and counts.
        """
        self._unmap_retired()
        with self._roll_lock:
            if self._limit == 0:
                return False
            try:
                self._supply.make_ready()
                self.trouble = ""
                self._supply.remove_one_consumed()
            except (OSError, LogError) as error:
                self.trouble = str(error)
            return self._supply.ready is not None

    def _roll(self) -> bool:
        """Go on in the next segment; False when there is none to be had."""
        if self._supply.ready is None and time.monotonic() < self._retry_at:
            return False
        with self._roll_lock:
            try:
                segment = self._supply.make_ready()
                self._name(segment, self._seq)
            except (OSError, LogError) as error:  # never the caller's trouble: it answers a client
                self.trouble = str(error)
                self._retry_at = time.monotonic() + RETRY_SECONDS
                return False
            self._supply.ready = None
            self.trouble = ""
            self._retired.append(self._segment)  # before another is current, so that a sync meanwhile finds it
            self._use(segment, HEADER_BYTES, self._seq)
        if len(self._retired) > MAX_RETIRED:
            self._unmap_retired()
        return True

    def _name(self, segment: Segment, base: int) -> None:
        """Give a segment made ahead its header, then its name: a kill between leaves it as one made ahead."""
        segment.write_header(self._id, base, self._dropped)
        named = os.path.join(self.path, segment_name(base))
        os.rename(segment.file, named)
        segment.file = named

    def _use(self, segment: Segment, start: int, seq: int) -> None:
        self._segment = segment
        self._map = segment.map
        self._words = segment.words
        self._limit = segment.size_bytes
        self._by_map_below = PWRITE_FROM_BYTES if segment.is_fresh else MAX_SEGMENT_BYTES
        self._start = start
        self._seq = seq
        self._word = segment.words[COMMITTED_WORD]

    # Opening, closing, syncing --------------------------------------------------------------------------------------

    def _open_newest(self) -> None:
        bases = list_bases(self.path)
        if not bases:
            self._check_no_consumer_above(0)
            self._dropped = 0
            segment = self._supply.make_ready()
            self._name(segment, 0)
            self._supply.ready = None
            self._use(segment, HEADER_BYTES, 0)
            return
        segment = open_checked(self.path, self._id, bases[-1])
        count, position = segment.committed()
        try:
            self._check_no_consumer_above(bases[-1] + count)
        except LogError:
            segment.close()
            raise
        self._dropped = segment.words[DROPPED_WORD]
        self._use(segment, position, bases[-1] + count)

    def _check_no_consumer_above(self, end: int) -> None:
        """Refuse to give numbers a second time: a consumer that had them would take the new records for old ones."""
        position = max(consumer_positions(self.path, self._id).values(), default=0)
        if position > end:
            raise LogAhead(self.path, position, end)

    def _unmap_retired(self) -> None:
        if self._is_syncing or not self._retire_lock.acquire(blocking=False):
            return
        try:
            while self._retired and self._retired[0] is not self._segment:
                self._retired.pop(0).close()
        finally:
            self._retire_lock.release()

    def sync(self) -> None:
        """
        Have everything appended before this call on the disk when it returns: it then survives a power loss.

        Waits for the disk, so call it from a helper thread (`Upkeep` does). From the first call on, retired segments
        are kept open until a call has written them.

        Raises:
            OSError: the disk failed; what was not written before may be lost.
        """
        self._is_syncing = True
        with self._retire_lock:
            if self._limit == 0:
                return
            current = self._segment  # before the list: what a roll replaces meanwhile is in the list already
            retired = list(self._retired)
            for segment in {current, *retired}:
                os.fdatasync(segment.fd)
            for segment in retired:
                if segment is not self._segment:
                    self._retired.remove(segment)
                    segment.close()
            directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    def close(self) -> None:
        """Let go of the log; what is in it stays. A second call does nothing."""
        with self._roll_lock, self._retire_lock:
            if self._limit == 0:
                return
            self._limit = 0
            for segment in (*self._retired, self._segment):
                segment.close()
            self._retired.clear()
            self._supply.close()
            os.close(self._lock_fd)
