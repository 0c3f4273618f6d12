"""
The one module of the shipper that speaks to Kafka: a producer, and what its errors mean.

Its idempotence retries what can be retried, for ever and without doubling anything: a broker that is away, slow, full
or without its leader only makes a send take longer. What comes back as an error is of one of three kinds:

    RecordsRefused      what is in the batch is to blame; nothing of it is stored
    ProducerLost        it is not known whether it is stored; a new producer sends it again
    KafkaRefused        the cluster does not let us; a person decides
"""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

from aiokafka import AIOKafkaProducer, errors

from gnomon.config.model import KafkaSettings
from gnomon.events.topics import ATTEMPTS, BREAKERS, HEADS, RESPONSES
from gnomon.kafka.admin import opened
from gnomon.kafka.client import arguments
from gnomon.kafka.errors import KafkaAway, KafkaRefused, TopicsMissing

SENT: Final = (RESPONSES, ATTEMPTS, HEADS, BREAKERS)
BATCH_BYTES: Final = 512 << 10
"""Before compression; a larger record is a batch of its own."""
COMPRESSION: Final = "zstd"
"""Half the processor time of lz4 here, and less than none at all: `python -m bench shipper`."""
REQUEST_SECONDS: Final = 10.0
CLOSE_SECONDS: Final = 2.0

_TO_BLAME: Final[Mapping[type[errors.KafkaError], str]] = {
    errors.MessageSizeTooLargeError: "too_large",
    errors.RecordListTooLargeError: "too_large",
    errors.RecordTooLargeError: "too_large",
    errors.InvalidTimestampError: "refused",
    errors.UnsupportedForMessageFormatError: "refused",
    errors.PolicyViolationError: "refused",
}
_FORBIDDEN: Final = (
    errors.TopicAuthorizationFailedError,
    errors.ClusterAuthorizationFailedError,
    errors.AuthenticationFailedError,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
)


class RecordsRefused(Exception):
    """The cluster does not store this batch, for what is in it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ProducerLost(Exception):
    """The producer can send no more; what was under way may be stored or not."""


class Producer:
    """One session with the cluster; a context manager, connected on entry."""

    def __init__(self, kafka: KafkaSettings) -> None:
        """Needs a running event loop."""
        self._kafka = kafka
        self.n_partitions: dict[str, int] = {}
        """Of each topic, without prefix; does not change while the session lasts."""
        self._producer: AIOKafkaProducer | None = None

    async def __aenter__(self) -> "Producer":
        """
        Connect.

        Raises:
            KafkaAway, KafkaRefused, TopicsMissing: not now.
            KafkaSettingsWrong: never with these settings.
        """
        prefix = self._kafka.topic_prefix
        async with opened(self._kafka) as admin:
            cluster = await admin.look([prefix + topic for topic in SENT])
        if missing := [prefix + topic for topic in SENT if prefix + topic not in cluster.topics]:
            raise TopicsMissing(missing)
        self.n_partitions = {topic: cluster.topics[prefix + topic].n_partitions for topic in SENT}
        producer = AIOKafkaProducer(
            **arguments(self._kafka),
            client_id="gnomon-shipper",
            enable_idempotence=True,
            acks="all",
            compression_type=COMPRESSION,
            max_batch_size=BATCH_BYTES,
            request_timeout_ms=int(REQUEST_SECONDS * 1000),
            metadata_max_age_ms=60_000,
        )
        try:
            await producer.start()
        except errors.KafkaError as error:
            await producer.stop()
            raise _translated(error, self._kafka) from error
        self._producer = producer
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the connections, without waiting for what is under way."""
        assert self._producer is not None
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._producer.stop()
        except (TimeoutError, errors.KafkaError):
            await self._producer.client.close()

    def new_batch(self) -> Any:
        """Return an empty batch: `append(timestamp=, key=, value=)` gives None when it is full."""
        assert self._producer is not None
        return self._producer.create_batch()

    async def send(self, batch: Any, topic: str, partition: int) -> None:
        """
        Return when the batch is stored by as many brokers as the topic asks for; it may take for ever.

        Raises:
            RecordsRefused, ProducerLost, KafkaRefused: see the module's text.
        """
        assert self._producer is not None
        batch.close()
        try:
            await (await self._producer.send_batch(batch, self._kafka.topic_prefix + topic, partition=partition))
        except errors.KafkaError as error:
            reason = _TO_BLAME.get(type(error))
            if reason is not None:
                raise RecordsRefused(reason) from error
            raise _translated(error, self._kafka) from error


def _translated(error: errors.KafkaError, kafka: KafkaSettings) -> Exception:
    """Return ours for theirs."""
    text = f"Kafka at {kafka.bootstrap_servers}: {type(error).__name__}: {error}"
    if isinstance(error, _FORBIDDEN):
        return KafkaRefused(text)
    if isinstance(error, errors.KafkaConnectionError | errors.NodeNotReadyError):
        return KafkaAway(text)
    return ProducerLost(text)
