"""
Everything embedded, in the foreground: proxy, ClickHouse, the stream processors, alerts and the API, until Ctrl-C.

  gnomon up --data DIR
  gnomon up --data DIR --config gnomon.yaml

Prints the addresses on stdout when all are ready; what the services print goes to stderr. What dies is started again.
Ctrl-C or SIGTERM finishes what clients asked for and stops all in order; a second one kills. SIGHUP has all of them
read the configuration again; addresses, logs and retention take a restart. Exit status 0 after a stop that was asked
for, 1 when a service cannot start, 2 when the configuration cannot be used.
"""

import argparse
import asyncio
import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gnomon import data_folder
from gnomon.errors import UsageError
from gnomon.process import ALLOCATOR_ENVIRONMENT, die_with_parent

if TYPE_CHECKING:
    from gnomon.config.model import Settings
    from gnomon.supervisor import Service

STOP_SECONDS: Final = 12.0
"""The processors end their batch, ClickHouse drains for 8 s."""
DRAIN_MARGIN_SECONDS: Final = 3.0
_READY: Final = r"^gnomon {name}: ready at (?P<address>https?://\S+)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", metavar="DIR", default="gnomon-data", help="data folder (default: gnomon-data)")
    parser.add_argument("--config", metavar="FILE", default="gnomon.yaml", help="configuration (default: gnomon.yaml)")
    parser.add_argument("--allow-insecure", action="store_true", help="as for `gnomon config validate`")


def run(args: argparse.Namespace) -> int:
    die_with_parent()
    from analytics.embedded.lock import FolderLock
    from gnomon.config.load import load
    from gnomon.relay import Relay
    from gnomon.supervisor import Supervisor

    settings = load(args.config, allow_insecure=args.allow_insecure)
    check(settings, allow_insecure=args.allow_insecure)
    data_dir = Path(args.data).resolve()
    os.umask(0o077)
    data_folder.make(data_dir)
    lock = FolderLock(data_dir, data_dir / "up.lock")
    lock.acquire("gnomon up")
    results, messages = Relay(1), Relay(2)

    def announce(addresses: Mapping[str, str]) -> None:
        for line in ready_text(settings, args.config, data_dir, addresses):
            results.line(line.encode())

    async def supervise() -> int:
        return await Supervisor(services(settings, args, data_dir), messages, announce).run()

    sys.stdout.flush()
    try:
        return asyncio.run(supervise())
    finally:
        results.flush()
        messages.flush()
        lock.release()


def check(settings: "Settings", *, allow_insecure: bool = False) -> None:
    """
    Make sure that every service can use the configuration, before any starts.

    Raises:
        UsageError: one could not.
    """
    from gnomon.cli.api import check as check_api
    from gnomon.cli.clickhouse import listen_address
    from ingest.settings import context

    if settings.gnomon.events.kafka is not None:
        raise UsageError("gnomon.events.kafka: `gnomon up` runs everything embedded, without Kafka; leave it out")
    if settings.gnomon.clickhouse.cluster:
        raise UsageError("gnomon.clickhouse.cluster: the embedded ClickHouse has no cluster; leave it out")
    listen_address(settings.gnomon.clickhouse.url, allow_insecure=allow_insecure)
    context(settings)
    check_api(settings)


def services(settings: "Settings", args: argparse.Namespace, data_dir: Path) -> "list[Service]":
    """Return the children in the order in which they stop."""
    from gnomon.supervisor import Service, command

    common = ["--config", args.config, "--data", str(data_dir), *(["--allow-insecure"] if args.allow_insecure else [])]
    is_any_port = urlsplit(settings.gnomon.clickhouse.url).port == 0

    def again(name: str, port: int, addresses: Mapping[str, str]) -> list[str]:
        """Return the argument that keeps a port that was found, in a service's next life."""
        found = urlsplit(addresses.get(name, "")).port
        return ["--port", str(found)] if found and port == 0 else []

    def proxy(addresses: Mapping[str, str]) -> list[str]:
        return command("proxy", *common, *again("proxy", settings.gnomon.proxy.port, addresses))

    def beside(name: str) -> "Service":
        """A service that is told the port that ClickHouse found, and its next life too."""

        def line(addresses: Mapping[str, str]) -> list[str]:
            found = addresses.get("clickhouse") if is_any_port else None
            more: list[str] = []
            if name == "api":
                more = again("api", settings.gnomon.api.port, addresses)
                more += ["--proxy-url", addresses["proxy"]] if settings.gnomon.proxy.port == 0 else []
            return command(name, *common, *(["--clickhouse-url", found] if found else []), *more)

        return {
            "api": Service(
                "api",
                line,
                # It says itself who is away, but it must know where they are.
                after=(
                    *(("clickhouse",) if is_any_port else ()),
                    *(("proxy",) if settings.gnomon.proxy.port == 0 else ()),
                ),
                ready=re.compile(_READY.format(name="api")),
                reloads=True,
                stop_seconds=settings.gnomon.api.limits.shutdown_seconds + DRAIN_MARGIN_SECONDS,
            ),
            "ingest": Service(
                "ingest",
                line,
                # It waits for the schema by itself, but it must know where.
                after=("clickhouse",) if is_any_port else (),
                ready=re.compile(_READY.format(name="ingest")),
                reloads=True,
                stop_seconds=STOP_SECONDS,
            ),
            "alerts": Service(
                "alerts",
                line,
                after=("migrate",),
                ready=re.compile(_READY.format(name="alerts")),
                reloads=True,
                stop_seconds=STOP_SECONDS,
            ),
            "migrate": Service(
                "migrate",
                lambda addresses: [*line(addresses), "--quiet"],
                after=("clickhouse",),
                is_task=True,
                stop_seconds=5.0,
            ),
            "clickhouse": Service(
                "clickhouse", line, ready=re.compile(_READY.format(name="clickhouse")), stop_seconds=STOP_SECONDS
            ),
        }[name]

    return [
        Service(
            "proxy",
            proxy,
            ready=re.compile(_READY.format(name="proxy")),
            environment=ALLOCATOR_ENVIRONMENT,
            reloads=True,
            stop_seconds=settings.gnomon.proxy.shutdown_seconds + DRAIN_MARGIN_SECONDS,
        ),
        beside("api"),
        beside("migrate"),
        beside("alerts"),
        beside("ingest"),
        beside("clickhouse"),
    ]


def ready_text(settings: "Settings", config: str, data_dir: Path, addresses: Mapping[str, str]) -> list[str]:
    """Return what the user needs to know, in lines."""
    proxy, api, clickhouse = addresses["proxy"], addresses["api"], addresses["clickhouse"]
    lines = ["gnomon up: ready"]
    for project in settings.projects:
        for network in project.networks:
            lines.append(f"  {network.id:<12}  {proxy}/{project.id}/{network.id.replace(':', '/')}")
    lines.append(f"  {'health':<12}  {proxy}/healthcheck   and /metrics")
    lines.append(f"  {'dashboard':<12}  {api}/")
    lines.append(f"  {'API':<12}  {api}/v1   {api}/openapi.json lists it")
    lines.append(f"  {'SQL':<12}  {clickhouse}   curl '{clickhouse}/?query=SELECT+count()+FROM+gnomon.requests'")
    if urlsplit(settings.gnomon.clickhouse.url).port != 0:
        lines.append(f"  {'questions':<12}  gnomon query --config {shlex.quote(config)} --list")
    lines.append(f"  {'reload':<12}  kill -HUP {os.getpid()}   after a change of {shlex.quote(config)}")
    return [*lines, f"  {'data':<12}  {data_dir}"]
