"""Records go to partitions in order, and a refused one is found by halving."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.events.codec import encode
from gnomon.events.topics import ATTEMPTS, BREAKERS, HEADS, RESPONSES, topic_and_key
from gnomon.kafka.partitions import partition_of
from proxy.shipper.chunk import Queue, build
from proxy.shipper.standin import HEAD_BYTES, stand_in
from tests.events.samples import PROC, SAMPLES

N_PARTITIONS = {RESPONSES: 12, ATTEMPTS: 3, HEADS: 3, BREAKERS: 1}
LOG_ID = bytes(range(16))


def test_each_record_is_in_the_partition_of_its_key() -> None:
    """With its key, its bytes unchanged; the chunk covers them all."""
    records = [encode(event) for event in SAMPLES]
    chunk = build(70, records, N_PARTITIONS, LOG_ID)

    assert (chunk.first, chunk.end, chunk.n_bytes) == (70, 70 + len(records), sum(map(len, records)))
    assert sum(len(queue.records) for queue in chunk.queues.values()) == len(records)
    for event, record in zip(SAMPLES, records, strict=True):
        topic, key = topic_and_key(event)
        place = (topic, partition_of(key.encode(), N_PARTITIONS[topic]))
        assert (key.encode(), record) in chunk.queues[place].records


def test_records_of_one_partition_keep_their_order() -> None:
    """However many partitions there are."""
    records = [b'{"type":"head_update","v":1,"network":"evm:%d","n":%d}' % (n % 7, n) for n in range(500)]
    chunk = build(0, records, N_PARTITIONS, LOG_ID)

    for queue in chunk.queues.values():
        numbers = [json.loads(value)["n"] for _, value in queue.records]
        assert numbers == sorted(numbers)


def test_what_is_no_event_travels_as_it_is() -> None:
    """To the topic whose consumer keeps dead letters, all of one log to one partition."""
    chunk = build(0, [b"noise", b'{"type":"other"}'], N_PARTITIONS, LOG_ID)
    key = LOG_ID.hex().encode()

    assert chunk.n_unroutable == 2
    assert {place: queue.records for place, queue in chunk.queues.items()} == {
        (RESPONSES, partition_of(key, 12)): [(key, b"noise"), (key, b'{"type":"other"}')]
    }


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), max_size=4))))
def test_a_refused_record_is_found_and_replaced(case: tuple[int, set[int]]) -> None:
    """A cluster that refuses some records gets all others in order, and a stand-in in the place of each of those."""
    n, bad = case
    queue = Queue([(b"k", b"%d" % i) for i in range(n)])
    stored: list[bytes] = []
    n_tries = 0
    while not queue.is_done:
        n_tries += 1
        end = queue.n_done + queue.n_most if queue.n_most else len(queue.records)
        batch = [value for _, value in queue.records[queue.n_done : end]]
        assert batch
        if any(not value.startswith(b"{") and int(value) in bad for value in batch):
            blamed = queue.refused(len(batch), "too_large")
            assert (blamed is not None) == (len(batch) == 1)
        else:
            stored += batch
            queue.acknowledged(len(batch))

    assert [i for i, value in enumerate(stored) if value.startswith(b"{")] == sorted(bad)
    assert [value for value in stored if not value.startswith(b"{")] == [b"%d" % i for i in range(n) if i not in bad]
    assert n_tries <= 1 + 14 * (len(bad) + 1) + n // 1


@pytest.mark.parametrize("n_bytes", [0, 1, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 1, 5 << 20])
def test_a_stand_in_is_small_and_says_what_it_stands_for(n_bytes: int) -> None:
    """Size, reason and the beginning; number and time where the record has them."""
    record = encode(SAMPLES[0]) + b"x" * n_bytes
    found = json.loads(stand_in(record, "too_large"))
    event = SAMPLES[0]

    assert (found["event_id"], found["at"]) == (event.event_id, event.at)
    assert event.event_id.startswith(PROC)
    assert (found["type"], found["reason"], found["n_bytes"]) == ("dead_letter", "too_large", len(record))
    assert base64.b64decode(found["head_base64"]) == record[:HEAD_BYTES]


def test_a_stand_in_of_noise_has_no_number() -> None:
    """And no time."""
    found = json.loads(stand_in(b"\x00noise", "refused"))

    assert "event_id" not in found
    assert "at" not in found
