"""
The list of all numbers, times and shares that pages show: where each stands, and what it must be equal to.

An entry is a panel. Its rows are read from the HTML, from /v1, and by SQL of its own over the plain tables; each names
its rows and columns alike and has numbers as they are, unrounded. What is shown is the column's own way of wording it:

    page cell  ==  shown[column](number of /v1)         words, exact values, times and drawings
    number of /v1  ==  number of the SQL

`unlisted` finds what a page shows beside: a number in no entry's cell.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

from markupsafe import escape

from tests.api.pages.full import Full, Rows
from tests.api.pages.reading import Node, parse
from tests.services import ROOT

Cells = dict[str, dict[str, Node]]
"""Row → column → where it stands."""
Shown = Callable[[Any], object]
"""From a number as it is to what a page shows of it: a text, a figure, a moment, a drawing."""


class Timed(NamedTuple):
    """The same where it depends on what time it is."""

    words: Callable[[Any, datetime], object]


# --- what a cell shows -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """A piece of a page, as eyes and programs see it."""

    text: str
    exact: tuple[tuple[str, ...], ...]
    """Of each number: its value, what hovering and copying give; of each time: the whole of it."""
    drawings: tuple[Node, ...]


def look(node: Node) -> Look:
    """Return what is to be seen of an element, itself included."""
    found = [node, *node.all()]
    exact = [
        tuple(one.attributes.get(name, "") for name in ("value", "datetime", "title", "data-whole"))
        for one in found
        if one.tag in ("data", "time")
    ]
    inner = {id(below) for one in found if one.tag == "svg" for below in one.all()}
    drawings = tuple(one for one in found if one.tag == "svg" and id(one) not in inner)
    return Look(_words(node), tuple(exact), drawings)


def _words(node: Node) -> str:
    def flat(one: Node) -> str:
        if one.tag == "svg":
            return ""
        return "".join(child if isinstance(child, str) else flat(child) for child in one.children)

    return re.sub(r"\s+", " ", flat(node)).strip()


def look_of(shown: object) -> Look:
    """Return how a figure, a moment, a drawing or a text looks on a page."""
    return look(parse(f"<td>{'' if shown is None else escape(shown)}</td>").one("td"))


# --- where it stands -------------------------------------------------------------------------------------------------


def cells_of(panel: Node, *, key: Sequence[str] = (), names: Mapping[int, str] | None = None, group: str = "") -> Cells:
    """
    Return the cells of a panel's table by row and column.

    Args:
        key: columns that name a row; none = the first. What names it is the first link in it, else all of it.
        names: of columns whose heading has a number in it, by their place.
        group: column under which the headings of groups stand, by their text; empty = they are left out.
    """
    table = panel.one("table")
    columns = [(names or {}).get(at, heading_of(th)) for at, th in enumerate(table.one("thead").all("th"))]
    found: Cells = {}
    for row in table.one("tbody").all("tr"):
        cells = [cell for cell in row.children if isinstance(cell, Node)]
        if len(cells) != len(columns):
            if group and "grp" in row.attributes.get("class", "").split():
                found.setdefault(_words(cells[0]).split(",")[0].split(" · head")[0], {})[group] = cells[0]
            continue
        by_name = dict(zip(columns, cells, strict=True))
        name = " | ".join(_name(by_name[one]) for one in (key or columns[:1]))
        assert name not in found, f"two rows are called {name!r}"
        found[name] = by_name
    return found


def heading_of(cell: Node) -> str:
    """Return a column's name: the words of its heading alone, none of a drawing in it."""
    return _words(cell)


def _name(cell: Node) -> str:
    return _words((cell.all("a") or cell.all("code") or [cell])[0])


def table(**how: Any) -> Callable[[Node], Cells]:
    """Return a reader of tables: see `cells_of`."""
    return lambda panel: cells_of(panel, **how)


def headings(**names: int) -> Callable[[Node], Cells]:
    """Return a reader of a table's headings that have a number in them: a name for each place."""
    return lambda panel: {"": {name: panel.one("thead").all("th")[at] for name, at in names.items()}}


def facts(panel: Node) -> Cells:
    """Return the terms of a list with what is said of each; terms that come again are rows of their own."""
    found: Cells = {}
    terms, said = panel.all("dt"), panel.all("dd")
    for term, one in zip(terms, said, strict=True):
        name, again = _words(term), 0
        while name in found.get(str(again or ""), {}):
            again += 1
        found.setdefault(str(again or ""), {})[name] = one
    return found


def note(panel: Node) -> Cells:
    """Return what stands beside a panel's title."""
    return {"": {"note": panel.one("span", "note")}}


def parts(**of: Callable[[Node], Node]) -> Callable[[Node], Cells]:
    """Return a reader of single places, by a name for each."""
    return lambda panel: {"": {name: found(panel) for name, found in of.items()}}


# --- the list --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The numbers of one panel, or of one part of it."""

    name: str
    address: Callable[[Full], str]
    panel: str
    """Its id without `p-`; `lead`: the first sentence of the page; `nav`: what stands around all pages."""
    read: Callable[[Node], Cells]
    shown: Mapping[str, Shown | Timed | None]
    """Column → how its numbers look; None: told by the other columns, or by a test that is named there."""
    api: Callable[[Full], Rows]
    sql: Callable[[Full], Rows]
    near: Mapping[str, float] = field(default_factory=dict)
    """Column → how far apart /v1 and the SQL may be, by the value; others agree to the last digit."""

    def looks(self, column: str, raw: Any, now: datetime) -> Look:
        """Return how a number must look."""
        shown = self.shown[column]
        assert shown is not None
        return look_of(shown.words(raw, now) if isinstance(shown, Timed) else shown(raw))

    is_apart: bool = False
    """The panel is no part of the page, but asked for by itself."""

    def part(self, full: Full) -> Node:
        """Return the piece of the page."""
        return part_of(full, full.where(self.address), self.panel, is_apart=self.is_apart)


def at(address: str) -> Callable[[Full], str]:
    """Return an address that is always the same."""
    return lambda full: address


def part_of(full: Full, address: str, panel: str, *, is_apart: bool = False) -> Node:
    """Return a panel of a page, or what stands around it."""
    if is_apart:
        return full.panel(address, panel)
    page = full.page(address)
    if panel == "lead":
        return page.one("div", "statement")
    if panel == "nav":
        return page.one("nav")
    return page.by_id(f"p-{panel}")


def same(one: Any, other: Any, near: float = 0.0) -> bool:
    """Return whether two sources give the same: exact where both are exact, floats to 1e-9 unless `near` is wider."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same(a, b, near) for a, b in zip(one, other, strict=True))
    if isinstance(one, bool | str | datetime) or one is None or other is None:
        return bool(one == other)
    if isinstance(one, float) or isinstance(other, float) or near:
        return math.isclose(float(one), float(other), rel_tol=max(near, 1e-9), abs_tol=1e-9)
    return Decimal(one) == Decimal(other)


# --- what is shown beside --------------------------------------------------------------------------------------------


@cache
def constants() -> frozenset[str]:
    """Return the texts of templates that have no value in them: what they say is always the same."""
    found: set[str] = set()
    for file in (ROOT / "api" / "templates").rglob("*.html"):
        source = file.read_text("utf-8")
        text = re.sub(r"\{%.*?%\}|\{#.*?#\}", "<>", source, flags=re.DOTALL)
        text = re.sub(r"\{\{.*?\}\}", "\0", text, flags=re.DOTALL)
        found |= {word for tag in re.findall(r"\{%.*?%\}", source, re.DOTALL) for word in re.findall(r'"([^"]*)"', tag)}
        found |= {re.sub(r"\s+", " ", one).strip() for one in re.split(r"<[^<>]*>|\0", text)}
        found |= set(re.findall(r'(?:title|aria-label)="([^"\0]*)"', text))
    return frozenset(found)


def unlisted(part: Node, covered: Sequence[Node], names: Sequence[str]) -> list[str]:
    """
    Return the numbers that a piece of a page shows outside the cells that are covered.

    Args:
        names: words with digits in them that are no numbers: of upstreams, methods, requests.
    """
    known = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True) if name) or r"(?!)")
    skipped = {id(node) for node in covered}
    return [text for text in _seen(part, skipped) if text not in constants() and re.search(r"\d", known.sub("", text))]


def _seen(node: Node, skipped: set[int]) -> Iterator[str]:
    if id(node) in skipped or (node.tag == "svg" and "aria-hidden" in node.attributes):
        return  # a drawing that is hidden so only repeats what stands beside it: an axis, a mark
    for name in ("aria-label", "title", "value"):
        text = re.sub(r"\s+", " ", node.attributes.get(name, "")).strip()
        if text and not (node.tag in ("input", "option") and name == "value") and text != _words(node):
            yield text
    for child in node.children:
        if isinstance(child, Node):
            yield from _seen(child, skipped)
        elif child.strip():
            yield re.sub(r"\s+", " ", child).strip()


# --- small things that lists share -----------------------------------------------------------------------------------


def by(rows: Sequence[Mapping[str, Any]], key: str, columns: Mapping[str, str | Shown]) -> Rows:
    """
    Return rows by their name.

    Args:
        key: members that name a row, a space between them.
        columns: column → a member, or a function of the row.
    """
    return {
        " | ".join(str(row[name]) for name in key.split()): {
            column: said(row) if callable(said) else row[said] for column, said in columns.items()
        }
        for row in rows
    }


def when(text: str | None) -> datetime | None:
    """Return the instant that /v1 gives."""
    return None if text is None else datetime.fromisoformat(text)


def usd(text: str | None) -> Decimal | None:
    """Return the exact amount that /v1 gives."""
    return None if text is None else Decimal(text)


def joined(*found: Rows, always: Mapping[str, Any] | None = None, keys: Sequence[str] | None = None) -> Rows:
    """Return the columns of several answers in one row each; `always` is what a row has that no answer names."""
    names = keys if keys is not None else list(dict.fromkeys(key for rows in found for key in rows))
    return {
        name: {**(always or {}), **{column: value for rows in found for column, value in rows.get(name, {}).items()}}
        for name in names
    }
