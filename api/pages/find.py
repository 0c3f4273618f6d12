"""Find: a page, an upstream, a rule, a named question, a finding or a request, by what somebody types or pastes."""

import re
from dataclasses import dataclass

from api.pages import known
from api.pages.frame import NAV
from api.pages.page import Around

MOST = 12
_FINDING = re.compile(r"F-[0-9A-Fa-f]{8}")
_REQUEST = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{7,127}")
_HEX = re.compile(r"[0-9a-f]{8,64}|[0-9A-HJKMNP-TV-Z]{26}")


@dataclass(frozen=True, slots=True)
class Match:
    """One place to go to."""

    words: str
    kind: str
    href: str


def matches(text: str, around: Around, questions: tuple[tuple[str, str], ...]) -> list[Match]:
    """
    Return where a text may lead, the likeliest first.

    Args:
        text: as it was typed.
        around: the configuration in force, and what links carry along.
        questions: names of questions, and what they ask.
    """
    wanted = text.strip()
    if not wanted:
        return []
    view, low = around.view, wanted.lower()
    found: list[Match] = []
    if _FINDING.fullmatch(wanted):
        found.append(Match(wanted.upper(), "finding", view.to(f"/divergence/{wanted.upper()}")))
    if _HEX.fullmatch(wanted):
        found.append(Match(wanted, "request", view.to(f"/requests/{wanted}")))
    named = [Match(item.title, "page", view.to(item.path)) for item in NAV]
    named += [
        Match(one.id, f"upstream of {known.short(one.network)}", view.to(f"/upstreams/{one.id}"))
        for one in known.upstreams(around.settings)
    ]
    named += [Match(rule.name, "alert rule", view.to("/alerts", rule=rule.name)) for rule in around.rules]
    named += [Match(name, asks, view.to(f"/sql/{name}")) for name, asks in questions]
    fits = [match for match in named if low in match.words.lower()]
    fits.sort(key=lambda match: not match.words.lower().startswith(low))
    also = [match for match in named if low not in match.words.lower() and low in match.kind.lower()]
    found += fits + also
    if not found and _REQUEST.fullmatch(wanted):
        found.append(Match(wanted, "request", view.to(f"/requests/{wanted}")))
    return found[:MOST]
