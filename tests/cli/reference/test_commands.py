"""Every command is told whole: what it does, its exit status, its arguments, an example that is understood."""

import argparse
import re
import shlex

import pytest

from gnomon.cli import COMMANDS, build_parser
from gnomon.cli.reference.commands import actions_of, arguments, default_of, parser_of, render


def parsers(command: str) -> list[argparse.ArgumentParser]:
    parser = parser_of(command)
    return [parser, *actions_of(parser).values()]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_what_it_does_and_how_it_ends(command: str) -> None:
    """Its help has a sentence, an example, and what its exit status means."""
    text = parser_of(command).description or ""

    assert re.search(rf"(?m)^ +gnomon {command}\b", text)
    assert re.search(r"[Ee]xit\s+status", text)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_argument_has_a_meaning(command: str) -> None:
    """No option stands without a text."""
    bare = [a.dest for parser in parsers(command) for a in arguments(parser) if not a.help]

    assert bare == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_default_that_a_text_states_is_the_one_in_force(command: str) -> None:
    """Where the parser has a default, `(default: X)` of the text is that."""
    for parser in parsers(command):
        for action in arguments(parser):
            stated = re.search(r"\(default:? ([^()]+)\)", action.help or "")
            if stated and action.default not in (None, False):
                assert stated[1] == default_of(action), action.dest


@pytest.mark.parametrize("command", COMMANDS)
def test_an_example_of_the_help_is_understood(command: str) -> None:
    """Each `gnomon` line names arguments that exist."""
    lines = re.findall(r"(?m)^ +(gnomon \S.*)$", parser_of(command).description or "")
    for line in lines:
        told = re.split(r"\s{3,}| > ", line)[0]
        words = shlex.split(told)[1:]

        assert build_parser(words[0]).parse_args(words).command == command


def test_a_description_becomes_text_and_code() -> None:
    """Indented lines are a block of code; nothing is lost."""
    page = render()

    assert "```console\ngnomon up --data DIR\ngnomon up --data DIR --config gnomon.yaml\n```\n" in page
    assert page.count("```") % 2 == 0
    for command in COMMANDS:
        for line in (parser_of(command).description or "").splitlines():
            assert line.strip() in page
