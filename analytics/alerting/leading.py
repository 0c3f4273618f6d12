"""
Takes part in the lease (`analytics.alerting.lease`) from a thread of its own, with a connection of its own, so that a
slow statement elsewhere costs nobody the lead.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from analytics.alerting.lease import OTHERS_SECONDS, Lease, View
from analytics.store import Store, StoreError
from gnomon.errors import GnomonError

log = logging.getLogger("gnomon.alerts")

POLL_SECONDS: Final = 1.0
CLAIMING_POLL_SECONDS: Final = 0.2
STANDING_BY_SECONDS: Final = 15.0
"""Between two rows of a service that stands by: it is there."""

_VIEW = """
SELECT epoch, holder, argMax(l.host, l.at), argMax(l.state, l.at), count()
FROM gnomon_core.alert_leases AS l
WHERE epoch > 0
GROUP BY epoch, holder
ORDER BY epoch DESC, holder DESC
LIMIT 2
"""
_OTHERS = """
SELECT uniqExact(holder) FROM gnomon_core.alert_leases
WHERE at > now64(3, 'UTC') - toIntervalSecond({seconds:UInt32}) AND holder != {holder:String} AND state != 'released'
"""


def clock() -> float:
    """Return seconds that go on while the machine sleeps: a lease does not wait for it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def holder_of(folder: Path | None) -> str:
    """
    Return the name of a service in the lease.

    Args:
        folder: a data folder that this process has locked for itself, None where there is none. It keeps the name, so
            that the next process over it goes on at once: the last one is surely gone.
    """
    if folder is None:
        return secrets.token_hex(8)
    file = folder / "alerts.id"
    try:
        if name := file.read_text(encoding="ascii").strip():
            return name
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    name = secrets.token_hex(8)
    file.write_text(f"{name}\n", encoding="ascii")
    return name


class Leadership:
    """See the module's text. `is_leading` and `may_act` may be asked by any thread."""

    def __init__(
        self, holder: str, host: str, connect: Callable[[], Store], clock: Callable[[], float] = clock
    ) -> None:
        """
        Args:
            holder: see `holder_of`.
            host: this machine's name, for people.
            connect: opens a connection with the writer's rights; raises GnomonError.
            clock: seconds that never stand still.
        """
        self._lease = Lease(holder)
        self._host = host
        self._connect = connect
        self._clock = clock
        self._store: Store | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._told = ""
        self._stood_by_at = float("-inf")

    @property
    def is_leading(self) -> bool:
        return self._lease.role == "leading"

    def may_act(self) -> bool:
        """Return whether this service may tell anybody anything now."""
        return self._lease.may_act(self._clock())

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Take part no more, and let another service lead at once."""
        self._stop.set()
        self._thread.join(10)
        # A claim that has not led yet is not given up: whoever led before may still be acting.
        if self.is_leading and self._store is not None and not self._thread.is_alive():
            try:
                self._write("released", self._lease.epoch)
            except StoreError as error:
                log.warning("the lead could not be given up: %s", error)
        self._lease.role = "standing_by"
        self._close()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.step()
            except GnomonError as error:
                self._lease.lost_sight()
                self._close()
                log.debug("the lease cannot be read: %s", error)
            self._stop.wait(POLL_SECONDS if self._lease.role != "claiming" else CLAIMING_POLL_SECONDS)

    def step(self) -> None:
        """
        Ask the store once and do what follows.

        Raises:
            GnomonError: it is away, or refuses.
        """
        asked_at = self._clock()
        view = self._view()
        action = self._lease.next(self._clock(), asked_at, view)
        if action == "claim":
            self._write("claiming", view.epoch + 1)
            self._lease.claimed(self._clock(), view)
        elif action in ("renew", "lead"):
            self._write(self._lease.role, self._lease.epoch)
            self._lease.renewed(self._clock())
        elif self._lease.role == "standing_by" and asked_at - self._stood_by_at >= STANDING_BY_SECONDS:
            self._write("standing_by", 0)
            self._stood_by_at = asked_at
        self._tell(view, action == "step_down")

    def _tell(self, view: View, is_down: bool) -> None:
        text = ""
        if self._lease.role == "leading":
            text = "this service tells of alerts"
        elif self._lease.role == "standing_by" and view.epoch and view.holder != self._lease.holder:
            text = f"standing by: the alert service on {view.host} tells of alerts"
        if text and text != self._told:
            log.log(logging.WARNING if is_down else logging.INFO, "%s", text)
            self._told = text

    def _view(self) -> View:
        store = self._opened()
        rows = store.rows(_VIEW)
        others = store.rows(_OTHERS, {"seconds": int(OTHERS_SECONDS), "holder": self._lease.holder})
        ((n_others,),) = others
        if not rows:
            return View(n_others=n_others)
        epoch, holder, host, state, beat = rows[0]
        is_contested = len(rows) > 1 and rows[1][0] == epoch
        return View(epoch, holder, host, state, beat, is_contested, n_others)

    def _write(self, state: str, epoch: int) -> None:
        names = ("epoch", "holder", "host", "state")
        row = (epoch, self._lease.holder, self._host, state)
        self._opened().insert("gnomon_core.alert_leases", names, [row])

    def _opened(self) -> Store:
        if self._store is None:
            self._store = self._connect()
        return self._store

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
