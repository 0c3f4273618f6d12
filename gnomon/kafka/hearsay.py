"""
What the Kafka client says in its log and nowhere else: why a connection failed (a wrong password, for instance).

Its exceptions say no more than that no broker could be reached.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_LOGGER = logging.getLogger("aiokafka")


def keep_to_ourselves() -> None:
    """Have the client print nothing: it tells each try that fails, and what comes of it all is our message."""
    _LOGGER.propagate = False
    _LOGGER.addHandler(logging.NullHandler())


class Heard(logging.Handler):
    """The last warning."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()


@contextmanager
def listening() -> Iterator[Heard]:
    """Hear what the client says within."""
    heard = Heard()
    _LOGGER.addHandler(heard)
    try:
        yield heard
    finally:
        _LOGGER.removeHandler(heard)
