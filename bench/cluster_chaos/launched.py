"""
A `gnomon` command under conditions: `python -m bench.cluster_chaos.launched CLOCK TABLE COMMAND ARGUMENT…`.

CLOCK is a file with the seconds (a double) that are added to what the wall clock says: a day can end in the midst of a
run. TABLE: the process kills itself as soon as an insert into it was answered, which is between this insert and the
next one of the batch; `-`: it does not.
"""

import mmap
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


def shift_clock(file: Path) -> None:
    """Have `time.time` and `time.time_ns` of this process say something else."""
    with file.open("r+b") as opened:
        shift = memoryview(mmap.mmap(opened.fileno(), 8)).cast("d")
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + shift[0]
    time.time_ns = lambda: real_ns() + int(shift[0] * 1e9)


def die_behind(table: str) -> None:
    """Have every sink of this process kill it behind its first insert into a table."""
    from ingest.sink import Sink

    def die(stored: str) -> None:
        if stored == table:
            os.kill(os.getpid(), signal.SIGKILL)

    original = Sink.__init__

    def begin(self: Sink, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **{**kwargs, "after_insert": die})

    Sink.__init__ = begin  # type: ignore[method-assign]


def main() -> int:
    clock, table = Path(sys.argv[1]), sys.argv[2]
    del sys.argv[1:3]
    shift_clock(clock)
    if table != "-":
        die_behind(table)
    from gnomon.cli import main as gnomon

    return gnomon()


if __name__ == "__main__":
    sys.exit(main())
