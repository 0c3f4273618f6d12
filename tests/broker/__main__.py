"""A broker in the foreground, until Ctrl-C: `python -m tests.broker [--port PORT]`; its data is gone afterwards."""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.broker import jars
from tests.broker.local import LocalBroker


def main() -> int:
    """Return 0 after a stop that was asked for, else what the broker ended with."""
    parser = argparse.ArgumentParser(prog="make kafka", description=__doc__)
    parser.add_argument("--port", type=int, default=9092, help="0 picks a free one (default: 9092)")
    args = parser.parse_args()
    jars.install()
    if why := jars.missing():
        raise SystemExit(f"kafka: {why}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="gnomon-kafka-") as folder:
        broker = LocalBroker(Path(folder) / "broker", port=args.port)
        if broker.is_listening():
            raise SystemExit(f"kafka: somebody listens on {broker.address}; choose another: make kafka ARGS='--port 0'")
        with broker:
            print(f"kafka: ready at {broker.address}", flush=True)
            try:
                return broker.wait()
            except KeyboardInterrupt:
                return 0


if __name__ == "__main__":
    sys.exit(main())
