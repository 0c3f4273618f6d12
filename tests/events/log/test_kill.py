"""
A writer is killed at any instruction, again and again: no reported record is lost, none is torn, none appears twice.

`pytest -m deep` does it 300 times.
"""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gnomon.events.log import Consumer, LogMissing, Reader, Writer, status
from gnomon.events.log.segment import list_bases
from tests.events.log.killed_writer import record


@dataclass
class Witness:
    """Reads the log while writers die, as a consumer that is restarted now and then, and checks each record."""

    path: Path
    report: Path
    dice: random.Random
    segment_bytes: int
    max_bytes: int
    n_read: int = 0
    n_unreported: int = 0
    reader: Reader | None = None
    consumer: Consumer | None = None
    segments: set[int] = field(default_factory=set)

    def reported(self) -> int:
        """Return how many records the writers have reported."""
        return int.from_bytes(self.report.read_bytes(), sys.byteorder)

    def follow(self) -> int:
        """Read on: each record must be the one of its number, and the next one wanted. Return how many there were."""
        if self.reader is None or self.dice.random() < 0.02:
            self._restart()
        if self.reader is None or self.consumer is None:
            return 0
        first, records = self.reader.read(limit=self.dice.randrange(1, 3_000))
        assert first == self.n_read
        for seq, found in enumerate(records, first):
            assert found == record(seq), f"record {seq} is another"
        self.n_read += len(records)
        if self.dice.random() < 0.8:
            self.consumer.set(self.n_read)
        return len(records)

    def _restart(self) -> None:
        """Begin again where the consumer's position is, as after a death of the consumer."""
        try:
            self.consumer = Consumer(self.path, "witness")
            self.reader = Reader(self.path, self.consumer.get())
        except LogMissing:
            return
        self.n_read = self.reader.seq

    def finish(self) -> None:
        """Read to the end of a log whose writer is dead: all that was reported, one more at most."""
        while self.follow():
            pass
        unreported = self.n_read - self.reported()
        assert unreported in (0, 1), f"{self.reported()} records were reported, {self.n_read} read"
        self.n_unreported += unreported
        if unreported:
            self.report.write_bytes(self.n_read.to_bytes(8, sys.byteorder))


def run_and_kill(witness: Witness, has_helper: bool) -> None:
    """Start a writer, let it work for a moment, kill it, read to the end."""
    command = [sys.executable, "-m", "tests.events.log.killed_writer", str(witness.path), str(witness.report)]
    command += [str(witness.segment_bytes), str(witness.max_bytes), str(int(has_helper))]
    before = witness.reported()
    errors = witness.path.parent / "errors"
    with open(errors, "wb") as stderr, subprocess.Popen(command, stderr=stderr) as writer:
        try:
            # A tenth dies on the way up: while the lock is taken, the log opened, the last segment checked.
            is_early = witness.dice.random() < 0.1
            deadline = time.monotonic() + (witness.dice.uniform(0, 0.3) if is_early else 20)
            while time.monotonic() < deadline and witness.reported() == before:
                assert writer.poll() is None, "the writer died by itself"
                witness.follow()  # a log left full goes on only when its consumer does
                time.sleep(0.001)
            assert is_early or witness.reported() > before, "the writer does not write"
            deadline = time.monotonic() + witness.dice.uniform(0, 0.15)
            while time.monotonic() < deadline:
                witness.follow()
                witness.segments.update(list_bases(str(witness.path)))
        finally:
            writer.kill()
    assert writer.returncode == -signal.SIGKILL
    assert errors.read_text() == ""
    witness.finish()


@pytest.mark.parametrize(
    "n_kills", [30, pytest.param(300, marks=[pytest.mark.deep, pytest.mark.timeout(900)])], ids=["30", "300"]
)
def test_no_reported_record_is_lost_when_writers_are_killed(tmp_path: Path, n_kills: int) -> None:
    """Every reported record is read, in order, whole; at most the one in flight is there beside them."""
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")  # shown when it fails
    segment_bytes = 512 << 10
    witness = Witness(tmp_path / "0", tmp_path / "report", random.Random(seed), segment_bytes, 8 * segment_bytes)
    witness.report.write_bytes(bytes(8))
    for n in range(n_kills):
        run_and_kill(witness, has_helper=n % 2 == 1)
    seen = status(witness.path)
    print(
        f"{n_kills} kills: {seen.accepted} records, {witness.n_unreported} unreported, {len(witness.segments)} segments"
        f" seen, {seen.n_segments} left, {seen.dropped} dropped"
    )

    assert seen.accepted == witness.n_read
    assert seen.size_bytes <= witness.max_bytes
    assert len(witness.segments) > seen.n_segments, "nothing was recycled: the test shows less than it says"
    writer = Writer(witness.path, segment_bytes, 8 * segment_bytes)
    assert writer.append(b"after all") == seen.accepted
    writer.close()


def test_the_witness_sees_a_lost_record(tmp_path: Path) -> None:
    """The check itself can fail: a record reported and not there."""
    witness = Witness(tmp_path / "0", tmp_path / "report", random.Random(1), 256 << 10, 1 << 20)
    writer = Writer(witness.path, witness.segment_bytes, witness.max_bytes)
    for seq in range(5):
        writer.append(record(seq))
    writer.close()
    witness.report.write_bytes((6).to_bytes(8, sys.byteorder))

    with pytest.raises(AssertionError, match="6 records were reported, 5 read"):
        witness.finish()


def test_the_witness_sees_another_record(tmp_path: Path) -> None:
    """The check itself can fail: a whole record with a right checksum that is not the one of its number."""
    witness = Witness(tmp_path / "0", tmp_path / "report", random.Random(1), 256 << 10, 1 << 20)
    writer = Writer(witness.path, witness.segment_bytes, witness.max_bytes)
    writer.append(record(1))
    writer.close()

    with pytest.raises(AssertionError, match="record 0 is another"):
        witness.follow()
