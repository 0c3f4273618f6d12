"""
A process that was asked to end does end: in order, or, when that takes too long, as if it were killed.

What can hold it up: an insert whose answer does not come, a Kafka that does not let go, a machine without time. Ending
in the midst of it is safe for the reason that a kill is (`ingest.sink`): what is not known to be stored is looked up by
the next owner, and what this one may still have sent is refused by the fence.
"""

import faulthandler
import logging
import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

log = logging.getLogger("gnomon.ingest")

EXIT_STATUS = 75
"""EX_TEMPFAIL: not all was done, start it again."""


class Deadline:
    """Ends the process so long after `stop` was set, unless the block that it guards was left before."""

    def __init__(self, stop: threading.Event, seconds: float, *, end: Callable[[int], object] = os._exit) -> None:
        """
        Args:
            stop: is set when the process shall end.
            seconds: from then on.
            end: ends the process with a status.
        """
        self._stop, self._seconds, self._end = stop, seconds, end
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="deadline", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        self._stop.wait()
        if not self._is_over.wait(self._seconds):
            log.critical(
                "not stopped within %g s, ending as if killed: what is not stored the next one will", self._seconds
            )
            faulthandler.dump_traceback(all_threads=True)
            self._end(EXIT_STATUS)
