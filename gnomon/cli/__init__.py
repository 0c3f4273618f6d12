"""
The command line: one module per sub-command, imported only when it is asked for.

A command module has `add_arguments(parser)` and `run(args) -> int`. Results go to stdout, messages to stderr; exit
status 0, 1 (the answer is no, or it failed), 2 (usage).
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from gnomon import rooms
from gnomon.errors import GnomonError

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("gnomon.cli.demo", "see it work: local nodes, traffic, planted faults, a summary"),
    "up": ("gnomon.cli.up", "run everything embedded, until Ctrl-C"),
    "proxy": ("gnomon.cli.proxy", "the JSON-RPC proxy alone"),
    "shipper": ("gnomon.cli.shipper", "from a proxy's event log to Kafka; `gnomon proxy` starts one"),
    "ingest": ("gnomon.cli.ingest", "the stream processors alone"),
    "api": ("gnomon.cli.api", "the API and the dashboard alone"),
    "alerts": ("gnomon.cli.alerts", "the alert service alone; try, list, silence rules"),
    "clickhouse": ("gnomon.cli.clickhouse", "the embedded ClickHouse alone"),
    "migrate": ("gnomon.cli.migrate", "create or upgrade the ClickHouse schema and the Kafka topics"),
    "compare": ("gnomon.cli.compare", "two endpoints side by side, no proxy between"),
    "diff": ("gnomon.cli.diff", "judge one pair of answers, or many"),
    "query": ("gnomon.cli.query", "named questions and read-only SQL"),
    "reconcile": ("gnomon.cli.reconcile", "is everything that was accepted stored, once?"),
    "dead-letters": ("gnomon.cli.dead_letters", "records that could not be stored: see them, try them again"),
    "rebuild": ("gnomon.cli.rebuild", "build all tables again from the events"),
    "config": ("gnomon.cli.config", "validate or print a configuration"),
}


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """Return the parser; only `command`'s own arguments are filled in, so that start-up imports one module."""
    parser = argparse.ArgumentParser(
        prog="gnomon",
        description="Where do JSON-RPC providers diverge, who is right, and what did paid fallbacks cost?",
        epilog="Start with `gnomon demo`, or `gnomon compare URL_A URL_B`. `gnomon COMMAND --help` has examples.",
    )
    parser.add_argument("--version", action="version", version=f"gnomon {version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module_name, line) in COMMANDS.items():
        if name != command:
            commands.add_parser(name, help=line, add_help=False)
            continue
        module = importlib.import_module(module_name)
        sub = commands.add_parser(
            name, help=line, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return parser


def version() -> str:
    """Return the installed version of the distribution, or "unknown" when it is not installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("gnomon")
    except PackageNotFoundError:
        return "unknown"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((a for a in arguments if not a.startswith("-")), None)
    try:
        rooms.check()
        parser = build_parser(command if command in COMMANDS else None)
        args = parser.parse_args(arguments)
        return int(args.run(args))
    except GnomonError as error:
        print(f"gnomon: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        return 130
