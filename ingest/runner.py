"""
The embedded runner: the logs of the proxy's workers on disk → the sink, until told to stop.

One thread goes round: take what is new in each log, store it when a batch is due, write down how far, let the log go.
A batch is due 0.8 s after the one before began (250 ms after the first event of a quiet time), or at once when it
is full. ClickHouse away or killed: wait, take over, go on from where the tables are. A log that cannot be read stands
still and says so; the others go on.
"""

import fcntl
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gnomon.events.errors import LogAhead, LogBehind, LogDamaged, LogError, LogMissing, LogReplaced, LogUnknown
from gnomon.events.log import Consumer, Reader, status
from ingest.engine import Engine
from ingest.errors import EngineAway, EngineRefused, OwnerLocked
from ingest.keeper import Keeper
from ingest.metrics import Metrics
from ingest.pacing import Pending
from ingest.rows import Context
from ingest.settings import CONSUMER, TOPIC, RunnerSettings

log = logging.getLogger("gnomon.ingest")

Clock = Callable[[], float]


class Feed:
    """One worker's log and the sink of its key."""

    def __init__(
        self, path: Path, part: int, engine: Engine, context: Context, settings: RunnerSettings, metrics: Metrics
    ) -> None:
        """
        Args:
            path: the log's folder.
            part: the worker's number.
            engine: shared by all feeds; one thread uses it.
        """
        self.path = path
        self.name = path.name
        self.part = part
        self._engine = engine
        self._context = context
        self._settings = settings
        self._metrics = metrics
        self._keeper: Keeper | None = None
        self._reader: Reader | None = None
        self._consumer: Consumer | None = None
        self._records: list[bytes] = []
        self._pending = Pending(settings)
        self._last_progress = float("-inf")
        self._last_missing: float | None = None
        self.failure = ""
        """Why the log cannot be read; '' when it can."""
        self.retry_at = float("-inf")
        """When a log that could not be read is looked at again; the others do not wait for it."""
        self.n_events = 0

    @property
    def is_open(self) -> bool:
        """Whether this process owns the key and reads the log."""
        return self._reader is not None

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be stored or written down."""
        keeper = self._keeper
        return not self._records and (keeper is None or keeper.sink.next == keeper.sink.stored_next)

    def open(self) -> None:
        """
        Take the key over and stand at the first event that is not stored.

        Raises:
            EngineAway, EngineRefused, Fenced: not the owner.
            LogMissing: no writer has been here yet.
            LogError: the log cannot be read from there.
        """
        self.forget()
        consumer = Consumer(self.path, CONSUMER)
        try:
            log_id = consumer.log_id.hex()
            keeper = self._keeper
            if keeper is None or keeper.sink.log_id != log_id:
                keeper = self._keeper = Keeper(
                    self._engine,
                    self._context,
                    self._metrics,
                    (log_id, TOPIC, self.part),
                    name=self.name,
                    missing_horizon_seconds=self._settings.missing_horizon_seconds,
                )
            sink = keeper.sink
            start = keeper.take_over()
            if start == 0 < consumer.get():
                # The log gave its records to tables that are not there any more.
                log.warning("tables are younger than the log log=%s consumed=%d", self.name, consumer.get())
            try:
                reader = Reader(self.path, start)
            except LogBehind as error:
                lost = error.start - start
                log.error("events lost log=%s from=%d to=%d n=%d: %s", self.name, start, error.start, lost, error)
                self._metrics.add("gnomon_ingest_lost_events_total", (self.name,), lost)
                sink.skip(error.start)
                reader = Reader(self.path, error.start)
        except BaseException:
            consumer.close()
            raise
        self._consumer, self._reader = consumer, reader
        log.info("reading log=%s id=%s from=%d", self.name, sink.log_id, sink.next)

    def forget(self) -> None:
        """Let go of what was read and not stored; the next `open` reads it again."""
        if self._reader is not None:
            self._reader.close()
        if self._consumer is not None:
            self._consumer.close()
        if self._keeper is not None:
            self._keeper.forget()
        self._reader = self._consumer = None
        self._records = []
        self._pending.clear()

    def take(self, now: float) -> None:
        """Read what is new in the log, up to a full batch."""
        reader = self._reader
        if reader is None or self._pending.is_full:
            return
        _, records = reader.read(self._pending.room, max(self._pending.bytes_room, 1))
        if records:
            self._records += records
            self._pending.add(len(records), sum(map(len, records)), now)

    def is_due(self, now: float) -> bool:
        """Return whether what was read should be stored now."""
        return self._pending.is_due(now)

    def flush(self, now: float, clock: Clock) -> None:
        """
        Store what was read.

        Raises:
            EngineAway, EngineRefused, Fenced: `forget` and `open` again.
        """
        if not self._records:
            return
        self._pending.last_flush = now
        self.n_events += self._require_keeper().store(self._records).n_events
        self._metrics.add("gnomon_ingest_store_seconds_total", (), clock() - now)
        self._metrics.add("gnomon_ingest_batches_total")
        self._records = []
        self._pending.clear()

    def progress(self, now: float, *, is_forced: bool = False) -> None:
        """
        Write down how far the log is stored, when that is due, and let the log recycle what is.

        Raises:
            EngineAway, EngineRefused, Fenced: `forget` and `open` again.
        """
        keeper, consumer = self._keeper, self._consumer
        if keeper is None or consumer is None or keeper.sink.next == keeper.sink.stored_next:
            return
        sink = keeper.sink
        if not is_forced and now - self._last_progress < self._settings.progress_seconds:
            return
        state = status(self.path)
        sink.progress(state.accepted, state.dropped)
        consumer.set(sink.stored_next)
        self._last_progress = now
        self._metrics.set("gnomon_ingest_lag_events", (self.name,), max(state.accepted - sink.next, 0))
        self._metrics.set("gnomon_ingest_log_dropped", (self.name,), state.dropped)

    def look_for_missing(self, now: float) -> None:
        """
        Give mirrored calls that never ended their verdict `missing`, when a look is due.

        Raises:
            EngineAway, EngineRefused, Fenced: `forget` and `open` again.
        """
        if self._last_missing is None:
            self._last_missing = now
        keeper = self._keeper
        if keeper is None or now - self._last_missing < self._settings.missing_seconds:
            return
        self._last_missing = now
        # With nothing waiting in the log, all that happened until now is stored.
        keeper.look_for_missing(keeper.newest_stored_ms if self._records else _now_ms())

    def _require_keeper(self) -> Keeper:
        if self._keeper is None:
            raise RuntimeError("open() first")
        return self._keeper


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Runner:
    """All logs below one folder."""

    def __init__(
        self,
        root: Path,
        engine: Engine,
        context: Context,
        *,
        settings: RunnerSettings | None = None,
        metrics: Metrics | None = None,
        stop: threading.Event | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        """
        Args:
            root: holds one folder per proxy worker, named by its number.
            engine: a connection with the writer's rights; its thread is the one that runs.
            context: prices, masks, what is kept.
            stop: ends `run`, as `stop()` does.
        """
        self._root = root
        self._engine = engine
        self._context = context
        self._settings = settings or RunnerSettings()
        self.metrics = metrics or Metrics()
        self._clock = clock
        self._feeds: dict[str, Feed] = {}
        self._stop = stop or threading.Event()
        self._last_scan = float("-inf")
        self._retry_at = float("-inf")
        self._retry_seconds = self._settings.retry_seconds
        self._trouble = ""
        self._trouble_said_at = float("-inf")
        self._trouble_since = 0.0

    def stop(self) -> None:
        """Finish the batch at hand and return from `run`. Safe in a signal handler and from another thread."""
        self._stop.set()

    def health(self) -> tuple[bool, str]:
        """Return whether all is well, and more as JSON."""
        feeds = list(self._feeds.values())
        failures = {feed.name: feed.failure for feed in feeds if feed.failure}
        state = {
            "engine": self._trouble or "up",
            "logs": {feed.name: feed.failure or ("reading" if feed.is_open else "waiting") for feed in feeds},
            "events": sum(feed.n_events for feed in feeds),
        }
        return not failures and not self._trouble, json.dumps(state)

    def run(self) -> None:
        """
        Go round until `stop`.

        Raises:
            Fenced: another owner has a key: two processes read the same logs.
            OwnerLocked: the same, seen at the start.
        """
        with locked(self._root):
            try:
                while not self._stop.is_set():
                    if not self.round():
                        self._stop.wait(self._settings.poll_seconds)
                self._finish()
            finally:
                for feed in self._feeds.values():
                    feed.forget()
                self._engine.close()

    def round(self) -> bool:
        """Do what is due; return whether there is more to do at once."""
        now = self._clock()
        if now - self._last_scan >= self._settings.scan_seconds:
            self._last_scan = now
            self._scan()
        if now < self._retry_at:
            return False
        is_busy = False
        for feed in list(self._feeds.values()):
            if self._stop.is_set():
                return False
            is_busy |= self._guarded(feed, lambda feed=feed: self._advance(feed))  # type: ignore[misc]
        return is_busy

    def _advance(self, feed: Feed) -> bool:
        if not feed.is_open:
            if self._clock() < feed.retry_at:
                return False
            feed.open()
            self._recovered()
            feed.failure = ""
            self.metrics.set("gnomon_ingest_log_failed", (feed.name,), 0)
        now = self._clock()
        try:
            feed.take(now)
        except (LogAhead, LogBehind, LogDamaged, LogUnknown):
            # What came before is whole, and will not be read past the trouble: it waits for no full batch.
            feed.flush(now, self._clock)
            feed.progress(self._clock(), is_forced=True)
            raise
        did = False
        if feed.is_due(now):
            feed.flush(now, self._clock)
            self._recovered()
            did = True
        feed.progress(self._clock())
        if not did:
            feed.look_for_missing(self._clock())
        return did

    def _guarded(self, feed: Feed, work: Callable[[], bool]) -> bool:
        """Do a feed's work; after trouble let go of what it read, so that it is taken over again."""
        try:
            return work()
        except LogMissing:
            feed.forget()
        except LogReplaced as error:
            log.warning("log was replaced log=%s: %s", feed.name, error)
            feed.forget()
        except LogBehind as error:
            # Nobody held these records back; the next `open` says how many are lost.
            log.error("log ran away log=%s: %s", feed.name, error)
            feed.forget()
        except (LogAhead, LogDamaged, LogUnknown) as error:
            self._failed(feed, error)
        except (EngineAway, EngineRefused) as error:
            for other in self._feeds.values():
                other.forget()
            self._away(error)
        return False

    def _failed(self, feed: Feed, error: LogError) -> None:
        if feed.failure != str(error):
            log.error("log cannot be read log=%s: %s", feed.name, error)
        feed.failure = str(error)
        self.metrics.set("gnomon_ingest_log_failed", (feed.name,), 1)
        feed.forget()
        feed.retry_at = self._clock() + self._settings.failed_retry_seconds

    def _away(self, error: Exception) -> None:
        now = self._clock()
        if not self._trouble:
            self._trouble_since = now
        if not self._trouble or now - self._trouble_said_at >= self._settings.repeat_line_seconds:
            log.warning("ClickHouse is away, waiting: %s", error)
            self._trouble_said_at = now
        self._trouble = str(error)
        self.metrics.set("gnomon_ingest_engine_up", (), 0)
        self._retry_at = now + self._retry_seconds
        self._retry_seconds = min(self._retry_seconds * 2, self._settings.max_retry_seconds)

    def _recovered(self) -> None:
        if self._trouble:
            log.info("ClickHouse is back after_seconds=%.1f", self._clock() - self._trouble_since)
        self._trouble = ""
        self._retry_seconds = self._settings.retry_seconds
        self.metrics.set("gnomon_ingest_engine_up", (), 1)

    def _scan(self) -> None:
        """Find the workers' folders."""
        try:
            names = os.listdir(self._root)
        except FileNotFoundError:
            return
        for name in names:
            if name.isdecimal() and name not in self._feeds:
                self._feeds[name] = Feed(
                    self._root / name, int(name), self._engine, self._context, self._settings, self.metrics
                )

    def _finish(self) -> None:
        """Store what was read and write down how far; what fails now is read again at the next start."""
        for feed in self._feeds.values():
            if not feed.is_open:
                continue
            try:
                feed.flush(self._clock(), self._clock)
                feed.progress(self._clock(), is_forced=True)
            except (EngineAway, EngineRefused, LogError) as error:
                log.warning("not stored at the end, will be at the next start log=%s: %s", feed.name, error)


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """
    Be the only process that reads these logs into tables; a killed holder's lock is free at once.

    Raises:
        OwnerLocked: another one is.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(root / "ingest.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(fd, 32).decode("ascii", "replace").strip()
            raise OwnerLocked(
                f"process {holder or '?'} reads the logs below {root} already; stop it, or read other logs"
            ) from None
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(fd)
