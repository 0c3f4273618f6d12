"""Records that are no events, straight into the topic: each must be one dead letter, and stop nobody."""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

EVERY_SECONDS = 1.5
STOP_SECONDS = 5.0


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Have the client print nothing within: of an outage it writes a line each time it tries."""
    logger = logging.getLogger("aiokafka")
    before, logger.propagate = logger.propagate, False
    handler = logging.NullHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


@dataclass(slots=True)
class Poisoner:
    """Sends one now and then while `run` runs."""

    broker: str
    topic: str
    n_partitions: int
    acknowledged: set[bytes] = field(default_factory=set)
    """These must be there once."""
    unknown: set[bytes] = field(default_factory=set)
    """These may be there, once."""
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    def stop(self) -> None:
        """Send no more."""
        self._stop.set()

    async def run(self) -> None:
        """Send until `stop`."""
        n = 0
        while not self._stop.is_set():
            producer = AIOKafkaProducer(
                bootstrap_servers=self.broker, enable_idempotence=True, request_timeout_ms=10_000
            )
            try:
                await producer.start()
                while not self._stop.is_set():
                    n += 1
                    record = b"poison %d" % n
                    self.unknown.add(record)
                    await producer.send_and_wait(self.topic, record, partition=n % self.n_partitions)
                    self.unknown.discard(record)
                    self.acknowledged.add(record)
                    await self._pause()
            except KafkaError:
                await self._pause()
            finally:
                with contextlib.suppress(KafkaError, TimeoutError):
                    async with asyncio.timeout(STOP_SECONDS):  # it would wait for its broker as long as it takes
                        await producer.stop()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(EVERY_SECONDS):
                await self._stop.wait()
        except TimeoutError:
            return
