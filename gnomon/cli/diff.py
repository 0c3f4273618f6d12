"""
Judge one pair of answers, for a person; or many, one a line, for a program.

  gnomon diff primary.json shadow.json --method eth_getBlockByNumber
  gnomon diff a.json b.json --mask '*.logs.*.blockTimestamp' --tolerate hex_case --tolerate value@size
  gnomon diff --cases pairs.jsonl > verdicts.jsonl
  jq -c .pairs[] export.json | gnomon diff --cases -

A file holds a whole JSON-RPC response, a batch of them, or a bare result. Exit status of a pair: 0 when the answers
are the same (masked and tolerated included) or cannot be compared, 1 when they differ or one is missing, 2 when the
command is wrong. With --cases it is 0 whatever the verdicts, and 2 when a line is no case.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from gnomon.cli import longform
from gnomon.compare import cases, classes, exact, masks, render, tolerances
from gnomon.compare.envelope import NO_ANSWER, Response, members_of, read
from gnomon.compare.exact import NotJson, TooDeep
from gnomon.compare.judge import Answer, Policy, Question, Verdict
from gnomon.errors import UsageError

_SAME = frozenset(("identical", "identical_masked", "tolerated", "incomparable"))
_MAX_LONG_BYTES = 2 << 20
_LONG_SECONDS = 10.0
_MAX_LONG_LINES = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare a pair of files, or `--cases`."""
    parser.add_argument("primary", nargs="?", metavar="PRIMARY.json", help="the answer that was served; - for stdin")
    parser.add_argument("shadow", nargs="?", metavar="SHADOW.json", help="the answer compared with it; - for stdin")
    parser.add_argument("--cases", metavar="FILE", help="JSON lines of pairs with their own masks; - for stdin")
    parser.add_argument("--method", default="", metavar="M", help="what was asked: it says which answers are empty, …")
    parser.add_argument("--params", metavar="JSON", help="with what parameters: they name the block")
    parser.add_argument("--latest", type=int, metavar="N", help="newest block of the network when it was asked")
    parser.add_argument("--finalized", type=int, metavar="N", help="finalised block then")
    parser.add_argument(
        "--mask", action="append", default=[], metavar="PATH", help="leave a path out, from the root of the result"
    )
    parser.add_argument(
        "--tolerate",
        action="append",
        default=[],
        metavar="CLASS[@PATH]",
        help=f"forgive a kind of difference, everywhere or below a path: {', '.join(classes.TELLING)}",
    )
    parser.add_argument("--long", action="store_true", help="add DeepDiff's view of the two results")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="auto: on a terminal only")


def run(args: argparse.Namespace) -> int:
    """Judge; return the exit status."""
    if args.cases is not None:
        if args.primary is not None:
            raise UsageError("--cases takes its pairs from one file; leave out the others")
        if args.method or args.mask or args.tolerate or args.params:
            raise UsageError("with --cases each line brings its own method, parameters, masks and tolerances")
        return _judge_lines(args.cases, sys.stdout)
    if args.primary is None or args.shadow is None:
        raise UsageError("name two files, PRIMARY.json and SHADOW.json, or --cases FILE")
    if args.primary == args.shadow == "-":
        raise UsageError("stdin can be one of the two files only")
    question = Question(method=args.method, params=_params(args), latest=args.latest, finalized=args.finalized)
    policy = Policy(masks=masks.compile(args.mask), tolerate=tolerances.compile(args.tolerate))
    sides = [_response(file) for file in (args.primary, args.shadow)]
    if None in sides:
        verdict = Verdict(outcome="undecided", reason="too_deep")
    else:
        verdict = cases.judge_responses(question, sides[0] or _NOTHING, sides[1] or _NOTHING, policy)
    width = shutil.get_terminal_size((100, 24)).columns
    print(render.render(verdict, method=args.method, width=width, is_coloured=_wants_colour(args.color, sys.stdout)))
    if args.long and verdict.findings:
        print(f"\n{_long_form(sides, policy.masks)}")
    return 0 if verdict.outcome in _SAME else 1


_NOTHING = Response(b"", NO_ANSWER)


def _wants_colour(choice: str, stream: TextIO) -> bool:
    if choice != "auto":
        return choice == "always"
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


# --- many -------------------------------------------------------------------------------------------------------------


def _judge_lines(file: str, out: TextIO) -> int:
    """Judge each line, in order; a line that is no case is undecided, named on stderr, and makes the status 2."""
    status = 0
    for number, line in enumerate(_lines(file), start=1):
        if not line.strip():
            continue
        try:
            case = cases.read_case(line)
        except UsageError as error:
            print(f"gnomon: line {number}: {error}", file=sys.stderr)
            print(cases.as_line(_id_of(line), Verdict(outcome="undecided", reason="parse")), file=out)
            status = UsageError.exit_status
            continue
        print(cases.as_line(case.case_id, cases.judge_case(case)), file=out)
    out.flush()
    return status


def _lines(file: str) -> Iterable[bytes]:
    if file == "-":
        yield from sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as stream:
            yield from stream
    except OSError as error:
        raise UsageError(f"--cases {file}: {error.strerror}") from None


def _id_of(line: bytes) -> object:
    """Return the id of a line that is no case, where it has one."""
    try:
        text = dict(members_of(line)).get("id")
        return None if text is None else exact.decode(text)
    except (NotJson, TooDeep):
        return None


# --- one pair ---------------------------------------------------------------------------------------------------------


def _params(args: argparse.Namespace) -> object:
    if args.params is None:
        return None
    try:
        return exact.decode(args.params.encode("utf-8", "surrogateescape"))
    except (NotJson, TooDeep) as error:
        raise UsageError(f"--params is no JSON: {error}") from None


def _response(file: str) -> Response | list[Response] | None:
    """Return what a file answers, a bare value being a result; None when it is nested too deep to be read."""
    try:
        text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    try:
        if text.lstrip()[:1] == b"{" and not {"result", "error"} & dict(members_of(text)).keys():
            return _bare(text)
        if text.lstrip()[:1] in (b"{", b"["):
            response = read(text)
            if isinstance(response, Response) or all(one.answer.kind != "none" for one in response if response):
                return response if isinstance(response, Response) or response else _bare(text)
        exact.decode(text)
        return _bare(text)
    except TooDeep:
        return None
    except NotJson as error:
        try:
            exact.decode(text)
        except NotJson:
            raise UsageError(f"{file} holds no JSON: {error}") from None
        except TooDeep:
            return None
        return _bare(text)


def _bare(text: bytes) -> Response:
    return Response(b"", Answer(kind="result", fragment=text.strip()))


# --- DeepDiff ---------------------------------------------------------------------------------------------------------


def _long_form(sides: list[Response | list[Response] | None], mask_set: masks.MaskSet) -> str:
    """Return DeepDiff's text of the two fragments, within limits of size and time; it decides nothing."""
    fragments = [bytes(side.answer.fragment) if isinstance(side, Response) else b"" for side in sides]
    if not all(fragments) or max(map(len, fragments)) > _MAX_LONG_BYTES:
        return f"no long form: it is for single answers up to {_MAX_LONG_BYTES >> 20} MiB"
    decoded = [exact.decode(fragment) for fragment in fragments]
    for value, side in zip(decoded, sides, strict=True):
        if isinstance(side, Response) and side.answer.kind == "result":
            mask_set.remove(value)
    try:
        text = longform.deepdiff(decoded[0], decoded[1], _LONG_SECONDS)
    except longform.OutOfTime:
        return f"no long form: DeepDiff did not come to an end in {_LONG_SECONDS:.0f} s"
    except longform.Failed as failed:
        return f"no long form: DeepDiff gave up ({render.shown(str(failed))})"
    lines = text.split("\n")
    n_folded = len(lines) - _MAX_LONG_LINES
    return "\n".join(map(render.shown, [*lines[:_MAX_LONG_LINES], f"… and {n_folded} more lines"][: len(lines)]))
