"""
Alerts in the words of a page: what is wrong, about what, how much, and which page explains it.

The shipped rules have words of their own; any other rule is told by its name, its subject and its numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.pages import figures
from api.pages.address import View

GLYPHS: Mapping[str, str] = {
    "page": "bad",
    "critical": "bad",
    "error": "bad",
    "ticket": "warn",
    "warning": "warn",
    "info": "off",
}
"""Severity → glyph: octagon means act, triangle means look."""


@dataclass(frozen=True, slots=True)
class Told:
    """One firing alert."""

    rule: str
    subject: str
    glyph: str
    what: str
    """Wrong?"""
    about: str
    since: datetime
    value: str
    limit: str
    href: str
    """What next: the page that explains it."""
    button: str
    kind: str
    """Which evidence belongs to it: head, breaker, spend, difference, data, or empty."""
    network: str = ""
    upstream: str = ""


def told(row: Mapping[str, Any], severity: str, view: View) -> Told:
    """
    Return a firing alert in words.

    Args:
        row: of the question `alerts_firing`.
        severity: of its rule; empty where the rule is gone.
    """
    rule, subject, value, limit = row["rule"], row["subject"], float(row["value"]), float(row["threshold"])
    network, _, rest = subject.partition("/") if "/" in subject else ("", "", subject)
    upstream, _, method = rest.partition("/")
    said = _words(rule, subject, network, upstream, method, value, limit, view)
    return Told(
        rule, subject, GLYPHS.get(severity, "warn"), since=row["fired_at"], network=network, upstream=upstream, **said
    )


def _words(
    rule: str, subject: str, network: str, upstream: str, method: str, value: float, limit: float, view: View
) -> dict[str, str]:
    shown, bound = str(figures.number(value)) or "0", str(figures.number(limit)) or "0"
    share, top = str(figures.percent(value)), str(figures.percent(limit))
    usd, usd_limit = f"${value:,.2f}", f"${limit:,.2f}"
    other = {"net": network or None}
    match rule:
        case "HeadLag":
            return _said(
                f"Head of {upstream} lags {shown} blocks",
                f"{network} · limit {bound} blocks",
                f"{shown} blocks",
                f"{bound} blocks",
                view.to("/heads", **other),
                f"Head of {upstream}",
                "head",
            )
        case "BreakerFlapping":
            return _said(
                f"Breaker of {upstream} opened {shown} times",
                f"{network} · limit {bound} in 10 min",
                f"{shown} times",
                bound,
                view.to("/breakers", upstream=upstream),
                f"Breaker of {upstream}",
                "breaker",
            )
        case "FinalMismatch":
            return _said(
                f"{upstream} differs in {share} of final answers",
                f"{network} · limit {top}",
                share,
                top,
                view.to("/divergence", shadow=upstream, **other),
                "Where they differ",
                "difference",
            )
        case "EmptyVsData":
            where = view.to("/divergence", shadow=upstream, method=method, **other)
            return _said(
                f"{upstream}: {shown} answers empty on one side",
                f"{network} · {method} at final heights",
                f"{shown} pairs",
                "any" if limit == 0 else bound,
                where,
                "Which answers",
                "difference",
            )
        case "FallbackSpend":
            return _said(
                f"Paid fallbacks cost {usd} in 10 min",
                f"{subject} · limit {usd_limit}",
                usd,
                usd_limit,
                view.to("/spend", account=subject),
                "Spend by cause",
                "spend",
            )
        case "BudgetBurn":
            return _said(
                f"Budget of {subject} burns {shown} times too fast",
                f"limit {bound}",
                f"{shown} times",
                bound,
                view.to("/spend", account=subject),
                "Spend by cause",
                "spend",
            )
        case "BudgetSpent" | "BudgetNearlySpent":
            return _said(
                f"{subject} has spent {share} of its month's budget",
                f"limit {top}",
                share,
                top,
                view.to("/spend", account=subject),
                "Spend",
                "spend",
            )
        case "BudgetForecast":
            return _said(
                f"{subject} will pass its budget by {usd}",
                "lower end of the 80 % forecast",
                usd,
                usd_limit,
                view.to("/spend", account=subject),
                "Forecast",
                "spend",
            )
        case "QuotaErrors":
            return _said(
                f"{upstream} refuses: its quota is used up",
                f"{network} · {shown} calls in 10 min",
                f"{shown} calls",
                "any" if limit == 0 else bound,
                view.to(f"/upstreams/{upstream}"),
                upstream,
                "breaker",
            )
        case "ShadowsSilent":
            return _said(
                f"Nothing is mirrored to {upstream}",
                f"{network} · in 15 min",
                shown,
                f"below {bound}",
                view.to(f"/upstreams/{upstream}"),
                upstream,
                "difference",
            )
        case "EventsNotStored":
            return _said(
                f"{shown} events are not stored",
                f"log {subject}",
                f"{shown} events",
                bound,
                view.to("/data"),
                "Where it stops",
                "data",
            )
        case "LogFilling":
            return _said(
                f"Log {subject} is {share} full", f"limit {top}", share, top, view.to("/data"), "Where it stops", "data"
            )
        case "EventsDropped":
            return _said(
                f"{shown} events are lost",
                f"log {subject} is full",
                f"{shown} events",
                bound,
                view.to("/data"),
                "Where it stops",
                "data",
            )
        case "ClockSkew":
            return _said(
                f"The clock of {subject} is {shown} s off",
                f"limit {bound} s",
                f"{shown} s",
                f"{bound} s",
                view.to("/data"),
                "Data",
                "data",
            )
        case "AlertsBlind":
            return _said(
                f"{subject} cannot be asked for {shown} s",
                f"limit {bound} s",
                f"{shown} s",
                f"{bound} s",
                view.to("/alerts"),
                "Alerts",
                "data",
            )
    return _said(
        f"{rule}: {subject}" if subject else rule,
        f"{shown}, limit {bound}",
        shown,
        bound,
        view.to("/alerts", rule=rule),
        "History",
        "",
    )


def _said(what: str, about: str, value: str, limit: str, href: str, button: str, kind: str) -> dict[str, str]:
    return {"what": what, "about": about, "value": value, "limit": limit, "href": href, "button": button, "kind": kind}
