"""
Topics by name → their ids. A topic that was deleted and made again has another id, so it is another log to the sink.

aiokafka asks for metadata up to version 5, ids came with version 10: the request is written out here, on its public
building blocks. Nothing is created by asking.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from aiokafka import errors
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

from gnomon.config.model import KafkaSettings
from gnomon.kafka.client import arguments
from gnomon.kafka.errors import KafkaAway, KafkaRefused

TIMEOUT_SECONDS = 10.0
_UUID_BYTES = 16
_API_KEY = 3
_VERSION = 10


class Uuid(AbstractType):  # type: ignore[misc]
    """16 bytes as they are."""

    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        return data.read(_UUID_BYTES)


class MetadataResponse_v10(Response):  # type: ignore[misc]
    """Kafka's message Metadata, version 10."""

    API_KEY = _API_KEY
    API_VERSION = _VERSION
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString("utf-8")),
                ("port", Int32),
                ("rack", CompactString("utf-8")),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("name", CompactString("utf-8")),
                ("topic_id", Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition_index", Int32),
                        ("leader_id", Int32),
                        ("leader_epoch", Int32),
                        ("replica_nodes", CompactArray(Int32)),
                        ("isr_nodes", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class MetadataRequest_v10(RequestStruct):  # type: ignore[misc]
    """Kafka's message Metadata, version 10."""

    FLEXIBLE_VERSION = True
    API_KEY = _API_KEY
    API_VERSION = _VERSION
    RESPONSE_TYPE = MetadataResponse_v10
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(("topic_id", Uuid), ("name", CompactString("utf-8")), ("tags", TaggedFields)),
        ),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class TopicIdRequest(Request[MetadataRequest_v10]):  # type: ignore[misc]
    """Asks about topics without making them."""

    API_KEY = _API_KEY

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def build(self, request_struct_class: Any) -> Any:
        topics: list[tuple[bytes, str, dict[int, bytes]]] = [(bytes(_UUID_BYTES), name, {}) for name in self._names]
        return request_struct_class(topics, False, False, False, {})


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that is there."""

    id: str
    """32 hex digits."""
    n_partitions: int


async def topic_ids(kafka: KafkaSettings, names: Sequence[str]) -> dict[str, Topic]:
    """
    Return which of the topics are there.

    Raises:
        KafkaAway, KafkaRefused: the cluster does not answer, or says no.
        KafkaSettingsWrong: the settings cannot be used.
    """
    client = AIOKafkaClient(**arguments(kafka), request_timeout_ms=int(TIMEOUT_SECONDS * 1000))
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await client.bootstrap()
            answer = await client.send(client.get_random_node(), TopicIdRequest(names))
    except (errors.KafkaConnectionError, errors.NodeNotReadyError, TimeoutError) as error:
        raise KafkaAway(f"no answer from Kafka at {kafka.bootstrap_servers}: {error or 'timeout'}") from error
    except errors.KafkaError as error:
        kind = KafkaAway if error.retriable else KafkaRefused
        raise kind(f"Kafka at {kafka.bootstrap_servers}: {type(error).__name__}: {error}") from error
    finally:
        await client.close()
    found = {}
    for code, name, topic_id, _, partitions, *_ in answer.topics:
        if code == 0:
            found[name] = Topic(topic_id.hex(), len(partitions))
        elif code != errors.UnknownTopicOrPartitionError.errno and not errors.for_code(code).retriable:
            raise KafkaRefused(f"Kafka topic {name}: {errors.for_code(code).__name__}")
    return found
