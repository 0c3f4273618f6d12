"""
The fenced blocks of a page, and what the comments above them say about running them.

A page is read by people, so a block stands as one would type it. What a test needs beside it is in comments that no
reader sees, `<!-- NAME: VALUE -->`, directly above the block:

    file: NAME          the block is written as this file, in the folder in which the page is tried
    append: NAME        it is added to the file
    within: PATH        it is a part of a configuration, at this place: `projects[0].upstreams[0]`, `gnomon`
    warns: OF WHAT      reading it gives warnings
    expect: TEXT        the commands' output has this text; may stand several times
    until: TEXT         the commands are run again until it has
    heard: TEXT         and something that runs in the background has printed this by then
    background: TEXT    the command goes on; it is ready when it has printed the text (or at once, without one)
    status: N           the exit status of the last command, where it is not 0
    not run: WHY        it is for people only
    example: WHY        it shows output
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARKS = frozenset(
    ("file", "append", "within", "warns", "expect", "until", "heard", "background", "status", "not run", "example")
)
LANGUAGES = frozenset(("console", "yaml", "sql", "text", "python", "sh", "json"))

_FENCE = re.compile(r"^```(\w*)\s*$")
_MARK = re.compile(r"^<!-- ([a-z ]+?)(?:: (.*?))? -->\s*$")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    """Of its fence, from 1."""
    language: str
    text: str
    marks: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"

    def all(self, name: str) -> list[str]:
        """Return the values of every mark of a name."""
        return [value for mark, value in self.marks if mark == name]

    def get(self, name: str) -> str | None:
        """Return the value of a mark; None where it is not there."""
        return next(iter(self.all(name)), None)

    @property
    def is_run(self) -> bool:
        """Whether it is a command, or a file for one."""
        return self.get("not run") is None and self.get("example") is None


def blocks(page: Path) -> list[Block]:
    """
    Return the blocks of a page in order.

    Raises:
        ValueError: a fence that is not closed, or marks above something else.
    """
    return list(_blocks(page, page.read_text("utf-8").splitlines()))


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    marks: list[tuple[str, str]] = []
    start: int | None = None
    language = ""
    for number, line in enumerate(lines, start=1):
        fence = _FENCE.match(line)
        if start is not None:
            if fence and not fence[1]:
                yield Block(page, start, language, "\n".join(lines[start : number - 1]) + "\n", tuple(marks))
                start, marks = None, []
        elif fence:
            start, language = number, fence[1]
        elif mark := _MARK.match(line):
            marks.append((mark[1], mark[2] or ""))
        elif marks and line:
            raise ValueError(f"{page.name}:{number}: {marks} stand above no block")
    if start is not None:
        raise ValueError(f"{page.name}:{start}: the block has no end")
    if marks:
        raise ValueError(f"{page.name}: {marks} stand above no block")
