"""Receivers that check what they get, and a history in memory."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from analytics.alerting.evaluate import Change, Held
from analytics.alerting.history import Parcel, Past, Report
from analytics.alerting.silences import Silence
from analytics.store import StoreAway
from tests.analytics.alerting.schemas import Refused


class FakeReceiver:
    """Answers as told, and keeps what it took."""

    def __init__(self, check: Callable[[Any], None] = lambda body: None) -> None:
        self.check = check
        self.status = 200
        self.headers: dict[str, str] = {}
        self.taken: list[tuple[float, str, dict[str, str], Any]] = []
        """Wall time, path, headers, body."""
        self.n_refused = 0
        self.refusals: list[str] = []
        self.url = ""

    @property
    def bodies(self) -> list[Any]:
        return [body for _, _, _, body in self.taken]


@contextmanager
def serving(receiver: FakeReceiver) -> Iterator[FakeReceiver]:
    """Serve it on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = receiver.status
            if status == 200:
                try:
                    receiver.check(body)
                    receiver.taken.append((time.time(), self.path, dict(self.headers), body))
                except Refused as error:
                    receiver.refusals.append(str(error))
                    status = 400
            else:
                receiver.n_refused += 1
            self.send_response(status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing per request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


class MemoryHistory:
    """What `History` keeps, without ClickHouse; the state is what was written last, as there."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.parcels: list[Parcel] = []
        self.reports: list[Report] = []
        self.samples: list[tuple[datetime, str, str, float]] = []
        self.silenced: list[Silence] = []
        self.is_away = False

    def _reach(self) -> None:
        if self.is_away:
            raise StoreAway("away")

    def past(self, now: datetime) -> Past:
        self._reach()
        held: dict[str, dict[str, Held]] = {}
        changed_at: dict[tuple[str, str], datetime] = {}
        for c in self.changes:
            held.setdefault(c.rule, {}).pop(c.subject, None)
            changed_at[c.rule, c.subject] = c.at
            if c.state == "firing" or c.state == "pending":
                held[c.rule][c.subject] = Held(c.state, c.since, c.value, c.labels)
        told: dict[str, tuple[str, ...]] = {}
        for p in self.parcels:
            name = p.message.fingerprint
            told[name] = () if p.message.state == "resolved" else tuple({*told.get(name, ()), p.receiver})
        done = {id(r.parcel) for r in self.reports if r.is_delivered}
        undelivered = [p for p in self.parcels if id(p) not in done]
        return Past(held, changed_at, {k: v for k, v in told.items() if v}, undelivered)

    def silences(self, now: datetime) -> list[Silence]:
        self._reach()
        return [s for s in self.silenced if s.ends_at > now]

    def write(self, changes: Sequence[Change], parcels: Sequence[Parcel]) -> None:
        self._reach()
        self.parcels += parcels
        self.changes += changes

    def report(self, reports: Sequence[Report]) -> None:
        self._reach()
        self.reports += reports

    def gauges(self, rows: Sequence[tuple[datetime, str, str, float]]) -> None:
        self._reach()
        self.samples += rows

    def clock(self) -> datetime:
        self._reach()
        return datetime.now(UTC)


def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)
