"""
One process per data folder, and a message that names the other one.

The engine has a lock too, but its refusal gives no reason and the process that holds it stays unnamed.
"""

import fcntl
import os
from pathlib import Path
from typing import IO

from analytics.embedded.errors import EmbeddedError


class FolderLock:
    """Holds a file, `FOLDER.lock` unless told otherwise, until `release` or the end of the process, however it ends."""

    def __init__(self, folder: Path, file: Path | None = None) -> None:
        self._path = file or folder.with_name(folder.name + ".lock")
        self._file: IO[str] | None = None
        self._folder = folder

    def acquire(self, purpose: str) -> None:
        """
        Take the lock or say who has it.

        Args:
            purpose: what this process is, for the message that the next one prints.

        Raises:
            EmbeddedError: another process holds it, or the folder cannot be written.
        """
        try:
            file = self._path.open("a+", encoding="utf-8")
        except OSError as error:
            raise EmbeddedError(f"cannot write {self._path}: {error.strerror}; give another --data folder") from error
        os.chmod(self._path, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise EmbeddedError(
                f"{self._folder} is in use by {holder}; stop it, or give another --data folder"
            ) from None
        file.seek(0)
        file.truncate()
        file.write(f"pid {os.getpid()} ({purpose})\n")
        file.flush()
        self._file = file

    def release(self) -> None:
        """Let the folder go; harmless when the lock is not held."""
        if self._file is not None:
            self._file.close()
            self._file = None
