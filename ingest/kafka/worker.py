"""
The Faust app of the cluster's worker, run to its end.

Faust is the frame: start and stop in order, services that crash together, the producer of the dead letters. Its own
consumer stays off (`consumption.py` says why). `/healthz` and `/metrics` are served by `ingest.health`, on a thread of
their own, as the embedded runner's are.
"""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Sequence

import faust
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition
from faust.app.base import BootStrategy
from faust.auth import SASLCredentials, SSLCredentials
from faust.exceptions import ProducerSendError

from gnomon.config.model import KafkaSettings
from gnomon.kafka.client import arguments
from gnomon.kafka.errors import KafkaAway, TopicsMissing
from ingest.batch import Poison
from ingest.engine import Engine
from ingest.errors import WorkerStopped
from ingest.kafka.consumption import Consumption
from ingest.kafka.lanes import Lanes
from ingest.kafka.letters import record
from ingest.kafka.settings import WorkerSettings
from ingest.kafka.topic_ids import topic_ids
from ingest.kafka.watchdog import Patience, Watchdog
from ingest.metrics import Metrics
from ingest.rows import Context

log = logging.getLogger("gnomon.ingest")

MAX_LETTER_BYTES = 1 << 20


class _Boot(BootStrategy):  # type: ignore[misc]
    """Which of Faust's own services start."""

    enable_kafka_consumer = False
    enable_kafka_producer = True
    enable_web = False


class _App(faust.App):  # type: ignore[misc]
    BootStrategy = _Boot

    def _create_directories(self) -> None:
        """Make none: there is no table, and a worker that is killed would leave them behind."""


class Worker:
    """One process of the cluster's ingest."""

    def __init__(self, settings: WorkerSettings, engines: Sequence[Engine], context: Context, metrics: Metrics) -> None:
        """
        Args:
            settings: the worker's.
            engines: a connection with the writer's rights for each lane.
            context: prices, masks, what is kept.
            metrics: where it counts.
        """
        self._settings = settings
        self._lanes = Lanes(engines)
        self._context = context
        self._metrics = metrics
        self._consumption: Consumption | None = None
        self._waiting = "starting"

    def health(self) -> tuple[bool, str]:
        """Return whether all is well, and more as JSON. Called from other threads."""
        if self._consumption is None:
            return False, json.dumps({"waiting": self._waiting})
        return self._consumption.health()

    def run(self, stop: threading.Event, on_ready: Callable[[], None] = lambda: None) -> None:
        """
        Wait for the topics, then go on until `stop`, which is set where it ends by itself, too: it may still have
        something to bring to an end then, and takes its time for it (`ingest.ending` guards).

        Raises:
            WorkerStopped: it ended by itself; start it again.
            KafkaRefused, KafkaSettingsWrong: a person must look.
        """
        try:
            asyncio.run(self._run(stop, on_ready))
        finally:
            stop.set()
            self._lanes.join()

    async def _run(self, stop: threading.Event, on_ready: Callable[[], None]) -> None:
        if not await self._wait_for_topics(stop):
            return
        app = make_app(self._settings)
        letters = app.topic(self._settings.dead_letters, key_serializer="raw", value_serializer="raw")

        async def tell(tp: TopicPartition, poison: Sequence[Poison]) -> None:
            await send_letters(letters, tp, poison)

        consumption = Consumption(
            self._settings, self._lanes, self._context, self._metrics, tell,
            loop=app.loop, beacon=app.beacon,
        )  # fmt: skip
        app.service(consumption)
        self._consumption = consumption
        settings = self._settings
        watchdog = Watchdog(
            consumption.signs,
            Patience(settings.stall_seconds, settings.blind_seconds, settings.frozen_seconds),
            time.monotonic,
        )
        try:
            await app.start()
        except KafkaError as error:
            raise WorkerStopped(f"Kafka went away while the worker started: {error}") from error
        watchdog.start()
        on_ready()
        try:
            while not stop.is_set() and not app.should_stop:
                await app.sleep(0.2)
        finally:
            was_asked = stop.is_set()
            stop.set()
            await app.stop()
            watchdog.stop()
        if not was_asked:
            reason = app.crash_reason or consumption.crash_reason
            raise WorkerStopped(f"the worker has ended by itself: {reason or 'nobody says why'}") from reason

    async def _wait_for_topics(self, stop: threading.Event) -> bool:
        """Return whether the topics are there; False when told to stop."""
        settings = self._settings
        wanted = [*settings.sources, settings.dead_letters]
        while not stop.is_set():
            try:
                found = await topic_ids(settings.kafka, wanted)
                missing = [name for name in wanted if name not in found]
                if not missing:
                    return True
                waiting = f"waiting for topics: {TopicsMissing(missing)}"
            except KafkaAway as error:
                waiting = f"waiting for Kafka: {error}"
            if waiting != self._waiting:
                log.warning("%s", waiting)
                self._waiting = waiting
            await asyncio.sleep(0.5)
        return False


async def send_letters(topic: faust.TopicT, tp: TopicPartition, poison: Sequence[Poison]) -> None:
    """
    Send dead letters; return when Kafka has them.

    Raises:
        KafkaAway: it has not; some may be there all the same.
    """
    try:
        for one in poison:
            key, value = record(tp.topic, tp.partition, one)
            message = asyncio.ensure_future(await topic.send(key=key, value=value))
            message.add_done_callback(_look_at)  # also where nobody waits for it any more
            await message
    except (ProducerSendError, KafkaError) as error:
        raise KafkaAway(f"dead letters of {tp.topic}/{tp.partition} are not sent: {error}") from error


def _look_at(message: "asyncio.Future[object]") -> None:
    """Have asyncio not report what went wrong with it as nobody's: the feed has its own word for it."""
    if not message.cancelled():
        message.exception()


def make_app(settings: WorkerSettings) -> faust.App:
    """Return the app, with nothing to consume yet."""
    kafka = settings.kafka
    return _App(
        settings.group,
        broker=[f"kafka://{address.strip()}" for address in kafka.bootstrap_servers.split(",")],
        broker_credentials=_credentials(kafka),
        autodiscover=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        producer_acks=-1,
        producer_max_request_size=2 * MAX_LETTER_BYTES,
        producer_request_timeout=10.0,
    )


def _credentials(kafka: KafkaSettings) -> SASLCredentials | SSLCredentials | None:
    """Return the same as `gnomon.kafka.client.arguments`, in Faust's form."""
    known = arguments(kafka)
    tls = known.get("ssl_context")
    if "sasl_mechanism" in known:
        return SASLCredentials(
            username=known["sasl_plain_username"],
            password=known["sasl_plain_password"],
            mechanism=known["sasl_mechanism"],
            ssl_context=tls,
        )
    return SSLCredentials(context=tls) if tls is not None else None
