"""
Prices, masks, tolerances and what is kept, read again while the processors run (SIGHUP).

Reading happens in a thread of its own; what it gives takes the place of the old between two looks of the steps at it.
Rows of a batch that is under way may be made by both: each row by one of them. A file that cannot be used leaves the
old one in force and says so.
"""

import logging
import threading
from collections.abc import Callable

from gnomon.errors import GnomonError
from ingest.rows import Context

log = logging.getLogger("gnomon.ingest")


class Reloader:
    """Reads again whenever it is asked to; `request` is safe in a signal handler."""

    def __init__(self, context: Context, read: Callable[[], Context], count: Callable[[str], None]) -> None:
        """
        Args:
            context: what the steps use; it becomes what `read` gives.
            read: reads and checks the configuration; raises GnomonError.
            count: is told `ok` or `invalid`.
        """
        self._context = context
        self._read = read
        self._count = count
        self._asked = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="reload", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def request(self) -> None:
        """Read soon; asked for while one is under way, once more after it."""
        self._asked.set()

    def stop(self) -> None:
        self._is_stopping = True
        self._asked.set()
        self._thread.join(5)

    def _run(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            if self._is_stopping:
                return
            try:
                self._context.become(self._read())
            except GnomonError as error:
                log.error("the configuration cannot be used, the old one stays in force: %s", error)
                self._count("invalid")
                continue
            log.info("configuration reloaded: prices, masks, tolerances, what is kept")
            self._count("ok")
