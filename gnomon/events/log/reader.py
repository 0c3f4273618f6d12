"""
A reader of a log, in any process: records in order by number, checked, or a named error; never silence.

A reader polls: an empty answer costs about 10 us, so some 20 polls a second are free. It may be behind its own
consumer's position or have none; it is then told when records it wants were recycled.
"""

import os
import time

from xxhash import xxh3_64_intdigest

from gnomon.events.errors import LogAhead, LogBehind, LogDamaged, LogError, LogMissing
from gnomon.events.log.segment import (
    BASE_WORD,
    HEADER_BYTES,
    LOW,
    RECORD,
    RECORD_BYTES,
    Segment,
    list_bases,
    read_log_id,
    segment_name,
)

SETTLE_ATTEMPTS = 50
SETTLE_SECONDS = 0.002
"""On a weakly ordered processor the position may be seen before the record: so long it may take to appear."""

_NOTHING = (0, 0, -1)
"""Read in place of a record's head that is not there: no record has the number -1."""


class Reader:
    """Reads one log from a given record on. One thread uses it. It holds nothing back: that is a `Consumer`'s part."""

    def __init__(self, path: str | os.PathLike[str], seq: int = 0) -> None:
        """
        Stand before record `seq`, which may be the one that comes next.

        Raises:
            LogMissing: there is no log in the directory yet.
            LogBehind: `seq` is below the oldest record there.
            LogAhead: `seq` is above the end.
            LogUnknown, LogDamaged: the bytes are not what a writer of this version left.
        """
        self.path = os.fspath(path)
        self.log_id = read_log_id(self.path)
        self._seq = seq
        self._segment: Segment | None = None
        self._offset = HEADER_BYTES
        self._seek()

    @property
    def seq(self) -> int:
        """The number of the record that the next `read` begins with."""
        return self._seq

    def read(self, limit: int = 5000, max_bytes: int = 64 << 20) -> tuple[int, list[bytes]]:
        """
        Return (number of the first, records), at once; no records when there is nothing new.

        Args:
            limit: most records to return, at least 1.
            max_bytes: no further record is added once these are reached, so one record may exceed it.

        An answer may be shorter than both bounds although more is there: ask again until it is empty.

        Raises:
            ValueError: a bound is below 1.
            LogBehind: the next record was recycled (no consumer of this log held it back), or segments were removed.
            LogDamaged: the next record is not what was written; what came before it has been returned.
            LogReplaced: another log stands in the directory.
            LogAhead: the log lost its end.
        """
        if limit < 1 or max_bytes < 1:
            raise ValueError(f"limit {limit}, max_bytes {max_bytes}: want at least 1")
        while True:
            first, records = self._read_here(limit, max_bytes)
            if records or not self._advance():
                return first, records

    def close(self) -> None:
        """Let go of the log."""
        if self._segment is not None:
            self._segment.close()
            self._segment = None

    def _read_here(self, limit: int, max_bytes: int) -> tuple[int, list[bytes]]:
        """Return what is new in the open segment."""
        segment = self._open_segment()
        view, unpack = segment.map, RECORD.unpack_from
        first = seq = self._seq
        offset = self._offset
        end = segment.committed()[1]
        stop, last = offset + max_bytes, seq + limit
        records: list[bytes] = []
        add = records.append
        while offset < end and seq < last and offset < stop:
            length, checksum, found = unpack(view, offset) if offset + RECORD_BYTES <= end else _NOTHING
            start = offset + RECORD_BYTES
            after = start + length
            record = view[start:after]
            following = seq + 1
            if found != seq or after > end or xxh3_64_intdigest(record, following) & LOW != checksum:
                if records or segment.words[BASE_WORD] != segment.base:
                    break  # recycled under this reader, or damaged: for the next call to find out
                self._settle(segment, offset, end)
                continue
            add(record)
            offset, seq = after, following
        # Each of these records has its number and checksum, so they are right even in a segment recycled meanwhile.
        self._seq, self._offset = seq, offset
        return first, records

    def _settle(self, segment: Segment, offset: int, end: int) -> None:
        """Return when the record at `offset` is whole or the segment was recycled; else say that it is damaged."""
        for _ in range(SETTLE_ATTEMPTS):
            if segment.words[BASE_WORD] != segment.base or segment.record_at(offset, self._seq, end) is not None:
                return
            time.sleep(SETTLE_SECONDS)
        raise LogDamaged(self.path, f"record {self._seq} in {segment_name(segment.base)}")

    def _advance(self) -> bool:
        """
        Go on where the open segment has nothing new.

        Returns:
            Whether to read again.

        A reader at the end of a segment has consumed it, so the writer may recycle it under the reader's map: content
        of another base at the old place. Hence the look at the base first, and everything else by name.
        """
        segment = self._open_segment()
        if segment.words[BASE_WORD] == segment.base:
            if segment.committed()[1] > self._offset:
                return True
            bases = list_bases(self.path)
            if bases and bases[-1] == segment.base and segment.is_still_named():
                return False
        self._seek()
        return True

    def _seek(self) -> None:
        """Open the segment that holds the next record, or will hold it, and stand before that record."""
        seq = self._seq
        while True:
            bases = list_bases(self.path)
            if not bases:
                raise LogMissing(self.path)
            later = [base for base in bases if base > seq]
            if len(later) == len(bases):
                raise LogBehind(self.path, seq, bases[0])
            segment = self._open(bases[-len(later) - 1])
            if segment is None:
                continue
            offset = self._find(segment, seq)
            end_seq = segment.base + segment.committed()[0]
            if segment.words[BASE_WORD] == segment.base and offset is not None and (seq < end_seq or not later):
                if self._segment is not None:
                    self._segment.close()
                self._segment, self._offset = segment, offset
                return
            segment.close()
            if bases != list_bases(self.path):  # the writer went on meanwhile
                continue
            if later:
                raise LogBehind(self.path, seq, later[0])
            raise LogAhead(self.path, seq, end_seq)

    def _find(self, segment: Segment, seq: int) -> int | None:
        """Return the position of record `seq` in the segment; its end when that is next; None when it is above."""
        count, end = segment.committed()
        if seq > segment.base + count:
            return None
        offset = HEADER_BYTES
        for expected in range(segment.base, seq):
            length, _, found = RECORD.unpack_from(segment.map, offset) if offset + RECORD_BYTES <= end else _NOTHING
            offset += RECORD_BYTES + length
            if found != expected or offset > end:
                if segment.words[BASE_WORD] != segment.base:
                    return None
                raise LogDamaged(self.path, f"record {expected} in {segment_name(segment.base)}")
        return offset

    def _open(self, base: int) -> Segment | None:
        """Return the segment with its header checked; None when it was recycled before it could be."""
        try:
            segment = Segment(os.path.join(self.path, segment_name(base)), base, is_writable=False)
        except FileNotFoundError:
            return None
        try:
            segment.check_header(self.path, self.log_id)
        except LogError:
            is_named = segment.is_still_named()
            segment.close()
            if is_named:
                raise
            return None
        return segment

    def _open_segment(self) -> Segment:
        if self._segment is None:
            raise LogError(self.path, "this reader is closed")
        return self._segment
