"""
See it work: local nodes, traffic, planted faults, and a summary of what was found.

    gnomon demo
    gnomon demo --seconds 60 --data /tmp/gnomon-demo
    gnomon demo --keep          everything keeps running after the summary, for a look around
    gnomon demo --nodes         nothing but its nodes, at ports 8545 to 8547, for a Gnomon of your own
    gnomon demo --load http://127.0.0.1:4000/main/evm/31337
                                nothing but its calls, to a proxy in front of nodes that are simulated

Anvil is the primary, hardhat (or ganache) the shadow, a second anvil the priced fallback; npm installs them once into
the user's cache. Without npm a built-in simulated chain takes their place. Exit status 0 when what was planted was
found, 1 when not.
"""

import argparse
import asyncio
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

from gnomon import data_folder
from gnomon.cli.progress import StatusLine
from gnomon.demo.run import CALLS_PER_SECOND, Options, Talk, demo
from gnomon.demo.standing_in import FIRST_PORT
from gnomon.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `gnomon demo`."""
    parser.add_argument(
        "--seconds", type=_seconds, default=30.0, metavar="N", help="length of the traffic (default 30)"
    )
    parser.add_argument("--data", metavar="DIR", help="data folder (default ./gnomon-data/demo-TIME)")
    parser.add_argument("--simulated", action="store_true", help="use the built-in simulated chain, not real nodes")
    parser.add_argument("--keep", action="store_true", help="keep everything running after the summary, until Ctrl-C")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--nodes", action="store_true", help="run the nodes and nothing else, until Ctrl-C")
    parts.add_argument("--load", metavar="URL", help="call this proxy and do nothing else, until Ctrl-C")
    parser.add_argument("--secret-file", metavar="FILE", help="--load: file with a client's secret")
    parser.add_argument(
        "--node-port",
        type=_port,
        metavar="PORT",
        default=FIRST_PORT,
        help=f"--nodes: of the primary; shadow and fallback have the next two (default {FIRST_PORT})",
    )
    parser.add_argument(
        "--node-host", metavar="HOST", default="127.0.0.1", help="--nodes: where they listen (default 127.0.0.1)"
    )
    parser.add_argument(
        "--rate",
        type=_seconds,
        default=CALLS_PER_SECOND,
        metavar="R",
        help=f"calls a second (default {CALLS_PER_SECOND:.0f})",
    )


def run(args: argparse.Namespace) -> int:
    """Run the demonstration; return 1 when it did not show what it should, 130 after Ctrl-C."""
    if args.load is not None:
        return load(args.load, args.secret_file, args.rate)
    folder = Path(args.data or time.strftime("gnomon-data/demo-%Y%m%dT%H%M%S")).absolute()
    options = Options(
        args.seconds,
        folder,
        simulated=args.simulated,
        keep=args.keep,
        calls_per_second=args.rate,
        node_port=args.node_port if args.nodes else None,
        node_host=args.node_host,
    )
    data_folder.make(folder)
    status = StatusLine(sys.stderr)
    talk = Talk(say=status.say, update=status.update, result=lambda text: _print(status, text))
    for library in ("clickhouse_connect", "urllib3"):  # what they would print is in the errors that we show
        logging.getLogger(library).setLevel(logging.CRITICAL)
    status.say(f"data goes to {folder}")
    try:
        missing = asyncio.run(_interruptible(options, talk))
    except (KeyboardInterrupt, asyncio.CancelledError):
        status.close()
        status.say(f"stopped; nothing is running, the data lies in {folder}")
        return 130
    finally:
        status.close()
    status.say(f"nothing is running any more; the data lies in {folder}")
    for reason in missing:
        print(f"gnomon demo: {reason}", file=sys.stderr)
    return 1 if missing else 0


def load(url: str, secret_file: str | None, per_second: float) -> int:
    """
    Call a proxy until a signal.

    Raises:
        UsageError: the secret cannot be read.
    """
    from gnomon.demo import calling

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        secret = Path(secret_file).read_text("utf-8").strip() if secret_file else ""
    except OSError as error:
        raise UsageError(f"--secret-file {secret_file}: {error.strerror}") from error
    traffic = calling.load(url, secret, per_second, stop, lambda line: print(f"gnomon demo: {line}", flush=True))
    print(f"gnomon demo: {traffic.calls} calls, {traffic.failed} failed", flush=True)
    return 0


def _print(status: StatusLine, text: str) -> None:
    status.close()
    print(text, flush=True)


async def _interruptible(options: Options, talk: Talk) -> list[str]:
    """Run with signals that end everything in order; a second signal ends at once, by the kernel."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    n_signals = 0

    def interrupted() -> None:
        nonlocal n_signals
        n_signals += 1
        if n_signals > 1:
            os._exit(130)  # every child has asked the kernel to end with us
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, interrupted)
    return await demo(options, talk)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65_534:
        raise argparse.ArgumentTypeError(f"{text!r} is no port that two more can follow")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above zero")
    return value
