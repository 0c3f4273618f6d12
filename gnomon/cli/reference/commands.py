"""Every command of `gnomon`, from its parser: what it does, its arguments with their defaults, examples."""

import argparse
import re
from collections.abc import Iterator
from typing import Final

from gnomon.cli import COMMANDS, build_parser
from gnomon.cli.reference.markdown import code, links, table

_HEAD = """\
# Command line

Results go to stdout, messages to stderr. `gnomon COMMAND --help` prints what stands here.

Exit status of every command:

| status | meaning |
| --- | --- |
| 0 | done; where a command answers a question: the answer is yes |
| 1 | it failed, or the answer is no |
| 2 | usage: an argument or the configuration cannot be used |
| 130 | ended by Ctrl-C (services end with 0 then) |

What a command's status says beyond that stands with the command. `--config FILE` is `gnomon.yaml` where it is left out.
`--format json` is one array of objects, unless the command says otherwise.

"""

_STATED: Final = re.compile(r" ?\(default:? ([^()]+)\)")


def render() -> str:
    """Return the page."""
    lines = [_HEAD + links(COMMANDS) + "."]
    for name in COMMANDS:
        lines += ["", *_section(name)]
    return "\n".join([*lines, ""])


def parser_of(command: str) -> argparse.ArgumentParser:
    """Return the parser of one command."""
    whole = build_parser(command)
    (choice,) = (action for action in whole._actions if isinstance(action, argparse._SubParsersAction))
    found: argparse.ArgumentParser = choice.choices[command]
    return found


def actions_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return name → parser of what a command can be told to do; empty where it does one thing."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield each argument that users are shown, positional ones first."""
    shown = [action for action in parser._actions if action.help is not argparse.SUPPRESS]
    shown = [a for a in shown if not isinstance(a, argparse._HelpAction | argparse._SubParsersAction)]
    yield from sorted(shown, key=lambda action: bool(action.option_strings))


def default_of(action: argparse.Action) -> str:
    """Return the default of an argument as users would write it; empty where it has none."""
    stated = _STATED.search(action.help or "")
    if action.default in (None, False) or action.default == []:
        return stated[1] if stated else ""
    return f"{action.default:g}" if isinstance(action.default, float) else str(action.default)


def _section(command: str) -> list[str]:
    parser = parser_of(command)
    lines = [f"## {command}", "", *_described(parser.description or ""), "", *_usage(parser)]
    for name, one in actions_of(parser).items():
        lines += ["", f"### {command} {name}", "", one.description or "", "", *_usage(one)]
    return lines


def _described(text: str) -> list[str]:
    """Return a description in Markdown: its indented lines are a block of code."""
    lines: list[str] = []
    is_code = False
    for line in text.strip().splitlines():
        if line.startswith("  ") != is_code and line:
            is_code = not is_code
            if is_code and lines and lines[-1]:
                lines.append("")
            lines += ["```console"] if is_code else _closed(lines)
        lines.append(line.strip() if is_code else line)
    return [*lines, *(_closed(lines) if is_code else [])]


def _closed(lines: list[str]) -> list[str]:
    """End a block of code, before the blank lines that came after it."""
    n_blank = 0
    while lines and not lines[-1]:
        lines.pop()
        n_blank += 1
    return ["```", *[""] * n_blank]


def _usage(parser: argparse.ArgumentParser) -> list[str]:
    rows = []
    for action in arguments(parser):
        text = (action.help or "") % {**vars(action), "prog": parser.prog}
        stated = _STATED.search(text)
        if stated and default_of(action):
            text = text.replace(stated[0], "")
        rows.append([code(_written(action)), code(default_of(action)), text])
    return table(["argument", "default", "meaning"], rows) if rows else []


def _written(action: argparse.Action) -> str:
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    value = choices or str(action.metavar or action.dest.upper())
    if not action.option_strings:
        return f"[{value}]" if action.nargs == "?" else value
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {value}"
