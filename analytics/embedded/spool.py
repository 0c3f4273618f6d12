"""
The rows of an INSERT as a file without a name, which the engine reads by `FROM INFILE`.

Not by the engine's insert interface (`send_insert` … `insert_done`): that one loses an error in storing the last block.
With a full disk it says that all rows are written, and none is (chDB 26.9). A statement that reads a file tells.
"""

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from analytics.embedded.errors import Code, Refusal


class Spool:
    """
    Bytes written once, then read by the engine of this process.

    `close` may come while the engine still reads (the client's task was cancelled, the thread goes on): the number of
    the file must not be given to another spool before the engine is done.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """
        Args:
            folder: where the bytes lie on disk; None: in memory, where the system has such files.

        Raises:
            Refusal: there is no room for a file.
        """
        self._lock = threading.Lock()
        self._is_read = False
        self._is_closed = False
        try:
            self._file = _in_memory() if folder is None else _on_disk(folder)
        except OSError as error:
            raise _no_room(error) from error

    def write(self, chunk: bytes) -> None:
        """
        Append bytes.

        Raises:
            Refusal: there is no room for them.
        """
        try:
            self._file.write(chunk)
        except OSError as error:
            raise _no_room(error) from error

    def write_all(self, chunks: Iterable[bytes]) -> None:
        """Append bytes; raises as `write`."""
        for chunk in chunks:
            self.write(chunk)

    @contextmanager
    def read(self) -> Iterator[str]:
        """
        Give the name under which the engine reads all that was written, and keep it until the block ends.

        Raises:
            Refusal: there is no room for the last bytes; or it was closed before.
        """
        with self._lock:
            if self._is_closed:
                raise Refusal.of(Code.ABORTED, "The insert was given up before it began")
            self._is_read = True
        try:
            try:
                self._file.seek(0)  # flushes
            except OSError as error:
                raise _no_room(error) from error
            yield f"/dev/fd/{self._file.fileno()}"
        finally:
            self._is_read = False
            self._discard()

    def close(self) -> None:
        """Give the bytes up, as soon as nobody reads them."""
        self._is_closed = True
        self._discard()

    def _discard(self) -> None:
        with self._lock, suppress(OSError):  # what could not be flushed is not wanted any more
            if self._is_closed and not self._is_read:
                self._file.close()


def _in_memory() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("gnomon-insert"), "w+b")
    return _on_disk(None)


def _on_disk(folder: Path | None) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=folder)


def _no_room(error: OSError) -> Refusal:
    return Refusal.of(Code.NOT_ENOUGH_SPACE, f"The rows cannot be kept while they are stored: {error.strerror}")
