"""
What the views of database `gnomon` say, in `views.yaml`, and the statements that write it beside them as comments.

A comment is no part of a migration: it can be mended without one, and a view that is replaced gets its own again.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Protocol

import yaml

from analytics.clustering import Cluster
from analytics.questions import BadQuestion, ResultColumn, column

DATABASE = "gnomon"


class Rows(Protocol):
    """What is needed of a connection."""

    def rows(self, sql: str) -> Iterable[Iterable[object]]:
        """Return the rows of a query."""


class BadView(ValueError):
    """A description that breaks the rules of `views.yaml`: a fault of this package."""


@dataclass(frozen=True, slots=True)
class View:
    """One view."""

    name: str
    about: str
    """Its grain, a sentence."""
    columns: tuple[ResultColumn, ...]

    def comments(self) -> dict[str, str]:
        """Return column → its comment; the view itself is the empty name."""
        texts = {c.name: f"{c.meaning} [{c.unit}]" if c.unit else c.meaning for c in self.columns}
        return {"": self.about, **texts}

    def statement(self, cluster: Cluster | None = None) -> str:
        """Return what writes all comments of the view."""
        parts = [
            f"COMMENT COLUMN `{name}` {_quoted(text)}" if name else f"MODIFY COMMENT {_quoted(text)}"
            for name, text in self.comments().items()
        ]
        everywhere = f" {cluster.on}" if cluster else ""
        return f"ALTER TABLE {DATABASE}.{self.name}{everywhere}\n    " + ",\n    ".join(parts)


def parse(text: str) -> tuple[View, ...]:
    """
    Return the views of a file.

    Raises:
        BadView: naming the view and the line.
    """
    found = []
    for name, block in yaml.safe_load(text).items():
        about, *lines = str(block).strip().splitlines()
        if not about.endswith("."):
            raise BadView(f"{name}: the first line is not a sentence: {about!r}")
        try:
            found.append(View(name, about, tuple(column(line) for line in lines)))
        except BadQuestion as error:
            raise BadView(f"{name}: {error}") from error
    return tuple(found)


@functools.cache
def views() -> tuple[View, ...]:
    """Return every view, in the order of the file."""
    return parse((resources.files("analytics") / "views.yaml").read_text(encoding="utf-8"))


def statements(cluster: Cluster | None = None) -> list[str]:
    """Return what writes every comment."""
    return [view.statement(cluster) for view in views()]


def outdated(database: Rows, cluster: Cluster | None = None) -> list[str]:
    """Return what brings the comments up to date; views that are not there, or not as they are told, are left out."""
    known: dict[str, dict[str, str]] = {
        str(name): {"": str(comment)}
        for name, comment in database.rows(f"SELECT name, comment FROM system.tables WHERE database = '{DATABASE}'")
    }
    for table, name, comment in database.rows(
        f"SELECT table, name, comment FROM system.columns WHERE database = '{DATABASE}'"
    ):
        known.setdefault(str(table), {})[str(name)] = str(comment)
    return [
        view.statement(cluster)
        for view in views()
        if view.name in known
        and (wanted := view.comments()).keys() == known[view.name].keys()
        and wanted != known[view.name]
    ]


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
