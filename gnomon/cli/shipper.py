"""
The shipper alone: from the event log of a proxy to Kafka.

  gnomon shipper --config gnomon.yaml --data gnomon-data

`gnomon proxy` starts one by itself where Kafka is configured; by hand it empties the log of a proxy that is no more.
SIGTERM: what is in the log is still sent, for at most 8 s; the rest stays there. Exit status 0 after that.
"""

import argparse
import asyncio
import gc
from pathlib import Path

from gnomon import logs
from gnomon.errors import UsageError
from gnomon.process import die_with_parent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", default="gnomon.yaml", help="configuration (default: gnomon.yaml)")
    parser.add_argument("--data", metavar="DIR", default="gnomon-data", help="data folder (default: gnomon-data)")
    parser.add_argument("--allow-insecure", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    die_with_parent()
    from gnomon.config.load import load
    from gnomon.kafka.client import arguments, require_client

    settings = load(args.config, allow_insecure=args.allow_insecure)
    kafka = settings.gnomon.events.kafka
    if kafka is None:
        raise UsageError("gnomon.events.kafka is not configured: there is nowhere to ship to")
    require_client()
    from gnomon.kafka.hearsay import keep_to_ourselves
    from proxy.shipper.service import ship

    arguments(kafka)
    logs.start(settings.log_level)
    keep_to_ourselves()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
    asyncio.run(ship(Path(settings.gnomon.events.log.path or Path(args.data) / "events"), kafka))
    return 0
