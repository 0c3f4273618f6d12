"""
One thread for each receiver: sends what its queue has, waits where it must. A dead receiver delays no other.

Addresses and keys are read from their files at each send, so that a new one counts without a restart.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from analytics.alerting import messages
from analytics.alerting.history import Parcel, Report
from analytics.alerting.messages import Message
from analytics.alerting.post import Answer, post
from analytics.alerting.queue import Queue
from gnomon.config.receivers import Receiver

log = logging.getLogger("gnomon.alerts")

STOP_SECONDS: Final = 2.0
"""For the tries at hand when deliveries stop, of all receivers together."""
REFRESH_SECONDS: Final = 60.0
"""Between tellings of what still fires, to a receiver that forgets (Alertmanager)."""
Post = Callable[[str, object, dict[str, str]], Answer]


class Delivery:
    """One receiver."""

    def __init__(
        self,
        receiver: Receiver,
        report: Callable[[Report], None],
        send: Post = post,
        may_send: Callable[[str], bool] = lambda rule: True,
    ) -> None:
        """
        Args:
            receiver: where to.
            report: is told of each try that is worth keeping, from this receiver's thread.
            send: one POST.
            may_send: whether this service may tell of a rule now, or another one does (analytics.alerting.lease).
        """
        self.receiver = receiver
        self._report = report
        self._send = send
        self._may_send = may_send
        self._queue: Queue[Parcel] = Queue()
        self._firing: Sequence[Message] = ()
        self._refresh_at = 0.0
        self._wake = threading.Condition()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name=f"deliver-{receiver.name}", daemon=True)
        self.n_delivered = 0
        self.n_failed = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing more; what is not delivered stays in the history, for the next life."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()

    def join(self, timeout_seconds: float) -> None:
        """Wait for the end of the try at hand, after `stop`."""
        if self._thread.ident is not None:
            self._thread.join(max(timeout_seconds, 0.0))

    def add(self, parcels: Sequence[Parcel]) -> None:
        """Hand over what this receiver is to get."""
        with self._wake:
            self._queue.extend((parcel.message.fingerprint, parcel) for parcel in parcels)
            self._wake.notify()

    def clear(self) -> None:
        """Forget what is waiting: another service tells it."""
        with self._wake:
            self._queue.clear()
            self._firing = ()

    def replace(self, receiver: Receiver) -> None:
        """Go on with the same receiver at another address; what it still has to get is tried there at once."""
        with self._wake:
            self.receiver = receiver
            self._queue.wake()
            self._wake.notify()

    def hold(self, firing: Sequence[Message]) -> None:
        """Say what fires now and was told to this receiver."""
        self._firing = firing

    @property
    def n_waiting(self) -> int:
        return len(self._queue)

    def _run(self) -> None:
        while True:
            with self._wake:
                now = time.monotonic()
                entry = self._queue.next(now, lambda parcel: self._may_send(parcel.message.rule))
                if entry is None and not self._is_stopping:
                    due = self._queue.next_due(now)
                    self._wake.wait(min(1.0, max(due - now, 0.1)) if due is not None else 1.0)
                if self._is_stopping:
                    return
            if entry is not None:
                parcel = entry.item
                answer = self._tried(parcel.message)
                with self._wake:
                    self._note(answer, parcel, entry.n_tries + 1)
                    if answer.is_taken:
                        self._queue.arrived(entry)
                    elif answer.is_away:
                        self._queue.away(entry, time.monotonic(), after_seconds=answer.retry_after_seconds)
                    else:
                        self._queue.refused(entry, time.monotonic())
            elif self.receiver.kind == "alertmanager" and time.monotonic() >= self._refresh_at and not self._queue:
                self._refresh_at = time.monotonic() + REFRESH_SECONDS
                self._refresh()

    def _note(self, answer: Answer, parcel: Parcel, n_tries: int) -> None:
        now = datetime.now(UTC)
        if answer.is_taken:
            self.n_delivered += 1
            log.info("delivered receiver=%s rule=%s state=%s subject=%s tries=%d", self.receiver.name,
                     parcel.message.rule, parcel.message.state, parcel.message.subject, n_tries)  # fmt: skip
            self._report(Report(now, parcel, True, n_tries))
            return
        self.n_failed += 1
        if n_tries & (n_tries - 1) == 0:  # 1, 2, 4, 8 and so on: a long outage is not a long story
            log.warning("not delivered receiver=%s rule=%s state=%s tries=%d: %s", self.receiver.name,
                        parcel.message.rule, parcel.message.state, n_tries, answer.error)  # fmt: skip
            self._report(Report(now, parcel, False, n_tries, answer.error))

    def _tried(self, message: Message) -> Answer:
        try:
            return self._tell(message)
        except Exception as error:  # a fault of ours in one message must not silence a receiver
            log.exception("cannot tell receiver=%s rule=%s", self.receiver.name, message.rule)
            return Answer(-1, f"{type(error).__name__} in gnomon")

    def _tell(self, message: Message) -> Answer:
        receiver = self.receiver
        try:
            if receiver.kind == "webhook":
                return self._send(self._url(), messages.webhook(message), self._headers())
            if receiver.kind == "slack":
                return self._send(self._url(), messages.slack(message), {})
            if receiver.kind == "pagerduty":
                key = _read(receiver.routing_key_file)
                return self._send(receiver.url or messages.PAGERDUTY_URL, messages.pagerduty(message, key), {})
            return self._tell_alertmanager([message])
        except OSError as error:
            return Answer(0, f"cannot read {error.filename}: {error.strerror}")

    def _tell_alertmanager(self, told: Sequence[Message]) -> Answer:
        now = datetime.now(UTC)
        url = self._url().rstrip("/")
        if not url.endswith(messages.ALERTMANAGER_PATH):
            url += messages.ALERTMANAGER_PATH
        return self._send(url, [alert for m in told for alert in messages.alertmanager(m, now)], self._headers())

    def _refresh(self) -> None:
        """Tell again what fires; a failure is of no consequence, the next one comes."""
        if firing := [told for told in self._firing if self._may_send(told.rule)]:
            try:
                answer = self._tell_alertmanager(firing)
            except OSError as error:
                answer = Answer(0, f"cannot read {error.filename}: {error.strerror}")
            if not answer.is_taken:
                log.warning("not refreshed receiver=%s: %s", self.receiver.name, answer.error)

    def _url(self) -> str:
        return self.receiver.url or _read(self.receiver.url_file)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {_read(self.receiver.token_file)}"} if self.receiver.token_file else {}


def _read(file: str) -> str:
    return Path(file).read_text(encoding="utf-8").strip()


def stop_all(deliveries: Sequence[Delivery]) -> None:
    """Stop them all at once, and wait a little for the tries at hand: one that hangs holds up no other."""
    for delivery in deliveries:
        delivery.stop()
    deadline = time.monotonic() + STOP_SECONDS
    for delivery in deliveries:
        delivery.join(deadline - time.monotonic())
