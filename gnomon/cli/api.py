"""
The API and the dashboard: what is stored, over HTTP.

  gnomon api --config gnomon.yaml
  curl -s 'http://127.0.0.1:8080/v1/spend?from=now-24h'

/docs lists every route. Without `gnomon.api.tokens` it serves this machine only, as role `sql`. SIGHUP reads
the configuration again; one that cannot be used leaves the old one in force. SIGTERM finishes what is under way: exit
status 0; 1 when it cannot listen, 2 when the configuration cannot be used.
"""

import argparse
import asyncio
import importlib.util
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from gnomon import logs
from gnomon.errors import UsageError
from gnomon.process import allow_many_files, die_with_parent

if TYPE_CHECKING:
    from api.state import InForce
    from gnomon.config.model import Settings

log = logging.getLogger("gnomon.api")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", default="gnomon.yaml", help="configuration (default: gnomon.yaml)")
    parser.add_argument("--data", metavar="DIR", default="gnomon-data", help="data folder (default: gnomon-data)")
    parser.add_argument("--port", metavar="PORT", type=int, help="instead of gnomon.api.port")
    parser.add_argument("--proxy-url", metavar="URL", default="", help="where the proxy is, if its port is left open")
    parser.add_argument("--clickhouse-url", metavar="URL", help="instead of gnomon.clickhouse.url")
    parser.add_argument("--allow-insecure", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    die_with_parent()
    allow_many_files()
    require_packages()
    import uvloop

    from api import serving

    value = read(args)
    logs.start(value.settings.log_level)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    api = value.api
    shown = f"[{api.host}]" if ":" in api.host else api.host
    scheme = "https" if api.tls is not None else "http"

    def announce(port: int) -> None:
        print(f"gnomon api: ready at {scheme}://{shown}:{port}", flush=True)

    services = serving.services_for(value, Path(args.data), args.proxy_url)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serving.serve(services, serving.bind(api), announce, lambda: read(args)))
    finally:
        services.reader.close()
    return 0


def require_packages() -> None:
    """
    Make sure that what the API stands on is installed.

    Raises:
        UsageError: with what is missing.
    """
    for name in ("fastapi", "uvicorn", "uvloop", "httptools", "jinja2"):
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"`gnomon api` needs the package {name}: pip install 'gnomon[api]'")


def check(settings: "Settings") -> None:
    """
    Make sure that the API can use a configuration, before anything starts.

    Raises:
        UsageError: a package is missing, or a file that the configuration names cannot be used.
    """
    require_packages()
    from api.state import in_force

    in_force(settings)


def read(args: argparse.Namespace) -> "InForce":
    """
    Return what the configuration puts in force, the command line's words in it.

    Raises:
        UsageError: it cannot be used.
    """
    from msgspec.structs import replace

    from api.state import in_force
    from gnomon.config.load import load

    settings = load(args.config, allow_insecure=args.allow_insecure)
    own = settings.gnomon
    if args.port is not None:
        own = replace(own, api=replace(own.api, port=args.port))
    if args.clickhouse_url:
        own = replace(own, clickhouse=replace(own.clickhouse, url=args.clickhouse_url))
    return in_force(replace(settings, gnomon=own))
