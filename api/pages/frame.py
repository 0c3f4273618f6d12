"""What stands around every page: the side bar with the state of the data, the controls, the keys."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from api.pages.address import MONTH, PRESETS, View
from api.pages.figures import duration, iso, moment
from api.pages.page import Asks, Page

STREAM = "/v1/stream"
"""Where the API tells what is new; live pages need it."""
STALE_SECONDS = 60.0
SETTLED_AFTER = timedelta(minutes=5)
"""After its end an hour has all its counts."""
"""Data older than that is stale: heads alone come every few seconds."""
_SECONDS_KEPT = {"nav": 2.0, "complete": 30.0}


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the side bar."""

    name: str
    title: str
    path: str
    key: str
    """Behind `g`."""
    short: str = ""
    """On a phone's tab."""
    on_phone: bool = False
    has_gap: bool = False


NAV: Sequence[Item] = (
    Item("overview", "Overview", "/", "o", on_phone=True),
    Item("divergence", "Divergence", "/divergence", "d", on_phone=True),
    Item("spend", "Spend", "/spend", "s", on_phone=True),
    Item("heads", "Heads", "/heads", "h", on_phone=True),
    Item("alerts", "Breakers, alerts", "/alerts", "b", "Alerts", on_phone=True),
    Item("requests", "Requests", "/requests", "r"),
    Item("sql", "SQL", "/sql", "q"),
    Item("upstreams", "Upstreams", "/upstreams", "u", has_gap=True),
    Item("data", "Data", "/data", "a"),
)


SHORTCUTS: Sequence[tuple[Sequence[str], str]] = (
    (("g", "o"), "Overview; g d, s, h, b, r, q, u, a likewise"),
    (("/",), "find a page, upstream, finding, request"),
    (("j", "k"), "next, previous row"),
    (("Enter",), "open; Esc back, filters kept"),
    (("n", "p"), "next, previous pair"),
    (("m",), "masks on and off in a diff"),
    (("f",), "filter by the value under the pointer"),
    (("1", "5"), "the last 15 min to 30 days"),
    (("[", "]"), "range back, forward"),
    (("Backspace",), "the range as it was"),
    (("b",), "the range before beside it, or not"),
    (("Space",), "live or paused"),
    (("c",), "copy the link, or the report of a finding"),
    (("t",), "light or dark"),
    (("?",), "this list"),
)


@dataclass(frozen=True, slots=True)
class DataState:
    """How good the data is."""

    is_known: bool
    age: str = ""
    stored_at: str = ""
    """ISO; for counting on in the page."""
    is_stale: bool = False
    complete: str = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the side bar and the controls show, asked at most every few seconds for all readers."""

    networks: Sequence[str]
    n_firing: int
    data: DataState


NOTHING = Surroundings((), 0, DataState(False, complete="Data state unknown"))


class Watch:
    """Asks what stands around every page, and keeps the answer a little while."""

    def __init__(self, asks: Asks, clock: Callable[[], float] = time.monotonic) -> None:
        self._asks = asks
        self._clock = clock
        self._kept: dict[str, tuple[float, list[dict[str, Any]]]] = {}

    async def around(self, now: datetime) -> Surroundings:
        """
        Return the state now; what cannot be told is left out, for a page lives without it.

        Raises:
            StoreError, Refused: ClickHouse does not answer.
        """
        stages, firing, networks, whole = await asyncio.gather(
            self._rows("nav", "stages"),
            self._rows("firing", "alerts_firing"),
            self._rows("complete", "networks"),
            self.hours(),
        )
        return Surroundings(
            [row["network"] for row in networks],
            len(firing),
            data_state(stages, whole, now),
        )

    async def hours(self) -> list[dict[str, Any]]:
        """
        Return the last six hours as the question `reconcile` says them, half a minute old at most.

        Raises:
            StoreError, Refused: ClickHouse does not answer.
        """
        return await self._rows("complete2", "reconcile", {"from": "now-6h"})

    async def _rows(self, key: str, name: str, given: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        seconds = _SECONDS_KEPT["complete" if key.startswith("complete") else "nav"]
        kept = self._kept.get(name)
        if kept is not None and self._clock() - kept[0] < seconds:
            return kept[1]
        rows = (await self._asks.ask(name, given or {})).records()
        self._kept[name] = (self._clock(), rows)
        return rows


def is_young(hours: Sequence[Mapping[str, Any]], now: datetime) -> bool:
    """Return whether all that is stored is of the running hour; `hours` are rows of the question `reconcile`."""
    known = [row["hour"] for row in hours if row["hour"].year > 1970]
    return bool(known) and min(known) >= now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def data_state(stages: Sequence[Mapping[str, Any]], hours: Sequence[Mapping[str, Any]], now: datetime) -> DataState:
    """
    Return how old the data is, and to which hour it is whole.

    Args:
        stages: rows of the question `stages`.
        hours: rows of the question `reconcile`, oldest first.
        now: aware.
    """
    stored = [row["last_stored_at"] for row in stages if row["last_stored_at"] is not None]
    stored = [at for at in stored if at.year > 1970]
    if not stored:
        return DataState(False, complete="Nothing stored yet")
    last = max(stored)
    age = max((now - last).total_seconds(), 0.0)
    odd = [row["hour"] for row in hours if not row["is_whole"] and row["hour"].year > 1970]
    this_hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    past = [hour for hour in odd if hour < this_hour and now >= hour + timedelta(hours=1) + SETTLED_AFTER]
    complete = f"Incomplete at {moment(past[0], now)}" if past else f"Complete to {moment(this_hour, now)}"
    return DataState(True, str(duration(age if age >= 1 else round(age, 1))), iso(last), age > STALE_SECONDS, complete)


@dataclass(frozen=True, slots=True)
class Link:
    """One line of the side bar, as a page shows it."""

    title: str
    short: str
    href: str
    key: str
    is_here: bool
    on_phone: bool
    has_gap: bool
    n: int


@dataclass(frozen=True, slots=True)
class Preset:
    words: str
    href: str
    key: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """What `frame.html` shows."""

    title: str
    theme: str
    nav: Sequence[Link]
    data: DataState
    clock: str
    networks: Sequence[str]
    network_words: str
    kept_for_networks: Sequence[tuple[str, str]]
    kept_for_range: Sequence[tuple[str, str]]
    presets: Sequence[Preset]
    from_text: str
    to_text: str
    zone: str
    """Times are shown in it; empty = UTC."""
    utc_href: str
    stream: str
    has_range: bool
    can_be_live: bool
    reader: str
    """Whose token it is; empty where none is asked for."""
    compare_href: str
    """This address with the range before beside it, or without; empty where the page compares nothing."""
    shortcuts: Sequence[tuple[Sequence[str], str]] = SHORTCUTS


def frame(page: Page, view: View, around: Surroundings, *, title: str = "", theme: str = "", reader: str = "") -> Frame:
    """Return what stands around one page."""
    here = page.here or page.name
    own = [(key, value) for key, value in (view.own or {}).items() if value]
    ends = [("from", view.span.from_text), ("to", view.span.to_text)] if view.is_span_named else []
    live = [("live", "1")] if view.is_live else []
    compare = [("compare", "1")] if view.is_compared else []
    zone = [("tz", view.zone)] if view.zone else []
    presets = [Preset(words, view.with_span(text), key, _is_on(view, text)) for text, (words, key) in PRESETS.items()]
    presets.append(Preset("This month", view.with_span(MONTH), "", _is_on(view, MONTH)))
    return Frame(
        title=title or page.title,
        theme=theme if theme in ("light", "dark") else "",
        nav=[
            Link(
                item.title,
                item.short or item.title,
                view.to(item.path),
                item.key,
                item.name == here,
                item.on_phone,
                item.has_gap,
                around.n_firing if item.name == "alerts" else 0,
            )
            for item in NAV
        ],
        data=around.data,
        clock=f"{view.now:%H:%M:%S}",
        networks=around.networks,
        network_words=", ".join(view.networks) or "all networks",
        kept_for_networks=[*ends, *live, *compare, *zone, *own],
        kept_for_range=[
            *(("net", network) for network in view.networks),
            *(() if page.can_compare else compare),
            *zone,
            *own,
        ],
        presets=presets,
        from_text=view.span.from_text if view.span.is_running else iso(view.span.start),
        to_text=view.span.to_text if view.span.is_running else iso(view.span.end),
        zone=view.zone,
        utc_href=view.with_zone(""),
        stream=STREAM,
        has_range=page.has_range,
        can_be_live=page.can_be_live and view.span.is_running,
        reader=reader,
        compare_href=view.with_compared(not view.is_compared) if page.can_compare else "",
    )


def _is_on(view: View, text: str) -> bool:
    return view.span.is_running and view.span.from_text == text
