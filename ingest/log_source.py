"""The events that a log on disk still has, for building the tables again."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from gnomon.events.errors import LogBehind
from gnomon.events.log import Reader, status
from ingest.settings import TOPIC

MAX_EVENTS = 20_000
MAX_BYTES = 32 << 20


class LogSource:
    """One worker's log; see `ingest.rebuild.Source`."""

    has_repetitions = False

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: the log's folder, named by the worker's number.

        Raises:
            LogError: it cannot be read.
        """
        self._path = path
        try:
            reader = Reader(path, 0)
            self.begin = 0
        except LogBehind as error:
            self.begin = error.start
            reader = Reader(path, error.start)
        self.key = (reader.log_id.hex(), TOPIC, int(path.name))
        reader.close()
        self.end = status(path).accepted

    def read(self, start: int) -> Iterator[tuple[Sequence[int], list[bytes]]]:
        """Yield offsets and records from `start` to the end, in batches."""
        reader = Reader(self._path, start)
        try:
            while start < self.end:
                first, records = reader.read(min(MAX_EVENTS, self.end - start), MAX_BYTES)
                if not records:
                    return
                yield range(first, first + len(records)), records
                start = first + len(records)
        finally:
            reader.close()
