"""
Where a statement begins, what it is, and where its data starts: just enough of ClickHouse's lexer for that.

The engine parses; this module only splits `INSERT … FORMAT x <data>` into statement and data as ClickHouse's own
`ParserInsertQuery` does, finds a trailing `FORMAT` clause, and reads the fence mark. Text is bytes, because data that
follows an INSERT need not be UTF-8.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["word", "quoted", "string", "punct", "other"]

_TOKEN = re.compile(
    rb"""
      (?P<space>[\s\x00]+)
    | (?P<comment>--[^\n]*|\#[!\ ][^\n]*|/\*.*?(?:\*/|\Z))
    | (?P<string>'(?:[^'\\]|\\.|'')*(?:'|\Z)|\$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|\Z))
    | (?P<quoted>`(?:[^`\\]|\\.|``)*(?:`|\Z)|"(?:[^"\\]|\\.|"")*(?:"|\Z))
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<other>[0-9][0-9A-Za-z_.]*)
    | (?P<punct>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_FENCE = re.compile(rb"\s*/\*fence:(?P<key>[^\s*]+) (?P<epoch>[0-9]{1,20})\*/")
_AFTER_FORMAT = re.compile(rb"[ \t\f]*\r?\n|\s*")
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: bytes
    start: int
    end: int
    depth: int
    """Open parentheses, brackets and braces before this token."""

    @property
    def keyword(self) -> bytes:
        """Return the upper-case word, or nothing when this is no bare word."""
        return self.text.upper() if self.kind == "word" else b""


@dataclass(frozen=True, slots=True)
class FenceMark:
    """Who an insert belongs to: `/*fence:KEY EPOCH*/` in front of it."""

    key: str
    epoch: int


@dataclass(frozen=True, slots=True)
class DataInsert:
    """An INSERT whose rows follow as data."""

    head: bytes
    """The statement before `FORMAT` or `VALUES`."""
    source_at: int
    """Where in the head a source of the rows would be named: behind the columns, before SETTINGS."""
    target: tuple[str, ...]
    """Table, or database and table; empty when it is no plain table (a function, a parameter)."""
    format: str
    data_start: int
    """Where in the text the data begins."""


@dataclass(frozen=True, slots=True)
class InsertSelect:
    """An INSERT whose rows come from a query."""

    reads_input: bool
    """It names `input(…)`: the engine accepts that inline and stores nothing, so it must be refused."""


def tokens(sql: bytes, start: int = 0) -> Iterator[Token]:
    """Yield the significant tokens, lazily; never fails (a broken string runs to the end of the text)."""
    depth = 0
    position = start
    while (match := _TOKEN.match(sql, position)) is not None:
        position = match.end()
        kind = match.lastgroup
        if kind == "tag":
            kind = "string"
        text = match.group()
        if kind == "punct":
            if text in b")]}":
                depth = max(0, depth - 1)
            yield Token("punct", text, match.start(), position, depth)
            if text in b"([{":
                depth += 1
        elif kind == "word":
            yield Token("word", text, match.start(), position, depth)
        elif kind == "quoted":
            yield Token("quoted", text, match.start(), position, depth)
        elif kind == "string":
            yield Token("string", text, match.start(), position, depth)
        elif kind == "other":
            yield Token("other", text, match.start(), position, depth)


def first_keyword(sql: bytes) -> str:
    """Return the first bare word in upper case, `(` for a bracketed query, or nothing."""
    token = next(tokens(sql), None)
    if token is None:
        return ""
    return (token.keyword or token.text).decode("ascii", "replace")


def fence_mark(sql: bytes) -> FenceMark | None:
    """Return the mark in front of the statement, if there is one."""
    match = _FENCE.match(sql)
    if match is None:
        return None
    return FenceMark(match["key"].decode("utf-8", "replace"), int(match["epoch"]))


def parse_insert(sql: bytes) -> DataInsert | InsertSelect | None:
    """
    Split an INSERT into statement and data.

    Returns:
        None when the text is no INSERT, or one of neither form (the engine will say what is wrong with it).

    Source: ClickHouse ParserInsertQuery: data starts after the first line feed behind the format's name if only blanks
    stand between, else after the blanks; `VALUES` means format Values.
    """
    stream = tokens(sql)
    token = next(stream, None)
    if token is None or token.keyword != b"INSERT":
        return None
    token = next(stream, None)
    if token is not None and token.keyword == b"INTO":
        token = next(stream, None)
    plain = True
    if token is not None and token.keyword in (b"TABLE", b"FUNCTION"):
        plain = token.keyword == b"TABLE"
        token = next(stream, None)
    target: list[str] = []
    while token is not None and token.kind in ("word", "quoted"):
        target.append(identifier(token))
        token = next(stream, None)
        if token is None or token.text != b".":
            break
        token = next(stream, None)
    source_at: int | None = None
    while token is not None:
        if token.depth == 0:
            keyword = token.keyword
            if keyword == b"SETTINGS" and source_at is None:
                source_at = token.start
            if keyword == b"FORMAT":
                name = next(stream, None)
                if name is None or name.kind != "word":
                    return None
                after = _AFTER_FORMAT.match(sql, name.end)
                start = after.end() if after is not None else name.end
                head, into = sql[: token.start], tuple(target) if plain else ()
                return DataInsert(head, len(head) if source_at is None else source_at, into, name.text.decode(), start)
            if keyword == b"VALUES":
                head, into = sql[: token.start], tuple(target) if plain else ()
                return DataInsert(head, len(head) if source_at is None else source_at, into, "Values", token.end)
        if token.keyword in (b"SELECT", b"WITH", b"WATCH", b"EXPLAIN") and token.depth <= 1:
            return InsertSelect(reads_input=_calls_input(sql, token.end))
        token = next(stream, None)
    return None


def identifier(token: Token) -> str:
    """Return the name that a bare or quoted identifier stands for."""
    if token.kind == "word":
        return token.text.decode()
    quote = token.text[:1]
    inner = token.text[1:-1].replace(quote * 2, quote)
    return _ESCAPE.sub(rb"\1", inner).decode("utf-8", "replace")


def trailing_format(sql: bytes) -> str:
    """Return the name in the query's FORMAT clause, or nothing."""
    found = ""
    stream = tokens(sql)
    token = next(stream, None)
    while token is not None:
        following = next(stream, None)
        if token.keyword == b"FORMAT" and token.depth == 0 and following is not None and following.kind == "word":
            after = next(stream, None)
            if after is None or after.text == b";" or after.keyword in (b"SETTINGS", b"INTO"):
                found = following.text.decode()
            token = after
            continue
        token = following
    return found


def touches_client_files(sql: bytes) -> bool:
    """
    Say whether the text has INTO OUTFILE or FROM INFILE.

    The engine's own client executes both with the rights of the process, whatever the role; over ClickHouse's HTTP
    protocol neither exists.
    """
    before = b""
    for token in tokens(sql):
        keyword = token.keyword
        if (keyword == b"OUTFILE" and before == b"INTO") or (keyword == b"INFILE" and before == b"FROM"):
            return True
        before = keyword
    return False


def _calls_input(sql: bytes, start: int) -> bool:
    before = b""
    for token in tokens(sql, start):
        if token.text == b"(" and before == b"INPUT":
            return True
        before = token.keyword
    return False
