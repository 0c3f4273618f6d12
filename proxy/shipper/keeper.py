"""
The worker's side of the shipper: starts its process, starts it again when it ends, stops it after the worker's last
event.

A thread that sleeps in `wait`: nothing of it runs while the worker serves. The kernel ends the shipper with that
thread, so with the worker, however that ends.
"""

import logging
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Final

from gnomon.process import child_environment

log = logging.getLogger("gnomon.proxy")

FIRST_DELAY_SECONDS: Final = 0.5
MAX_DELAY_SECONDS: Final = 10.0
HEALTHY_SECONDS: Final = 30.0
STOP_SECONDS: Final = 10.0
"""Longer than the shipper's own time to send what is left."""


class Keeper:
    """Keeps one process running between `start` and `stop`."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._keep, name="shipper", daemon=True)

    def start(self) -> None:
        """Start the process; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Tell the process to end and return when it has; one that takes too long is killed."""
        with self._lock:
            self._stop.set()
            if self._process is not None:
                self._process.terminate()
        self._thread.join(STOP_SECONDS)
        if self._thread.is_alive() and self._process is not None:
            log.warning("the shipper did not stop within %g s: killed", STOP_SECONDS)
            self._process.kill()
            self._thread.join()

    def _keep(self) -> None:
        # The mask is inherited: a shipper that is told to stop while it starts hears of it when it can send what is
        # left.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        delay = FIRST_DELAY_SECONDS
        while True:
            with self._lock:
                if self._stop.is_set():
                    return
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=child_environment()
                )
            started_at = time.monotonic()
            status = self._process.wait()
            if self._stop.is_set():
                return
            alive_seconds = time.monotonic() - started_at
            if alive_seconds >= HEALTHY_SECONDS:
                delay = FIRST_DELAY_SECONDS
            log.warning("the shipper ended status=%d after_seconds=%.1f again_in=%.1f", status, alive_seconds, delay)
            self._stop.wait(delay)
            delay = min(MAX_DELAY_SECONDS, delay * 2)
