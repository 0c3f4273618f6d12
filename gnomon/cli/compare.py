"""
Two endpoints side by side: both get the same questions, and each pair of answers is judged.

    gnomon compare http://127.0.0.1:8545 https://rpc.example.org/KEY
    gnomon compare URL_A URL_B --seconds 20 --method eth_getLogs --method eth_getBlockReceipts
    gnomon compare URL_A URL_B --requests questions.jsonl --mask 'eth_getLogs=*.blockTimestamp' --format json
    gnomon compare URL_A URL_B --requests recorded.har --format md > report.md

Without --requests the chain asks about itself, at heights that are final at both: blocks, transactions, receipts,
logs, state, calls, and traces where served. Exit status 1 when they differ on final data, 0 when they do not.
"""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from gnomon.cli.progress import StatusLine
from gnomon.compare import masks
from gnomon.errors import UsageError
from gnomon.sidebyside import requests, sampling
from gnomon.sidebyside.client import Pace
from gnomon.sidebyside.errors import RequestsUnreadable
from gnomon.sidebyside.heads import MARGIN_BLOCKS
from gnomon.sidebyside.markdown import markdown
from gnomon.sidebyside.report import Report, render
from gnomon.sidebyside.run import Options, compare


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `gnomon compare`."""
    parser.add_argument("primary", metavar="PRIMARY_URL", help="the endpoint that is taken as the measure")
    parser.add_argument("shadow", metavar="SHADOW_URL", help="the endpoint that is compared with it")
    parser.add_argument("--requests", metavar="FILE", help="requests to ask: JSON lines, HAR or GoReplay; - for stdin")
    parser.add_argument("--seconds", type=_positive, default=60.0, metavar="N", help="stop after so long (default 60)")
    parser.add_argument("--from-block", type=_height, metavar="A", help="first block to sample")
    parser.add_argument("--to-block", type=_height, metavar="B", help="last block to sample")
    parser.add_argument(
        "--method", action="append", default=[], metavar="M", help="compare this method only; repeatable"
    )
    parser.add_argument(
        "--mask",
        action="append",
        default=[],
        metavar="METHOD=PATH",
        help="leave a path out of the comparison, from the root of the result: 'eth_getLogs=*.blockTimestamp'",
    )
    parser.add_argument("--no-presets", action="store_true", help="do not apply the masks of the chain's family")
    parser.add_argument("--rate", type=_positive, default=20.0, metavar="R", help="questions a second (default 20)")
    parser.add_argument("--concurrency", type=_count, default=4, metavar="N", help="questions at once (default 4)")
    parser.add_argument(
        "--timeout", type=_positive, default=30.0, metavar="S", help="seconds for one answer (default 30)"
    )
    parser.add_argument(
        "--margin",
        type=_height,
        default=MARGIN_BLOCKS,
        metavar="N",
        help=f"blocks below the newest that count as final where none is served (default {MARGIN_BLOCKS})",
    )
    parser.add_argument(
        "--format", choices=("table", "json", "md"), default="table", help="md: to paste into a bug report"
    )


def run(args: argparse.Namespace) -> int:
    """Compare; print the report; return 1 when the endpoints differ on final data."""
    for url in (args.primary, args.shadow):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{url!r} is no HTTP address; write it as http://host:port/path")
    options = Options(
        seconds=args.seconds,
        first=args.from_block,
        last=args.to_block,
        methods=frozenset(args.method),
        masks=masks_by_method(args.mask),
        has_presets=not args.no_presets,
        requests=_read_requests(args),
        pace=Pace(per_second=args.rate, concurrency=args.concurrency, timeout_seconds=args.timeout),
        margin=args.margin,
    )
    report, was_stopped = asyncio.run(_compare(args.primary, args.shadow, options))
    if args.format == "json":
        print(json.dumps(report.as_json(), indent=2, ensure_ascii=False))
    elif args.format == "md":
        print(markdown(report))
    else:
        print(render(report))
    if was_stopped:
        return 130
    return 1 if report.n_final_mismatches or report.ended_by or not report.n_compared else 0


async def _compare(primary: str, shadow: str, options: Options) -> tuple[Report, bool]:
    """Return the report, and whether Ctrl-C ended the run; a second Ctrl-C ends it at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def interrupted() -> None:
        stop.set()
        loop.remove_signal_handler(signal.SIGINT)

    with suppress(NotImplementedError, ValueError):  # not the main thread, or no Unix
        loop.add_signal_handler(signal.SIGINT, interrupted)
    status = StatusLine(sys.stderr)
    try:
        report = await compare(
            primary,
            shadow,
            options,
            say=status.say,
            show=lambda report: status.update(
                f"{report.requests} questions, {report.outcomes['mismatch']} mismatches, "
                f"{len(report.findings)} kinds of difference"
            ),
            stop=stop,
        )
    finally:
        status.close()
    return report, stop.is_set()


def masks_by_method(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """
    Return the masks of each method.

    Raises:
        UsageError: a mask without its method, or a path that cannot be compiled (the message points into it).
    """
    by_method: dict[str, tuple[str, ...]] = {}
    for text in texts:
        method, equals, path = text.partition("=")
        if not method or not equals or not path:
            raise UsageError(f"--mask {text!r}: write METHOD=PATH, as in eth_getLogs=*.blockTimestamp")
        by_method[method] = (*by_method.get(method, ()), path)
    for paths in by_method.values():
        masks.compile(paths)
    return by_method


def _read_requests(args: argparse.Namespace) -> requests.Requests | None:
    if args.requests is None:
        unknown = sorted(set(args.method) - set(sampling.METHODS))
        if unknown:
            raise UsageError(
                f"--method {unknown[0]}: a sample of the chain has no such question; it has "
                f"{', '.join(sampling.METHODS)}. Any method can be asked from a file (--requests)"
            )
        return None
    if args.from_block is not None or args.to_block is not None:
        raise UsageError("--from-block and --to-block belong to sampling; a file brings its own questions")
    try:
        content = sys.stdin.buffer.read() if args.requests == "-" else Path(args.requests).read_bytes()
    except OSError as exc:
        raise RequestsUnreadable(f"cannot read {args.requests}: {exc}") from exc
    parsed = requests.parse(content, args.requests)
    if not parsed.asks:
        raise RequestsUnreadable(f"{args.requests} holds no request that two endpoints can be asked")
    return parsed


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return value


def _height(text: str) -> int:
    value = int(text, 0)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return value
