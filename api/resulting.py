"""
A result as ClickHouse writes it → what is sent, piece by piece: JSONCompactEachRowWithNamesAndTypes → the JSON document
of the API; a table → a text that a terminal only shows.

ClickHouse writes times in ISO 8601 and decimals as texts (`FORMS` asks for it); what is left to do here is what it
cannot: integers beyond 2^53 as texts, smaller ones as numbers, rows as objects, text that is no UTF-8.
"""

import codecs
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from analytics.questions import plain_type
from api import values
from api.errors import Refused

ROW_FORMAT: Final = "JSONCompactEachRowWithNamesAndTypes"
FORMS: Final[Mapping[str, str]] = {
    "date_time_output_format": "iso",
    "output_format_json_quote_decimals": "1",
    "output_format_decimal_trailing_zeros": "1",
}
"""Settings of ClickHouse that the rows are asked for with."""

_SURE_DIGITS: Final = 15
"""An integer of so many digits lies below 2^53."""
_WIDE: Final = re.compile(r"U?Int(64|128|256)")
_texts = msgspec.json.Decoder(list[str]).decode
_row = msgspec.json.Decoder(list[Raw]).decode

Convert = Callable[[bytes], bytes]


class Document:
    """The document under way; not for several threads at once."""

    def __init__(self) -> None:
        self._held = b""
        self._names: list[str] | None = None
        self._columns: list[tuple[bytes, Convert | None]] = []
        self._is_begun = False
        self.n_rows = 0

    def feed(self, piece: bytes) -> bytes:
        """
        Return what the document goes on with, perhaps nothing yet.

        Raises:
            Refused: two columns have one name.
        """
        whole, _, self._held = (self._held + piece).rpartition(b"\n")
        return self._lines(whole) if whole else b""

    def finish(self, statistics: Mapping[str, Any]) -> bytes:
        """Return the end of the document; how many rows there are stands among the statistics."""
        rest = self._lines(self._held) if self._held else b""
        counted = {"rows": self.n_rows, **statistics}
        return rest + b'],"next_cursor":null,"statistics":' + msgspec.json.encode(counted) + b"}"

    def _lines(self, text: bytes) -> bytes:
        try:
            text.decode()
        except UnicodeDecodeError:  # a String may hold any bytes
            text = text.decode("utf-8", "replace").encode()
        lines = text.split(b"\n")
        out = b""
        if not self._is_begun:
            if self._names is None:
                self._names = _texts(lines.pop(0))
            if not lines:
                return b""
            out = self._begin(self._names, _texts(lines.pop(0)))
        columns = self._columns
        rows = []
        for line in lines:
            members = [
                key + (bytes(value) if convert is None else convert(bytes(value)))
                for (key, convert), value in zip(columns, _row(line), strict=True)
            ]
            rows.append(b"{" + b",".join(members) + b"}")
        if rows and self.n_rows:
            out += b","
        self.n_rows += len(rows)
        return out + b",".join(rows)

    def _begin(self, names: list[str], types: list[str]) -> bytes:
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise Refused("invalid-sql", f"two columns are called {twice[0]!r}; name one of them anew with AS")
        self._is_begun = True
        self._columns = [
            (msgspec.json.encode(name) + b":", converter(kind)) for name, kind in zip(names, types, strict=True)
        ]
        columns = [{"name": name, "type": kind} for name, kind in zip(names, types, strict=True)]
        return b'{"columns":' + msgspec.json.encode(columns) + b',"items":['


_OBEYED: Final = re.compile("[\0-\b\v-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What a terminal obeys, tabs and ends of lines apart: control characters, and those that turn a text round."""


class Shown:
    """A table for eyes. Names and texts of it are from chains and clients: what a terminal would obey is �."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def feed(self, piece: bytes) -> bytes:
        """Return what of a piece can be shown already: a character may be cut."""
        return _OBEYED.sub("\ufffd", self._decode(piece)).encode()

    def finish(self, _: Mapping[str, Any]) -> bytes:
        """Return the rest."""
        return self._decode(b"", True).encode()


def converter(kind: str) -> Convert | None:
    """Return what turns ClickHouse's JSON of a type into ours; None where they are the same."""
    plain = plain_type(kind)
    inner = re.fullmatch(r"Nullable\((.*)\)", plain)
    if _WIDE.fullmatch(inner[1] if inner else plain):
        return _integer
    return _nested if _WIDE.search(plain) else None


def _integer(text: bytes) -> bytes:
    """
    Return an integer as a number where a double holds it, else as a text.

    >>> _integer(b"9007199254740993"), _integer(b'"7"'), _integer(b"null")
    (b'"9007199254740993"', b'7', b'null')
    """
    digits = text.strip(b'"')
    if len(digits) <= _SURE_DIGITS or abs(int(digits)) <= values.EXACT_IN_DOUBLE:
        return digits
    return b'"' + digits + b'"'


def _nested(text: bytes) -> bytes:
    return msgspec.json.encode(values.anything(msgspec.json.decode(text)))
