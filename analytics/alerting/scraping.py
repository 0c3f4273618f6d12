"""
Asks the proxies for their /metrics, each on a thread of its own: one that does not answer delays no rule and no other.

What a proxy has said last stands until it is old; a proxy that is away gives no samples.
"""

import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from typing import Final
from urllib.parse import urlsplit

from analytics.alerting.gauges import Sample, proxy_samples

log = logging.getLogger("gnomon.alerts")

EVERY_SECONDS: Final = 5.0
TIMEOUT_SECONDS: Final = 5.0
OLD_SECONDS: Final = 12.0
"""Samples that are older say nothing of now."""
MAX_BYTES: Final = 16 << 20

Get = Callable[[str], str]


def get(url: str) -> str:
    """
    Return the text at an address.

    Raises:
        OSError, HTTPException: it is not to be had.
    """
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
        text: bytes = answer.read(MAX_BYTES)
        return text.decode("utf-8", "replace")


class Scraper:
    """See the module's text; `samples` may be called from any thread."""

    def __init__(self, addresses: Sequence[str], get: Get = get, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            addresses: of the proxies, `http://HOST:PORT`.
            get: returns the text at an address.
            clock: monotonic seconds.
        """
        self._addresses = addresses
        self._get = get
        self._clock = clock
        self._said: dict[str, tuple[float, list[Sample]]] = {}
        self._away: set[str] = set()
        self._stop = threading.Event()

    def start(self) -> None:
        """Begin to ask."""
        for address in self._addresses:
            threading.Thread(target=self._go_on, args=(address,), name=f"scrape {address}", daemon=True).start()

    def stop(self) -> None:
        """Ask no more."""
        self._stop.set()

    def samples(self) -> list[Sample]:
        """Return what the proxies have said lately."""
        oldest = self._clock() - OLD_SECONDS
        return [one for at, found in list(self._said.values()) if at >= oldest for one in found]

    def ask(self, address: str) -> None:
        """Ask one proxy once, and keep what it says."""
        try:
            text = self._get(f"{address.rstrip('/')}/metrics")
        except (OSError, HTTPException, ValueError) as error:
            if address not in self._away:
                log.warning("proxy does not tell its metrics address=%s: %s", address, error)
                self._away.add(address)
            return
        if address in self._away:
            log.info("proxy tells its metrics again address=%s", address)
            self._away.discard(address)
        self._said[address] = self._clock(), proxy_samples(urlsplit(address).netloc, text)

    def _go_on(self, address: str) -> None:
        while not self._stop.is_set():
            self.ask(address)
            self._stop.wait(EVERY_SECONDS)
