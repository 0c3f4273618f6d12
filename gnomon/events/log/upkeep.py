"""The helper thread of a writer: it makes the next segment ahead, syncs when asked, and tells of losses."""

import logging
import threading
import time

from gnomon.events.log.writer import Writer

_log = logging.getLogger("gnomon.events.log")

PREPARE_FROM_RATIO = 0.5
"""The next segment is made when so much of the current one is used."""
CHECK_SECONDS = 0.1
"""64 MiB at 300 MB/s last twice this, the other half of the segment."""
TELL_SECONDS = 30.0
"""Between two lines about events that were dropped."""


class Upkeep:
    """
    A thread beside one writer. It sleeps nearly always and holds no lock that an append waits for, but a roll that
    comes while the next segment is being made waits for that.

    `sync_seconds` None: never sync (`events.log.fsync: never`). Else what was appended before the last sync, at most
    that long ago plus the time the disk takes, survives a power loss.
    """

    def __init__(self, writer: Writer, sync_seconds: float | None = None) -> None:
        if sync_seconds is not None and sync_seconds <= 0:
            raise ValueError(f"sync_seconds {sync_seconds}: want more than 0, or None for never")
        self._writer = writer
        self._sync_seconds = sync_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gnomon-log-upkeep", daemon=True)
        self.n_syncs = 0
        self.n_sync_failures = 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Sync once more when syncing is on, and end the thread; call it before the writer is closed."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        wait_seconds = min(CHECK_SECONDS, self._sync_seconds or CHECK_SECONDS)
        synced_at, synced_seq = time.monotonic(), -1
        told, told_at = self._writer.dropped, float("-inf")
        is_stopping = False
        while not is_stopping:
            is_stopping = self._stopping.wait(wait_seconds)
            if not is_stopping and self._writer.used_ratio >= PREPARE_FROM_RATIO:
                self._writer.prepare_next()
            if self._writer.dropped != told and (is_stopping or time.monotonic() - told_at >= TELL_SECONDS):
                _log.error(
                    "event log %s is full: %d events dropped; is `gnomon ingest` running? more room: "
                    "gnomon.events.log.maxBytes",
                    self._writer.path,
                    self._writer.dropped - told,
                )
                told, told_at = self._writer.dropped, time.monotonic()
            if self._sync_seconds is None:
                continue
            now, seq = time.monotonic(), self._writer.accepted
            if seq != synced_seq and (is_stopping or now - synced_at >= self._sync_seconds):
                synced_at = now
                if self._sync():
                    synced_seq = seq

    def _sync(self) -> bool:
        try:
            self._writer.sync()
        except OSError as error:
            self.n_sync_failures += 1
            _log.error("event log %s: sync failed: %s", self._writer.path, error)
            return False
        self.n_syncs += 1
        return True
