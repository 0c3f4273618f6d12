"""
Text to a descriptor that may be slow, full or gone, without ever waiting for it.

A supervisor that blocks on its own stderr stops reading its children's, and then they block too. So a thread writes, a
bounded queue lies between, and what does not fit is dropped and counted.
"""

import os
import threading
import time
from collections import deque

MAX_QUEUED_BYTES = 1 << 20


class Relay:
    """Lines on their way to one descriptor."""

    def __init__(self, descriptor: int, max_queued_bytes: int = MAX_QUEUED_BYTES) -> None:
        """
        Args:
            descriptor: stays the caller's.
            max_queued_bytes: a line that would exceed it is dropped; how many were is said where they are missing.
        """
        self._descriptor = descriptor
        self._max_queued_bytes = max_queued_bytes
        self._lines: deque[bytes] = deque()
        self._queued_bytes = 0
        self._n_unreported = 0
        self._changed = threading.Condition()
        self.n_dropped = 0
        threading.Thread(target=self._write, name=f"relay-{descriptor}", daemon=True).start()

    def line(self, text: bytes) -> None:
        """Take one line, without its end; returns at once."""
        with self._changed:
            if self._queued_bytes + len(text) + 1 > self._max_queued_bytes:
                self.n_dropped += 1
                self._n_unreported += 1
                return
            if self._n_unreported:
                self._put(b"(%d lines dropped: nobody read them in time)" % self._n_unreported)
                self._n_unreported = 0
            self._put(text)
            self._changed.notify_all()

    def _put(self, text: bytes) -> None:
        self._lines.append(text + b"\n")
        self._queued_bytes += len(text) + 1

    def flush(self, seconds: float = 1.0) -> bool:
        """Wait until all is written, not longer than `seconds`; return whether it is."""
        deadline = time.monotonic() + seconds
        with self._changed:
            return self._changed.wait_for(lambda: not self._queued_bytes, max(0.0, deadline - time.monotonic()))

    def _write(self) -> None:
        is_open = True
        while True:
            with self._changed:
                while not self._lines:
                    self._changed.wait()
                batch = b"".join(self._lines)
                self._lines.clear()
            rest = memoryview(batch)
            while is_open and rest:
                try:
                    rest = rest[os.write(self._descriptor, rest) :]
                except BlockingIOError:  # somebody made it non-blocking
                    time.sleep(0.01)
                except OSError:  # the reader is gone for good; children must go on
                    is_open = False
            with self._changed:
                self._queued_bytes -= len(batch)
                self._changed.notify_all()
