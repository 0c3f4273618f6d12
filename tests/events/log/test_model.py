"""Any sequence of appends, rolls, restarts and consumption, beside a list in memory."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.events.log import Consumer, LogBehind, Reader, Writer, status
from tests.events.log.conftest import SEGMENT_BYTES, record

MAX_BYTES = 3 * SEGMENT_BYTES

steps = st.one_of(
    st.tuples(st.just("append"), st.sampled_from([0, 1, 83, 84, 85, 500, 968, 984, 985])),
    st.tuples(st.just("read"), st.integers(1, 12)),
    st.tuples(st.just("consume"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["restart", "prepare", "reopen"]), st.just(0)),
)


@dataclass
class Model:
    """The log and what it must hold."""

    path: Path
    accepted: list[bytes] = field(default_factory=list)
    n_dropped: int = 0

    def __post_init__(self) -> None:
        self.writer = Writer(self.path, SEGMENT_BYTES, MAX_BYTES)
        self.reader = Reader(self.path)
        self.consumer = Consumer(self.path, "ingest")

    def take(self, step: str, number: int) -> None:
        """Do one step and compare."""
        match step:
            case "append":
                self.append(number)
            case "read":
                first, records = self.reader.read(limit=number)
                assert records == self.accepted[first : first + len(records)]
                assert records or first == len(self.accepted)
            case "consume":
                self.consumer.set(max(self.consumer.get(), self.reader.seq - number))
            case "restart":
                self.writer.close()
                self.writer = Writer(self.path, SEGMENT_BYTES, MAX_BYTES)
            case "prepare":
                self.writer.prepare_next()
            case "reopen":
                self.reader.close()
                self.reader = Reader(self.path, self.consumer.get())

    def append(self, n_bytes: int) -> None:
        """A record is accepted under the next number, or dropped and counted."""
        data = record(len(self.accepted), n_bytes)
        self.writer._retry_at = 0.0  # as if time had passed since the last failed roll
        seq = self.writer.append(data)
        if seq == -1:
            self.n_dropped += 1
        else:
            assert seq == len(self.accepted)
            self.accepted.append(data)

    def check(self) -> None:
        """Counters, bound, and everything from the oldest record that is there to the end."""
        seen = status(self.path)
        assert (seen.accepted, seen.dropped) == (len(self.accepted), self.n_dropped)
        assert seen.size_bytes <= MAX_BYTES
        assert seen.start <= self.consumer.get()
        reader = Reader(self.path, seen.start)
        found: list[bytes] = []
        while records := reader.read()[1]:
            found += records
        assert found == self.accepted[seen.start :]
        reader.close()
        if seen.start:
            with pytest.raises(LogBehind) as caught:
                Reader(self.path, seen.start - 1)
            assert caught.value.start == seen.start


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=80))
def test_the_log_holds_what_a_list_would(taken: list[tuple[str, int]]) -> None:
    """Whatever the order of steps: same records, same numbers, same counts, and never above its size."""
    with tempfile.TemporaryDirectory() as directory:
        model = Model(Path(directory) / "0")
        for step, number in taken:
            model.take(step, number)
        model.check()
        model.writer.close()
        model.reader.close()
        model.consumer.close()
