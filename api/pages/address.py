"""
The state of a page is its address: which networks, which range, what else it was asked.

    /divergence?net=evm:1&from=now-7d&to=now&method=eth_call

`net` (repeatable), `from`, `to` (ISO 8601 UTC, or `now-3h`; half-open), `live`, `compare` and `tz` (the zone that times
are shown in, never one that they are read in) are common to all pages: a link to another page carries them along once
an address has named them. Everything else belongs to one page.
"""

import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from analytics.questions import BadParameter, moment
from api.pages.figures import day, duration, iso

PRESETS: Mapping[str, tuple[str, str]] = {
    "now-15m": ("Last 15 min", "1"),
    "now-3h": ("Last 3 h", "2"),
    "now-24h": ("Last 24 h", "3"),
    "now-7d": ("Last 7 days", "4"),
    "now-30d": ("Last 30 days", "5"),
}
"""What `from` may be with `to` now: words, and the key that sets it."""
HOURS, MINUTES = "now-3h", "now-15m"
MONTH = "month"
"""`from=month`: since the first of this month, UTC."""
_COMMON = ("net", "from", "to", "live", "compare", "tz")
WHOLE = "whole"
"""`whole=1` puts slow panels into the first answer; no link carries it along."""


class BadAddress(ValueError):
    """A part of an address that cannot be read, in words."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of time, half-open, and how the address said it."""

    start: datetime
    end: datetime
    from_text: str
    to_text: str

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()

    @property
    def is_running(self) -> bool:
        """Whether it ends now, so that it goes on."""
        return self.to_text == "now"

    def place(self, at: datetime) -> float:
        """Return where an instant lies, from 0 to 1; outside is cut."""
        return min(max((at - self.start).total_seconds() / self.seconds, 0.0), 1.0)

    def place_words(self, place: float) -> str:
        """Return the time of a place from 0 to 1 in UTC, `02:12:04`."""
        return f"{self.start + timedelta(seconds=self.seconds * place):%H:%M:%S}"


def span(from_text: str, to_text: str, now: datetime) -> Span:
    """
    Return the range that two texts mean.

    Args:
        now: aware UTC, to the second, so that the parts of one page agree.

    Raises:
        BadAddress: no time, or nothing between them.
    """
    try:
        if from_text == MONTH:
            start = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        else:
            start = moment("from", from_text, now)
        end = moment("to", to_text, now)
    except BadParameter as error:
        raise BadAddress(str(error)) from None
    except OverflowError:
        raise BadAddress(f"from ({from_text}) or to ({to_text}) is out of range") from None
    if end <= start:
        raise BadAddress(f"to ({to_text}) is not after from ({from_text})")
    return Span(start, end, from_text, to_text)


@dataclass(frozen=True, slots=True)
class View:
    """Where a page is: its path and all that its address says."""

    path: str
    now: datetime
    span: Span
    networks: tuple[str, ...] = ()
    """Empty = all."""
    is_live: bool = False
    is_span_named: bool = False
    """Whether the address named the range; else it is the page's own default."""
    is_compared: bool = False
    """Whether what the page says stands beside the same of the range before."""
    zone: str = ""
    """In which times are shown, by its IANA name; empty = UTC."""
    own: Mapping[str, str] | None = None
    """What only this page knows."""

    @property
    def clock(self) -> datetime:
        """Now in the zone that times are shown in: for showing, never for reckoning, which stays in UTC."""
        return self.now.astimezone(ZoneInfo(self.zone)) if self.zone else self.now

    @property
    def zone_words(self) -> str:
        """The zone that times are shown in, as it is written beside them."""
        return self.zone.rpartition("/")[2].replace("_", " ") + " time" if self.zone else "UTC"

    @property
    def network(self) -> str:
        """The network asked for, where it is one; empty = all or several."""
        return self.networks[0] if len(self.networks) == 1 else ""

    def get(self, name: str, default: str = "") -> str:
        """Return a parameter of this page."""
        return (self.own or {}).get(name, default)

    def common(self) -> list[tuple[str, str]]:
        """Return what a link to any page carries along."""
        pairs = [("net", network) for network in self.networks]
        if self.is_span_named:
            pairs += [("from", self.span.from_text), ("to", self.span.to_text)]
        if self.is_live:
            pairs.append(("live", "1"))
        if self.is_compared:
            pairs.append(("compare", "1"))
        if self.zone:
            pairs.append(("tz", self.zone))
        return pairs

    def to(self, path: str, **more: str | None) -> str:
        """Return the address of another page, with what is common; None and empty values are left out."""
        return address(path, self.common() + [(key, value) for key, value in more.items() if value])

    def here(self, **changes: str | None) -> str:
        """Return this address with some parameters changed; None takes one away."""
        own = {**(self.own or {}), **changes}
        return address(self.path, self.common() + [(key, value) for key, value in own.items() if value])

    @property
    def action(self) -> str:
        """The address that a form of this page is sent to; its fields become the query."""
        return address(self.path, ())

    def part(self, name: str) -> str:
        """Return the address of one panel of this page."""
        base = self.path.rstrip("/")
        own = list((self.own or {}).items())
        return address(f"{base}/_{name}", self.common() + own)

    def with_networks(self, networks: Sequence[str]) -> str:
        """Return this address for other networks."""
        return replace(self, networks=tuple(networks)).here()

    def with_span(self, from_text: str, to_text: str = "now") -> str:
        """Return this address for another range."""
        return replace(self, span=replace(self.span, from_text=from_text, to_text=to_text), is_span_named=True).here()

    def with_compared(self, is_compared: bool) -> str:
        """Return this address with or without the range before beside it."""
        return replace(self, is_compared=is_compared).here()

    def with_zone(self, zone: str) -> str:
        """Return this address with its times shown in another zone; empty = UTC."""
        return replace(self, zone=zone).here()

    def before(self) -> "View":
        """
        Return the same page over the range before: as long, and up to where this one begins.

        The month so far is compared with as much of the month before.
        """
        start, end = self.span.start, self.span.end
        if self._is_month:
            first = (start - timedelta(days=1)).replace(day=1)
            start, end = first, min(first + (end - start), start)
        else:
            start, end = start - (end - start), start
        span = Span(start, end, iso(start), iso(end))
        return replace(self, span=span, is_span_named=True, is_compared=False, is_live=False)

    @property
    def before_words(self) -> str:
        """The range before, as it is spoken of: `the 3 h before`, `the same part of November`."""
        if self._is_month:
            return f"the same part of {self.before().span.start:%B}"
        return f"the {duration(self.span.seconds)} before"

    @property
    def _is_month(self) -> bool:
        return self.span.is_running and self.span.from_text == MONTH

    def shorter(self) -> list[tuple[str, str]]:
        """Return the longest preset that is shorter than the range: words and address; empty where none is."""
        for text, (words, _) in list(PRESETS.items())[::-1]:
            if (self.now - moment("from", text, self.now)).total_seconds() < self.span.seconds - 1:
                return [(words, self.with_span(text))]
        return []

    def fixed(self) -> str:
        """Return this address with its times written out, so that it shows the same to others, and not live."""
        return replace(self, is_live=False).with_span(iso(self.span.start), iso(self.span.end))

    def moved(self, steps: int) -> str:
        """Return this address for the range as many whole ranges later (or earlier); not beyond now."""
        shift = timedelta(seconds=self.span.seconds * steps)
        start, end = self.span.start + shift, self.span.end + shift
        if end >= self.now:
            start, end = self.now - timedelta(seconds=self.span.seconds), self.now
        return replace(self, is_live=False).with_span(iso(start), iso(end))

    def words(self) -> str:
        """Return the range in words: `Last 3 h`, `November 2026`, or its two ends."""
        if self.span.is_running and self.span.from_text in PRESETS:
            return PRESETS[self.span.from_text][0]
        if self._is_month:
            return f"{self.span.start:%B %Y}"
        return f"{_short(self.span.start, self.clock)} to {_short(self.span.end, self.clock)}"

    def words_within(self) -> str:
        """Return the range in words, as they stand within a phrase: `last 3 h`."""
        words = self.words()
        return words[0].lower() + words[1:] if words.startswith("Last ") else words


def view(
    path: str, query: Sequence[tuple[str, str]], now: datetime, *, default_from: str, own: Sequence[str] = ()
) -> View:
    """
    Return what an address says.

    Args:
        query: names and values, as they came.
        default_from: the page's own range, until the address names one.
        own: parameters that only this page knows; others than these and the common ones are an error.

    Raises:
        BadAddress: in words.
    """
    now = now.astimezone(UTC).replace(microsecond=0)
    found: dict[str, str] = {}
    networks: list[str] = []
    for name, value in query:
        if name == WHOLE:
            continue
        if name not in _COMMON and name not in own:
            raise BadAddress(f"this page has no parameter {name!r}; it has: {', '.join((*_COMMON, *own))}")
        if name == "net":
            networks += [value] if value and value not in networks else []
        else:
            found[name] = value
    is_named = bool(found.get("from") or found.get("to"))
    asked = span(found.get("from") or default_from, found.get("to") or "now", now)
    return View(
        path=path,
        now=now,
        span=asked,
        networks=tuple(networks),
        is_live=found.get("live") == "1",
        is_span_named=is_named,
        is_compared=found.get("compare") == "1",
        zone=_zone(found.get("tz", "")),
        own={name: found[name] for name in own if found.get(name)},
    )


def address(path: str, pairs: Sequence[tuple[str, str]]) -> str:
    """
    Return the address of a path with a query; the path as it is named, for an upstream's id may have any character.

    >>> address("/upstreams/a/b?c", [("from", "now-1h")])
    '/upstreams/a/b%3Fc?from=now-1h'
    """
    query = urllib.parse.urlencode(pairs, safe=":*$[].,/@", quote_via=urllib.parse.quote)
    quoted = urllib.parse.quote(path, safe="/:@")
    return f"{quoted}?{query}" if query else quoted


def _zone(name: str) -> str:
    """
    Return a zone's name, empty for UTC.

    Raises:
        BadAddress: this machine knows no such zone.
    """
    try:
        return "" if name in ("", "UTC") else ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadAddress(f"tz ({name}) is no time zone such as Europe/Berlin") from None


def _short(at: datetime, now: datetime) -> str:
    return f"{day(at, now)} {at.astimezone(now.tzinfo):%H:%M}"


def ticks(asked: Span, now: datetime, *, most: int = 7) -> list[tuple[float, str]]:
    """
    Return the marks of a time axis at round times: places from 0 to 1, and words.

    Args:
        now: aware; its zone is the one that times are shown in.
    """
    for step in (60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 5 * 86400, 10 * 86400):
        if asked.seconds / step <= most:
            break
    else:
        step = 30 * 86400
    # Round in the zone that is shown: its midnight is no round time of UTC.
    offset = now.utcoffset() or timedelta()
    shift = int(offset.total_seconds())
    first = -(-(int(asked.start.timestamp()) + shift) // step) * step - shift
    marks = []
    for second in range(first, int(asked.end.timestamp()) + 1, step):
        at = datetime.fromtimestamp(second, now.tzinfo)
        words = (
            day(at, now) if step >= 86400 or (at.hour == at.minute == 0 and asked.seconds > 86400) else f"{at:%H:%M}"
        )
        marks.append((asked.place(at), words))
    return marks
