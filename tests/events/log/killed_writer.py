"""
The process that test_kill.py kills: appends records as fast as it can and reports each one after `append` returned.

Arguments: log directory, report file, segment bytes, max bytes, whether a helper thread runs (0 or 1). The report is
one 8-byte word, the number of records reported, stored through a shared map: it survives the process as the log does.
"""

import logging
import mmap
import os
import random
import sys

from gnomon.events.log import Upkeep, Writer

_DICE = random.Random(7)
_BYTES = _DICE.randbytes(1 << 20)
_SIZES = [_DICE.choice((_DICE.randrange(400), _DICE.randrange(1_000), _DICE.randrange(3_000))) for _ in range(4093)]
_SIZES[::200] = [_DICE.randrange(30_000, 180_000) for _ in _SIZES[::200]]


def record(seq: int) -> bytes:
    """
    Return the record with this number, the same in every process: 8 bytes to 180 KB, mostly small.

    It must be cheap, so that a kill mostly meets the log and not this.
    """
    start = seq * 7_919 % (len(_BYTES) - 180_000)
    return seq.to_bytes(8, "big") + _BYTES[start : start + _SIZES[seq % len(_SIZES)]]


def main() -> None:
    """Append until killed."""
    path, report, segment_bytes, max_bytes, has_helper = sys.argv[1:]
    fd = os.open(report, os.O_RDWR)
    reported = memoryview(mmap.mmap(fd, 8)).cast("Q")
    writer = Writer(path, int(segment_bytes), int(max_bytes))
    logging.getLogger("gnomon.events.log").addHandler(logging.NullHandler())  # a slow reader's full log is no error
    if int(has_helper):
        Upkeep(writer, sync_seconds=0.003).start()
    while True:
        seq = writer.accepted
        if writer.append(record(seq)) == seq:
            reported[0] = seq + 1


if __name__ == "__main__":
    main()
