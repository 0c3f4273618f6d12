"""
The embedded ClickHouse alone, behind ClickHouse's own HTTP protocol.

  gnomon clickhouse --data DIR
  curl 'http://127.0.0.1:8123/?query=SELECT+count()+FROM+gnomon.requests'

Prints one line on stdout when it listens. Reading the views of database `gnomon` needs no credentials; writing takes
the configured ones, else those under DIR/secrets. Exit status 0 after SIGTERM or Ctrl-C, 1 when it
cannot start (a port or a folder that is in use).
"""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from gnomon import data_folder
from gnomon.errors import UsageError
from gnomon.process import die_with_parent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", metavar="DIR", default="gnomon-data", help="data folder (default: gnomon-data)")
    parser.add_argument("--config", metavar="FILE", default="gnomon.yaml", help="configuration (default: gnomon.yaml)")
    parser.add_argument("--clickhouse-url", metavar="URL", help="instead of gnomon.clickhouse.url")
    parser.add_argument("--allow-insecure", action="store_true", help="listen beyond loopback too")


def run(args: argparse.Namespace) -> int:
    die_with_parent()
    from gnomon.config.load import load

    settings = load(args.config, allow_insecure=args.allow_insecure).gnomon.clickhouse
    host, port = listen_address(args.clickhouse_url or settings.url, allow_insecure=args.allow_insecure)
    # The engine takes the zone of the process for columns without one, and shares its cores with the proxy.
    os.environ["TZ"] = "UTC"
    time.tzset()
    os.nice(19)

    from analytics.embedded import credentials
    from analytics.embedded.server import serve

    data_dir = Path(args.data).resolve()
    os.umask(0o077)
    data_folder.make(data_dir)
    writer = credentials.read_or_generate(data_dir, settings.user, settings.password_file)

    def ready(bound_host: str, bound_port: int) -> None:
        shown = f"[{bound_host}]" if ":" in bound_host else bound_host
        print(
            f"gnomon clickhouse: ready at http://{shown}:{bound_port} (data in {data_dir / 'clickhouse'})", flush=True
        )

    asyncio.run(serve(data_dir, host, port, writer, ready))
    # chDB's own threads make a slow and noisy interpreter exit; everything is closed by now.
    sys.stdout.flush()
    os._exit(0)


def listen_address(url: str, *, allow_insecure: bool = False) -> tuple[str, int]:
    """
    Return host and port of `gnomon.clickhouse.url`.

    Args:
        allow_insecure: other machines may read all views, for which no credentials are asked.

    Raises:
        UsageError: no plain http address, or one beyond loopback.
    """
    from gnomon.config.services import is_loopback

    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"gnomon.clickhouse.url {url!r} is no address: {error}") from error
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError(f"gnomon.clickhouse.url {url!r}: the embedded ClickHouse listens on http://HOST:PORT")
    if not allow_insecure and not is_loopback(parts.hostname):
        raise UsageError(
            f"gnomon.clickhouse.url {url!r}: the embedded ClickHouse would let other machines read all without "
            "credentials; listen on 127.0.0.1 (--allow-insecure ignores it)"
        )
    return parts.hostname, 8123 if port is None else port
