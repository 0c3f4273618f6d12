"""Reading a page as its reader does: its parts by id, its texts, its exact numbers, its links."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from api.routes.asked import PAGES_ASK
from tests.api.calling import Answer, Api
from tests.api.night import Night
from tests.services import ROOT

VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"])


@dataclass
class Node:
    """One element."""

    tag: str
    attributes: dict[str, str]
    children: "list[Node | str]" = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its text, white space folded."""
        return re.sub(r"\s+", " ", self._text()).strip()

    def _text(self) -> str:
        return "".join(child if isinstance(child, str) else child._text() for child in self.children)

    def all(self, tag: str = "", css: str = "") -> "list[Node]":
        """Return the elements below it of a tag and class, in order."""
        found = []
        for child in self.children:
            if isinstance(child, Node):
                classes = child.attributes.get("class", "").split()
                if (not tag or child.tag == tag) and (not css or css in classes):
                    found.append(child)
                found += child.all(tag, css)
        return found

    def one(self, tag: str = "", css: str = "") -> "Node":
        """Return the first such element."""
        return self.all(tag, css)[0]

    def by_id(self, name: str) -> "Node":
        """Return the element of an id."""
        return next(node for node in self.all() if node.attributes.get("id") == name)

    @property
    def value(self) -> str:
        """The exact value of the first number in it."""
        return self.one("data").attributes["value"]

    def rows(self) -> "list[list[Node]]":
        """Return the cells of each body row of the first table in it."""
        return [[cell for cell in row.children if isinstance(cell, Node)] for row in self.one("tbody").all("tr")]


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Node("", {})
        self.open = [self.root]
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        if "id" in node.attributes:
            self.ids.append(node.attributes["id"])
        self.open[-1].children.append(node)
        if tag not in VOID and not (self.get_starttag_text() or "").endswith("/>"):
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(html: str) -> Node:
    """Return a document; every element is closed where it belongs, and no id stands twice."""
    builder = _Builder()
    builder.feed(html)
    assert [node.tag for node in builder.open] == [""], "an element is not closed"
    assert len(builder.ids) == len(set(builder.ids)), f"an id stands twice: {sorted(builder.ids)}"
    return builder.root


@dataclass
class Site:
    """The dashboard, and the night that it shows."""

    api: Api
    night: Night

    def get(self, address: str, **more: Any) -> Answer:
        """Return the answer at an address."""
        parts = urlsplit(address)
        query: dict[str, list[str]] = {}
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            query[f"{name}_"] = [*query.get(f"{name}_", []), value]
        return self.api.get(unquote(parts.path), **query, **more)

    def page(self, address: str) -> Node:
        """Return a page that is there, with all its panels in it."""
        whole = f"{address}{'&' if '?' in address else '?'}whole=1"
        answer = self.get(whole)
        assert answer.status == 200, answer.body[:500]
        return parse(answer.body.decode())

    def panel(self, address: str, name: str) -> Node:
        """Return one panel by itself."""
        parts = urlsplit(address)
        answer = self.get(f"{parts.path.rstrip('/')}/_{name}" + (f"?{parts.query}" if parts.query else ""))
        assert answer.status == 200, answer.body[:500]
        return parse(answer.body.decode())

    def asked(self, question: str, **query: object) -> "list[dict[str, Any]]":
        """Return what the API answers to a question, wherever it serves it."""
        answer = self.api.get(ADDRESSES[question], **query)
        assert answer.status == 200, answer.body[:500]
        found: list[dict[str, Any]] = answer.json()["items"]
        return found


def _addresses() -> "dict[str, str]":
    sources = "".join(file.read_text("utf-8") for file in (ROOT / "api" / "routes").glob("*.py"))
    found = {name: path for path, name in re.findall(r'"(/v1/[^"{]*)",\s*"(\w+)"', sources)}
    return found | {name: f"/v1/questions/{name}" for name in PAGES_ASK}


ADDRESSES = _addresses()
"""Question → where the API answers it."""
