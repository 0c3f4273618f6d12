"""
What a record costs in the event log, beside a bare `os.write` of the same bytes in the same run.

    python bench/log.py [--seconds N] [--dir DIR]

CPU time of the appending thread, median of alternating rounds. `recycled` appends to segments that were used
before (the steady state of a log with a consumer), `fresh` to new files. The reader checks every checksum.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable

from gnomon.events.log import Consumer, Reader, Writer, status

SIZES = (600, 1_200, 10_000, 190_000)
ROUND_BYTES = 24 << 20
SEGMENT_BYTES = 64 << 20


def appends(writer: Writer, data: bytes, n: int) -> float:
    """Return CPU seconds of `n` appends, each accepted."""
    append = writer.append
    before = writer.dropped
    start = time.thread_time()
    for _ in range(n):
        append(data)
    taken = time.thread_time() - start
    if writer.dropped != before:
        raise SystemExit("the log was full: the figures would be those of dropping")
    return taken


def writes(fd: int, data: bytes, n: int) -> float:
    """Return CPU seconds of `n` bare writes into a file that is used again."""
    os.lseek(fd, 0, os.SEEK_SET)
    write = os.write
    start = time.thread_time()
    for _ in range(n):
        write(fd, data)
    return time.thread_time() - start


class Recycled:
    """A log with a consumer that is always done: from the third segment on every one is used again."""

    def __init__(self, path: str) -> None:
        self.writer = Writer(path, SEGMENT_BYTES, 3 * SEGMENT_BYTES)
        self.consumer = Consumer(path, "bench")
        while status(path).start == 0:
            self.append(bytes(100_000), 100)

    def append(self, data: bytes, n: int) -> float:
        """Time one round, the next segment made ahead as the helper thread would."""
        self.consumer.set(self.writer.accepted)
        self.writer.prepare_next()
        return appends(self.writer, data, n)


def fresh(path: str, data: bytes, n: int) -> float:
    """Time one round in a new log whose segments were never used."""
    directory = os.path.join(path, "fresh")
    writer = Writer(directory, SEGMENT_BYTES, 3 * SEGMENT_BYTES)
    taken = appends(writer, data, n)
    writer.close()
    shutil.rmtree(directory)
    return taken


def reads(path: str, data: bytes, n: int) -> float:
    """Return CPU seconds of reading a round's records."""
    directory = os.path.join(path, "read")
    writer = Writer(directory, SEGMENT_BYTES, 3 * SEGMENT_BYTES)
    appends(writer, data, n)
    reader = Reader(directory)
    found = 0
    start = time.thread_time()
    while records := reader.read()[1]:
        found += len(records)
    taken = time.thread_time() - start
    if found != n:
        raise SystemExit(f"{n} records written, {found} read")
    reader.close()
    writer.close()
    shutil.rmtree(directory)
    return taken


def main() -> None:
    """Print one line a size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="about how long to measure (default 20)")
    parser.add_argument("--dir", default=None, help="where the logs lie while measuring (default: a temporary one)")
    args = parser.parse_args()
    path = tempfile.mkdtemp(prefix="gnomon-bench-log-", dir=args.dir)
    try:
        measure(path, args.seconds)
    finally:
        shutil.rmtree(path)


def measure(path: str, seconds: float) -> None:
    """Run the rounds in turn, so that a change of the machine's share meets all of them."""
    recycled = Recycled(os.path.join(path, "recycled"))
    fd = os.open(os.path.join(path, "bare"), os.O_RDWR | os.O_CREAT, 0o600)
    print(f"{'record':>9} {'os.write':>12} {'recycled':>12} {'ratio':>6} {'fresh':>12} {'ratio':>6} {'reader':>30}")
    for size in SIZES:
        data = os.urandom(size)
        n = ROUND_BYTES // size
        kinds: dict[str, Callable[[], float]] = {
            "bare": lambda data=data, n=n: writes(fd, data, n),  # type: ignore[misc]
            "recycled": lambda data=data, n=n: recycled.append(data, n),  # type: ignore[misc]
            "fresh": lambda data=data, n=n: fresh(path, data, n),  # type: ignore[misc]
            "reader": lambda data=data, n=n: reads(path, data, n),  # type: ignore[misc]
        }
        taken: dict[str, list[float]] = {kind: [] for kind in kinds}
        deadline = time.monotonic() + seconds / len(SIZES)
        while time.monotonic() < deadline or len(taken["bare"]) < 3:
            for kind, run in kinds.items():
                taken[kind].append(run() / n * 1e6)
        us = {kind: statistics.median(values) for kind, values in taken.items()}
        print(
            f"{size:>7} B {us['bare']:>9.2f} us {us['recycled']:>9.2f} us {us['recycled'] / us['bare']:>6.2f}"
            f" {us['fresh']:>9.2f} us {us['fresh'] / us['bare']:>6.2f}"
            f" {1e3 / us['reader']:>9.0f} k records/s {size / us['reader'] / 1e3:>5.2f} GB/s",
            flush=True,
        )
    recycled.writer.close()
    os.close(fd)


if __name__ == "__main__":
    main()
