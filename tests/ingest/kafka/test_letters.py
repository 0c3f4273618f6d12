"""A dead letter on the topic, and how many are too many."""

import asyncio
import json
from base64 import b64decode
from collections.abc import Awaitable

import pytest
from aiokafka.errors import KafkaTimeoutError
from aiokafka.structs import TopicPartition
from faust.exceptions import ProducerSendError

from gnomon.kafka.errors import KafkaAway
from ingest.batch import Poison
from ingest.kafka.letters import MAX_BYTES, Allowance, record
from ingest.kafka.worker import send_letters


def test_a_letter_says_where_and_why_with_the_bytes() -> None:
    """Topic, partition, offset, reason and the record itself; the key keeps a partition's letters in order."""
    key, value = record("p.gnomon.responses.v1", 7, Poison(42, 0, "no_event", "what", b"\x00\xff"))
    letter = json.loads(value)

    assert key == b"p.gnomon.responses.v1/7"
    assert b64decode(letter.pop("bytes_base64")) == b"\x00\xff"
    assert letter == {
        "v": 1, "topic": "p.gnomon.responses.v1", "partition": 7, "offset": 42, "reason": "no_event", "detail": "what",
        "n_bytes": 2,
    }  # fmt: skip


@pytest.mark.parametrize(("n", "travels"), [(MAX_BYTES, True), (MAX_BYTES + 1, False)])
def test_a_long_record_stays_in_the_table(n: int, travels: bool) -> None:
    """The topic's limit for a record is not that of the letter around it."""
    letter = json.loads(record("t", 0, Poison(1, 0, "no_event", "", b"x" * n))[1])

    assert letter["n_bytes"] == n
    assert ("bytes_base64" in letter) is travels


def test_too_many_within_a_minute_are_too_many() -> None:
    """At the limit it goes on, above it stands, after a minute it goes on."""
    allowance = Allowance(10)
    allowance.add(10, 0.0)
    assert not allowance.is_exceeded(0.0)
    allowance.add(1, 30.0)
    assert allowance.is_exceeded(30.0)
    assert allowance.is_exceeded(59.9)
    assert not allowance.is_exceeded(60.0)


def test_no_limit_is_no_limit() -> None:
    """0 lets any number pass."""
    allowance = Allowance(0)
    allowance.add(10**9, 0.0)

    assert not allowance.is_exceeded(0.0)


class Topic:
    """A topic of an app whose broker is away."""

    def __init__(self, error: Exception, *, is_late: bool) -> None:
        self._error, self._is_late = error, is_late

    async def send(self, *, key: bytes, value: bytes) -> Awaitable[None]:
        if not self._is_late:
            raise self._error

        async def fail() -> None:
            raise self._error

        return fail()


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("error", [ProducerSendError("away"), KafkaTimeoutError("away")])
def test_letters_that_cannot_be_sent_are_tried_again(error: Exception, is_late: bool) -> None:
    """Kafka away is Kafka away, whoever says so: the feed waits and comes back to them."""
    poison = [Poison(1, 0, "no_event", "", b"x")]

    with pytest.raises(KafkaAway, match="dead letters of t/0 are not sent"):
        asyncio.run(send_letters(Topic(error, is_late=is_late), TopicPartition("t", 0), poison))
