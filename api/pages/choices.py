"""What a page can be filtered by: values that the range has, each with how much of it there is."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.pages import figures
from api.pages.page import Around, Panel, Shown, State

MOST: Final = 12
"""Values that a choice lists; the rest is told as a number, and any can be typed into the address."""
NAME: Final = "choices"
"""The panel that lists them, fetched when its menu is opened."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One value."""

    value: str
    n: figures.Figure
    href: str


@dataclass(frozen=True, slots=True)
class Choices:
    """One parameter of a page, with the values that it may take now."""

    key: str
    of_what: str
    """What is counted: `pairs`."""
    rows: Sequence[Choice]
    n_more: int


def choices(around: Around, key: str, of_what: str, counted: Iterable[tuple[str, int]], *, now: str = "") -> Choices:
    """
    Return the values of a parameter, most first; one that is in force already, and an empty one, is no choice.

    Args:
        counted: values with counts; those of the same value are added up.
        now: what is in force where the address says nothing.
    """
    sums: dict[str, int] = {}
    for value, n in counted:
        sums[value] = sums.get(value, 0) + n
    now = around.view.get(key, now)
    order = sorted((value for value in sums if value not in ("", now)), key=lambda value: (-sums[value], value))
    shown = [Choice(value, figures.count(sums[value]), around.view.here(**{key: value})) for value in order[:MOST]]
    return Choices(key, of_what, shown, len(order) - len(shown))


def panel(asked: Callable[[Around], Awaitable[Sequence[Choices]]], questions: Sequence[str]) -> Panel:
    """Return the panel of a page that lists its choices, by itself."""

    async def build(around: Around) -> Shown | State:
        groups = [group for group in await asked(around) if group.rows]
        return {"groups": groups} if groups else State("Nothing to filter by", "This range has no other value.")

    return Panel(
        name=NAME, title="Filters", build=build, template="choices.html", is_apart=True, questions=tuple(questions)
    )


def summed(rows: Iterable[Mapping[str, Any]], name: str, count: str) -> list[tuple[str, int]]:
    """Return a column of rows with another one that counts."""
    return [(row[name], row[count]) for row in rows]
