"""Records that follow each other in a log → what each partition gets, in order, until all of it is acknowledged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gnomon.events.topics import RESPONSES
from gnomon.kafka.partitions import partition_of
from proxy.shipper.routing import Unroutable, route
from proxy.shipper.standin import stand_in

Place = tuple[str, int]
"""Topic without prefix, partition."""


@dataclass(slots=True)
class Queue:
    """What one partition gets of a chunk."""

    records: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Key and value."""
    n_done: int = 0
    """The first ones, which are acknowledged."""
    n_most: int = 0
    """Most records of the next batch while a refused one is looked for; 0 = as many as fit."""

    @property
    def is_done(self) -> bool:
        return self.n_done == len(self.records)

    def acknowledged(self, n: int) -> None:
        """Take in that the next `n` are stored."""
        self.n_done += n

    def refused(self, n: int, reason: str) -> bytes | None:
        """
        Take in that a batch of the next `n` was refused for what is in it.

        Returns:
            None when half of it is tried next; else the record that is to blame, and a stand-in has its place now.
        """
        if n > 1:
            self.n_most = n // 2
            return None
        key, record = self.records[self.n_done]
        self.records[self.n_done] = (key, stand_in(record, reason))
        self.n_most = 0
        return record


@dataclass(slots=True)
class Chunk:
    """Records `first` to `end` (not included) of a log."""

    log_id: bytes
    first: int
    end: int
    queues: dict[Place, Queue] = field(default_factory=dict)
    n_bytes: int = 0
    n_unroutable: int = 0

    @property
    def is_done(self) -> bool:
        return all(queue.is_done for queue in self.queues.values())


def build(first: int, records: Sequence[bytes], n_partitions: Mapping[str, int], log_id: bytes) -> Chunk:
    """
    Return the records by partition.

    Args:
        n_partitions: of each topic, without prefix.
        log_id: of the log; in hex the key of records that have none, which a consumer puts to the dead letters.
    """
    chunk = Chunk(log_id, first, first + len(records))
    by_place: dict[Place, list[tuple[bytes, bytes]]] = {}
    n_responses = n_partitions[RESPONSES]
    for record in records:
        try:
            topic, key = route(record)
        except Unroutable:
            chunk.n_unroutable += 1
            topic, key = RESPONSES, log_id.hex().encode()
        n = n_responses if topic is RESPONSES else n_partitions[topic]
        place = (topic, partition_of(key, n))
        if place in by_place:
            by_place[place].append((key, record))
        else:
            by_place[place] = [(key, record)]
    chunk.queues = {place: Queue(found) for place, found in by_place.items()}
    chunk.n_bytes = sum(map(len, records))
    return chunk
