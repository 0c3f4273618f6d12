"""
A page is panels; a panel is a question. The same function makes a panel inside its page and by itself.

    GET /divergence           the page: its first sentence, quick panels, places for slow ones
    GET /divergence/_matrix   one panel

A panel's `build` asks named questions and returns what its template shows, or a `State` where there is nothing to show.
What it raises is told in its own place; the other panels live on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal, Protocol, TypeVar

from markupsafe import Markup

from analytics.alerting.rules import Rule
from analytics.questions import load
from api.asking import Rows
from api.pages.address import View
from api.pages.figures import iso
from gnomon.config.model import Settings

T = TypeVar("T")


class Memo:
    """Asks each question of a page once, however many panels need it."""

    def __init__(self, asks: "Asks") -> None:
        self._asks = asks
        self._known: dict[tuple[str, tuple[tuple[str, str], ...]], asyncio.Future[Rows]] = {}

    async def ask(self, name: str, given: Mapping[str, str] | None = None) -> Rows:
        """See `Asks`."""
        key = (name, tuple(sorted((given or {}).items())))
        known = self._known.get(key)
        if known is not None:
            return await asyncio.shield(known)
        known = self._known[key] = asyncio.get_running_loop().create_future()
        try:
            rows = await self._asks.ask(name, given)
        except BaseException as error:
            known.set_exception(error)
            known.exception()  # it is told to whoever waits; nobody else need hear of it
            raise
        known.set_result(rows)
        return rows

    async def page(self, name: str, given: Mapping[str, str], *, limit: int, cursor: str | None) -> Rows:
        """See `Asks`; pages are not kept."""
        return await self._asks.page(name, given, limit=limit, cursor=cursor)


class Heard:
    """Passes questions on, and remembers what they were asked with: the menu of one panel."""

    def __init__(self, asks: "Asks") -> None:
        self._asks = asks
        self.given: dict[str, Mapping[str, str]] = {}
        """Question → its parameters, the last time."""

    async def ask(self, name: str, given: Mapping[str, str] | None = None) -> Rows:
        """See `Asks`."""
        self.given[name] = given or {}
        return await self._asks.ask(name, given)

    async def page(self, name: str, given: Mapping[str, str], *, limit: int, cursor: str | None) -> Rows:
        """See `Asks`."""
        return await self._asks.page(name, given, limit=limit, cursor=cursor)


class Asks(Protocol):
    """What pages need of the API: `asking.Asking`."""

    async def page(self, name: str, given: Mapping[str, str], *, limit: int, cursor: str | None) -> Rows:
        """Return a page of the answer to a question that is read page by page."""
        ...

    async def ask(self, name: str, given: Mapping[str, str] | None = None) -> Rows:
        """Return the answer to a named question."""
        ...


@dataclass(frozen=True, slots=True)
class Around:
    """What a panel is made from."""

    view: View
    asks: Asks
    settings: Settings
    rules: Sequence[Rule] = ()
    """Alert rules in force."""
    may_change: bool = False
    """Whether the reader has the role admin."""
    item: str = ""
    """The id in the page's path, where it has one."""
    kept_hours: Callable[[], Awaitable[list[dict[str, Any]]]] | None = None
    """The last six hours as `reconcile` says them, kept half a minute for all readers."""
    unheard: Asks | None = None
    """Where to ask without being noted in the panel's menu; None = there is no menu to keep clean."""

    @property
    def before(self) -> "Around | None":
        """The same over the range before; None where the address asks for no comparison."""
        if not self.view.is_compared:
            return None
        return replace(self, view=self.view.before(), asks=self.unheard or self.asks)

    async def hours(self) -> list[dict[str, Any]]:
        """Return the hours of the last three that have been accepted, the oldest first."""
        if self.kept_hours is None:
            return await self.rows("reconcile", from_=iso(self.view.now - timedelta(hours=3)), to=iso(self.view.now))
        first = self.view.now - timedelta(hours=4)
        return [row for row in await self.kept_hours() if row["hour"] > first]

    async def rows(self, name: str, **given: str) -> list[dict[str, Any]]:
        """Return the rows of a question over the page's range and networks; `given` adds and overrides."""
        found = (await self.answer(name, **given)).records()
        if len(self.view.networks) < 2 or not found or "network" not in found[0]:
            return found
        return [row for row in found if row["network"] in self.view.networks]

    async def answer(self, name: str, **given: str) -> Rows:
        """Return the answer to a question over the page's range and network."""
        return await self.asks.ask(name, self.bound(name, **given))

    async def page(self, name: str, given: Mapping[str, str], *, limit: int, cursor: str | None) -> Rows:
        """Return one page of a question over the page's range and network."""
        return await self.asks.page(name, self.bound(name, **given), limit=limit, cursor=cursor)

    def bound(self, name: str, **given: str) -> dict[str, str]:
        """Return what a question is asked with, for this page."""
        known = {parameter.name for parameter in load(name).parameters}
        common = {"from": iso(self.view.span.start), "to": iso(self.view.span.end), "network": self.view.network}
        # The end of a running range is `now`: the same instant for all panels of the page.
        bound = {key: value for key, value in common.items() if key in known and value}
        return bound | {key.removesuffix("_"): value for key, value in given.items()}


@dataclass(frozen=True, slots=True)
class State:
    """Nothing to show, and which kind of nothing: good, not set up, too few, filtered out, failed, stale."""

    title: str
    words: str | Markup = ""
    code: str = ""
    """A setting to write."""
    mark: str = ""
    """A glyph: bad or warn."""
    ways: Sequence[tuple[str, str]] = ()
    """Ways out: words and addresses."""
    id: str = ""
    """Of the problem, with the request's id."""


Shown = Mapping[str, Any]
HAS_BEFORE = "has_before"
"""Of what a panel shows: whether something is known of the range before."""
Build = Callable[[Around], Awaitable[Shown | State]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One question of a page."""

    name: str
    title: str
    build: Build
    template: str
    """Below `parts/`."""
    is_slow: bool = False
    """It comes after the page, into a place of its final height."""
    tall: int = 160
    """Pixels of that place, rounded to the classes of app.css (tall-80 to tall-640)."""
    on: str = ""
    """Messages of the live stream after which it is fetched again."""
    is_still: bool = False
    """Its rows do not move under the pointer: what is new waits behind a button."""
    is_apart: bool = False
    """No part of the page: only asked for by itself."""
    is_bare: bool = False
    """Without a header."""
    css: str = ""
    questions: Sequence[str] = ()
    """Named questions that its menu opens in SQL; the first one is its file."""
    compares: Literal["", "below", "dotted"] = ""
    """Where it shows the range before: below each number, as a dotted line, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page."""

    name: str
    path: str
    """With `{item}` where it is about one thing."""
    title: str
    default_from: str
    panels: Sequence[Panel]
    lead: Callable[[Around, Mapping[str, Shown | State]], tuple[str | Markup, str | Markup]]
    """The first sentence, and one line below it (or empty), from what the quick panels show."""
    own: Sequence[str] = ()
    """Parameters beside the common ones."""
    can_be_live: bool = False
    has_range: bool = True
    here: str = ""
    """Of the side bar's item that is marked; empty = its own."""
    crumbs: Sequence[tuple[str, str]] = field(default=())
    """Titles and addresses above it."""
    chips: Callable[[Around], "Sequence[Chip]"] | None = None
    """Filters of the address, to be taken away."""

    @property
    def can_compare(self) -> bool:
        """Whether it has something to say of the range before."""
        return any(panel.compares for panel in self.panels)

    def panel(self, name: str) -> Panel | None:
        """Return a panel by its name."""
        return next((panel for panel in self.panels if panel.name == name), None)


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter: what it says, and the address without it."""

    key: str
    value: str
    without: str


async def together(*asked: Awaitable[Any]) -> list[Any]:
    """Return what each gives, all running at once; the first error ends the others."""
    return list(await asyncio.gather(*asked))


async def both(ask: Callable[[Around], Awaitable[T]], around: Around) -> tuple[T, T | None]:
    """Return what is asked over the page's range and over the range before, at once; None where that is not asked."""
    before = around.before
    if before is None:
        return await ask(around), None
    now, then = await asyncio.gather(ask(around), ask(before))
    return now, then
