"""
The JSON-RPC proxy alone: answers clients, mirrors to shadows, writes every event to its log.

  gnomon proxy --config gnomon.yaml

Needs neither Kafka nor ClickHouse; where `gnomon.events.kafka` is configured, a process beside it ships the log. The
log is at `gnomon.events.log.path`, else DIR/events; when it is full, new events are dropped and counted. SIGTERM
finishes what is under way, then exits. SIGHUP reads the configuration again; one that cannot be used leaves the old one
in force. Exit status 0 after SIGTERM or Ctrl-C, 1 when it cannot serve (a port in use, a log in use).
"""

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from gnomon import logs
from gnomon.process import allow_many_files, die_with_parent, tune_allocator

if TYPE_CHECKING:
    from gnomon.config.model import Settings
    from proxy.shipper.keeper import Keeper

log = logging.getLogger("gnomon.proxy")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", default="gnomon.yaml", help="configuration (default: gnomon.yaml)")
    parser.add_argument("--data", metavar="DIR", default="gnomon-data", help="data folder (default: gnomon-data)")
    parser.add_argument("--port", metavar="PORT", type=int, help="instead of gnomon.proxy.port")
    parser.add_argument("--allow-insecure", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    die_with_parent()
    tune_allocator()
    n_files = allow_many_files()
    import msgspec

    from gnomon.config.control import read_or_generate
    from gnomon.config.load import load
    from proxy.service import serve

    def read() -> "Settings":
        settings = load(args.config, allow_insecure=args.allow_insecure)
        if args.port is None:
            return settings
        listen = msgspec.structs.replace(settings.gnomon.proxy, port=args.port)
        return msgspec.structs.replace(settings, gnomon=msgspec.structs.replace(settings.gnomon, proxy=listen))

    settings = read()
    logs.start(settings.log_level)
    for warning in settings.warnings:
        log.warning("%s", warning)
    limits = settings.gnomon.proxy.limits
    if n_files < limits.max_connections:
        log.warning(
            "only %d files may be open, maxConnections is %d: raise `ulimit -n`", n_files, limits.max_connections
        )
    root = Path(settings.gnomon.events.log.path or Path(args.data) / "events")
    host = settings.gnomon.proxy.host
    shown = f"[{host}]" if ":" in host else host
    scheme = "https" if settings.gnomon.proxy.tls is not None else "http"

    def control(settings: "Settings") -> str:
        return read_or_generate(settings, Path(args.data))

    def announce(port: int) -> None:
        print(f"gnomon proxy: ready at {scheme}://{shown}:{port}", flush=True)

    keeper = shipper(settings, args)
    if keeper is None:
        serve(settings, root / "0", announce=announce, load=read, control=control)
        return 0
    keeper.start()
    try:
        serve(settings, root / "0", announce=announce, load=read, control=control)
    finally:
        keeper.stop()
    return 0


def shipper(settings: "Settings", args: argparse.Namespace) -> "Keeper | None":
    """
    Return what will run the shipper beside the worker; None without Kafka.

    Raises:
        UsageError: the settings of Kafka cannot be used, or its client is not installed.
    """
    kafka = settings.gnomon.events.kafka
    if kafka is None:
        return None
    from gnomon.kafka.client import arguments, require_client
    from gnomon.supervisor import command
    from proxy.shipper.keeper import Keeper

    require_client()
    arguments(kafka)
    insecure = ["--allow-insecure"] if args.allow_insecure else []
    return Keeper(command("shipper", "--config", args.config, "--data", args.data, *insecure))
