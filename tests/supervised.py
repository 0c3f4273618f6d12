"""A stand-in for a service under a supervisor, and a supervisor over stand-ins: both are run as child processes."""

import argparse
import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from gnomon.process import die_with_parent
from gnomon.relay import Relay
from gnomon.supervisor import Service, Supervisor


def child(args: argparse.Namespace) -> int:
    """Write a line `NAME WHAT PID` to the diary at each step of life."""
    die_with_parent()

    def note(what: str) -> None:
        with Path(args.diary).open("a") as diary:
            diary.write(f"{args.name} {what} {os.getpid()}\n")

    def stop(*_: object) -> None:
        note("asked")
        if args.stubborn:
            return
        time.sleep(args.linger)
        note("stopped")
        sys.exit(0)

    if args.reloads:
        signal.signal(signal.SIGHUP, lambda *_: note("reloaded"))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    note("started")
    if args.status is not None:
        print("gnomon: this is why", file=sys.stderr)
        return int(args.status)
    if args.flood:
        os.write(2, b"x" * 300_000 + b"\n")
        for number in range(args.flood):
            os.write(2, b"line %d of many that nobody reads %s\n" % (number, b"." * 900))
        note("flooded")
    print(f"gnomon {args.name}: ready at http://127.0.0.1:{os.getpid()}", flush=True)
    while True:
        time.sleep(60)


def supervisor(args: argparse.Namespace) -> int:
    """Run children `NAME[:OPTION…]`; a name that begins with `then-` starts after the child before it."""
    services: list[Service] = []
    for text in args.children:
        name, *options = text.split(",")
        line = [sys.executable, "-m", "tests.supervised", "child", name, args.diary, *options]

        def command(addresses: Mapping[str, str], line: list[str] = line) -> list[str]:
            return line

        services.append(
            Service(
                name,
                command,
                ready=re.compile(r": ready at (?P<address>\S+)"),
                after=(services[-1].name,) if name.startswith("then-") else (),
                is_task="--status=0" in options,
                reloads="--reloads" in options,
                stop_seconds=args.stop_seconds,
            )
        )

    def announce(addresses: Mapping[str, str]) -> None:
        print("all ready:", " ".join(sorted(addresses)), flush=True)

    messages = Relay(2)

    async def run() -> int:
        return await Supervisor(services, messages, announce, startup_seconds=0.5).run()

    try:
        return asyncio.run(run())
    finally:
        messages.flush()


def main() -> int:
    parser = argparse.ArgumentParser()
    roles = parser.add_subparsers(required=True)
    one = roles.add_parser("child")
    one.add_argument("name")
    one.add_argument("diary")
    one.add_argument("--status")
    one.add_argument("--linger", type=float, default=0.0)
    one.add_argument("--stubborn", action="store_true")
    one.add_argument("--reloads", action="store_true")
    one.add_argument("--flood", type=int, default=0)
    one.set_defaults(run=child)
    many = roles.add_parser("supervisor")
    many.add_argument("diary")
    many.add_argument("children", nargs="+")
    many.add_argument("--stop-seconds", type=float, default=10.0)
    many.set_defaults(run=supervisor)
    args = parser.parse_args()
    return int(args.run(args))


if __name__ == "__main__":
    from gnomon.errors import GnomonError

    try:
        sys.exit(main())
    except GnomonError as error:
        print(f"gnomon: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
