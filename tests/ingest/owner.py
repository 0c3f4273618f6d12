"""
An owner of one log's key, to be killed and paused: `python -m tests.ingest.owner URL USER PASSWORD LOG SEED UNTIL`.

Stores the log in batches of random sizes until `UNTIL` is written down as stored; exits 0 then, 7 when fenced.
"""

import random
import sys
import time

from gnomon.config.model import Settings
from gnomon.events.log import Reader
from ingest.batch import decode
from ingest.engine import Engine
from ingest.errors import EngineAway, EngineRefused, Fenced
from ingest.rows import rows_of
from ingest.settings import context
from ingest.sink import Sink

FENCED = 7


def main(url: str, user: str, password: str, path: str, seed: str, until: str) -> int:
    chance = random.Random(int(seed))
    steps = context(Settings())
    engine = Engine(url, user, password, timeout_seconds=chance.choice([0.3, 5.0, 60.0]))
    size = chance.randint(40, 600)
    reader = None
    n = 0
    while True:
        try:
            if reader is None:
                log_id = Reader(path).log_id.hex()
                sink = Sink(engine, log_id, "log", 0)
                reader = Reader(path, sink.take_over())
            first, records = reader.read(size)
            if records:
                sink.store(rows_of(decode(first, records), steps, time.time_ns() // 1_000_000).rows)
                n += 1
            if n % 3 == 0 or not records:
                sink.progress()
            if sink.stored_next >= int(until):
                return 0
        except Fenced:
            return FENCED
        except (EngineAway, EngineRefused):
            reader = None
            time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
