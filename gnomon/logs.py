"""Logging of a service: one line a message on stderr, at the level that the configuration names."""

import logging
import sys
from collections.abc import Mapping
from typing import Final

LEVELS: Final[Mapping[str, int]] = {
    "trace": logging.DEBUG,  # nothing here is finer than debug
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
    "disabled": logging.CRITICAL + 1,
}
"""Each value of `logLevel` (eRPC's words) → the level of the standard library."""


def start(log_level: str) -> None:
    """Send messages of `log_level` (a key of `LEVELS`) and above to stderr."""
    logging.basicConfig(
        stream=sys.stderr, level=LEVELS[log_level], format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
