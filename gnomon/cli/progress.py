"""A status line: one line that changes on a terminal, plain lines now and then elsewhere."""

import os
import shutil
import time
from typing import TextIO


class StatusLine:
    """
    Shows how far something is.

    Args:
        stream: usually stderr.
        every_seconds: between two lines where the stream is no terminal.
    """

    def __init__(self, stream: TextIO, every_seconds: float = 5.0) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._interval = 0.1 if self._is_terminal else every_seconds
        self._shown_at = float("-inf")
        self._text = ""

    def update(self, text: str) -> None:
        """Show `text` in place of the last one; calls that come too fast are skipped."""
        now = time.monotonic()
        if now - self._shown_at < self._interval:
            return
        self._shown_at = now
        if self._is_terminal:
            self._text = text[: shutil.get_terminal_size().columns - 1]
            self._write(f"\r{self._text}\x1b[K")
        else:
            self._write(f"{text}\n")

    def say(self, text: str) -> None:
        """Print a line that stays, above the status line."""
        if self._is_terminal and self._text:
            self._write(f"\r\x1b[K{text}\n{self._text}")
        else:
            self._write(f"{text}\n")

    def close(self) -> None:
        """Remove the status line."""
        if self._is_terminal and self._text:
            self._write("\r\x1b[K")
        self._text = ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
