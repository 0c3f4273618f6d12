"""
Look at the topics of a cluster, and make those that are missing.

A client that asks for a topic by name makes it, with the cluster's defaults, where the cluster allows it (as Kafka does
by default). So nothing here or elsewhere in Gnomon asks for a topic that the list of all has not named.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from aiokafka import errors
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from gnomon.config.model import KafkaSettings
from gnomon.kafka.client import arguments
from gnomon.kafka.errors import KafkaAway, KafkaRefused
from gnomon.kafka.hearsay import listening
from gnomon.kafka.topics import Found, Wanted, replicas

TIMEOUT_SECONDS: Final = 10.0
_EXISTS: Final = errors.TopicAlreadyExistsError.errno
_WORDS: Final = {
    errors.TopicAuthorizationFailedError.errno: "not allowed",
    errors.ClusterAuthorizationFailedError.errno: "not allowed",
    errors.InvalidReplicationFactorError.errno: "not as many brokers",
    errors.PolicyViolationError.errno: "against the cluster's policy",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a cluster has of our topics."""

    n_brokers: int
    topics: dict[str, Found]
    """Name → how it is, of those asked for that are there."""


class Admin:
    """A connection for looking and making; `opened` gives one."""

    def __init__(self, client: AIOKafkaAdminClient) -> None:
        self._client = client

    async def look(self, names: Sequence[str]) -> Cluster:
        """
        Return which of the topics are there, and how.

        Raises:
            KafkaAway, KafkaRefused: the cluster does not answer, or says no.
        """
        there = sorted(set(await self._client.list_topics()) & set(names))
        described = await self._client.describe_topics(there) if there else []
        settings = await self._settings(there)
        brokers = (await self._client.describe_cluster())["brokers"]
        return Cluster(
            len(brokers),
            {
                topic["topic"]: Found(len(topic["partitions"]), settings.get(topic["topic"], {}))
                for topic in described
                if not topic["error_code"]
            },
        )

    async def make(self, topics: Sequence[Wanted], n_brokers: int) -> list[str]:
        """
        Make topics; return the names of those that were not there already.

        Raises:
            KafkaAway, KafkaRefused: the cluster does not answer, or says no.
        """
        if not topics:
            return []
        n_replicas = replicas(n_brokers)
        answer = await self._client.create_topics(
            [NewTopic(t.name, t.n_partitions, n_replicas, topic_configs=t.settings(n_replicas)) for t in topics],
            timeout_ms=int(TIMEOUT_SECONDS * 1000),
        )
        made = []
        for name, code, *rest in answer.topic_errors:
            if code == 0:
                made.append(name)
            elif code != _EXISTS:
                why = (rest[0] if rest else "") or _WORDS.get(code) or errors.for_code(code).__name__
                raise KafkaRefused(f"cannot make the Kafka topic {name}: {why}")
        return made

    async def _settings(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the settings of topics; of those that we may not ask about, none."""
        if not names:
            return {}
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
        found = {}
        for answer in await self._client.describe_configs(resources):
            for code, _, _, name, entries in answer.resources:
                if code == 0:
                    found[name] = {entry[0]: entry[1] for entry in entries}
        return found


@asynccontextmanager
async def opened(kafka: KafkaSettings) -> AsyncIterator[Admin]:
    """
    Connect, and translate what the client raises within.

    Raises:
        KafkaAway, KafkaRefused: the cluster does not answer, or says no.
        KafkaSettingsWrong: the settings cannot be used.
    """
    client = AIOKafkaAdminClient(**arguments(kafka), request_timeout_ms=int(TIMEOUT_SECONDS * 1000))
    with listening() as heard:
        try:
            await client.start()
            yield Admin(client)
        except (errors.KafkaConnectionError, errors.NodeNotReadyError, TimeoutError) as error:
            why = heard.last or str(error) or "timeout"
            raise KafkaAway(f"no answer from Kafka at {kafka.bootstrap_servers}: {why}") from error
        except errors.KafkaError as error:
            kind = KafkaAway if error.retriable else KafkaRefused
            raise kind(f"Kafka at {kafka.bootstrap_servers}: {type(error).__name__}: {error}") from error
        finally:
            await client.close()
