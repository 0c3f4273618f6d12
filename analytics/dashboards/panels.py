"""
What a panel, a variable and a dashboard are, as Grafana's JSON.

A file of this folder has `title`, `about`, `panels`, and where it differs `has_network: false` and `last: now-2d`, the
range that is shown first. A panel has the members of `Panel`; `sql`, or `promql`, a list of `expr` and `legend`.
`{networks}` in SQL is the condition for the networks that are chosen at the top of the page.

SQL has the macros of Grafana's ClickHouse plugin: `$__timeFilter(at)` is the range of the page, `$__timeInterval(at)`
a time cut to the page's step, `$__conditionalAll(condition, $network)` true where all networks are chosen. Panels lie
in rows of 24 columns, in the order in which they are given.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import yaml

CLICKHOUSE: Final = {"type": "grafana-clickhouse-datasource", "uid": "gnomon-clickhouse"}
PROMETHEUS: Final = {"type": "prometheus", "uid": "gnomon-prometheus"}
"""As deploy/grafana/provisioning/datasources has them."""

Form = Literal["line", "bars", "number", "table"]
_TYPES: Final[Mapping[Form, str]] = {"line": "timeseries", "bars": "timeseries", "number": "stat", "table": "table"}
WIDTH: Final = 24
SCHEMA_VERSION: Final = 39
OF_NETWORK: Final = "$__conditionalAll(network IN (${network:singlequote}), $network)"
"""Condition: a network that is chosen at the top of the page."""


@dataclass(frozen=True, slots=True)
class Sql:
    """A question in SQL."""

    text: str


@dataclass(frozen=True, slots=True)
class Promql:
    """A question in PromQL; `legend` names its lines by labels, `{{upstream}}`."""

    text: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One question and how its answer is shown."""

    title: str
    asks: tuple[Sql | Promql, ...]
    form: Form
    about: str
    """How to read it, a sentence."""
    unit: str = "short"
    """Grafana's name of a unit: short, percentunit, currencyUSD, µs, bytes, s, reqps."""
    width: int = 8
    height: int = 8
    bad_from: float | None = None
    """A number that has reached it is red."""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One page."""

    uid: str
    title: str
    about: str
    panels: tuple[Panel, ...]
    has_network: bool = True
    """Whether a network can be chosen."""
    last: str = "now-6h"
    """Where its range begins."""

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"{self.uid}.json"

    def text(self) -> str:
        """Return the file's text."""
        return json.dumps(self.document(), indent=1, ensure_ascii=False) + "\n"

    def document(self) -> dict[str, Any]:
        """Return the page as Grafana has it."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.about,
            "tags": ["gnomon"],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": True,
            "timezone": "utc",
            "refresh": "30s",
            "time": {"from": self.last, "to": "now"},
            "links": [_link()],
            "templating": {"list": [_network()] if self.has_network else []},
            "panels": [
                _panel(number, panel, place)
                for number, (panel, place) in enumerate(zip(self.panels, places(self.panels), strict=True), start=1)
            ],
        }


def parse(name: str, text: str) -> Dashboard:
    """
    Return the dashboard of a file.

    Raises:
        ValueError: a member that there is not, or a panel that asks nothing.
    """
    entry = yaml.safe_load(text)
    panels = tuple(_parsed(name, panel) for panel in entry.pop("panels"))
    try:
        return Dashboard(f"gnomon-{name}", panels=panels, **entry)
    except TypeError as error:
        raise ValueError(f"dashboard {name}: {error}") from error


def _parsed(name: str, entry: dict[str, Any]) -> Panel:
    asks: tuple[Sql | Promql, ...] = ()
    if "sql" in entry:
        asks = (Sql(entry.pop("sql").strip().replace("{networks}", OF_NETWORK)),)
    elif "promql" in entry:
        asks = tuple(Promql(ask["expr"], ask.get("legend", "")) for ask in entry.pop("promql"))
    if not asks or entry.get("form") not in _TYPES:
        raise ValueError(f"dashboard {name}: {entry.get('title')!r} needs sql or promql, and a form")
    try:
        return Panel(asks=asks, **entry)
    except TypeError as error:
        raise ValueError(f"dashboard {name}: {entry.get('title')!r}: {error}") from error


def places(panels: Iterable[Panel]) -> list[dict[str, int]]:
    """Return where each panel lies, row by row."""
    found: list[dict[str, int]] = []
    x = y = row_height = 0
    for panel in panels:
        if x + panel.width > WIDTH:
            x, y, row_height = 0, y + row_height, 0
        found.append({"x": x, "y": y, "w": panel.width, "h": panel.height})
        x += panel.width
        row_height = max(row_height, panel.height)
    return found


def _panel(number: int, panel: Panel, place: Mapping[str, int]) -> dict[str, Any]:
    source = CLICKHOUSE if isinstance(panel.asks[0], Sql) else PROMETHEUS
    return {
        "id": number,
        "type": _TYPES[panel.form],
        "title": panel.title,
        "description": panel.about,
        "datasource": source,
        "gridPos": dict(place),
        "targets": [_target(ref, ask, panel.form) for ref, ask in zip("ABCDEFGH", panel.asks, strict=False)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _options(panel.form),
    }


def _target(ref: str, ask: Sql | Promql, form: Form) -> dict[str, Any]:
    if isinstance(ask, Promql):
        return {
            "refId": ref,
            "datasource": PROMETHEUS,
            "editorMode": "code",
            "expr": ask.text,
            "legendFormat": ask.legend or "__auto",
            "range": form in ("line", "bars"),
            "instant": form not in ("line", "bars"),
            **({"format": "table"} if form == "table" else {}),
        }
    return {
        "refId": ref,
        "datasource": CLICKHOUSE,
        "editorType": "sql",
        "queryType": "timeseries" if form in ("line", "bars") else "table",
        "format": 0 if form in ("line", "bars") else 1,
        "rawSql": ask.text,
    }


def _defaults(panel: Panel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "text" if panel.form == "number" else "green", "value": None}]
    if panel.bad_from is not None:
        steps.append({"color": "red", "value": panel.bad_from})
    found: dict[str, Any] = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel.form in ("line", "bars"):
        found["custom"] = (
            {"drawStyle": "bars", "fillOpacity": 60, "stacking": {"mode": "normal", "group": "A"}}
            if panel.form == "bars"
            else {"drawStyle": "line", "fillOpacity": 5, "showPoints": "never", "spanNulls": False}
        )
        found["min"] = 0
    return found


def _options(form: Form) -> dict[str, Any]:
    if form == "number":
        return {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "graphMode": "none"}
    if form == "table":
        return {"showHeader": True, "cellHeight": "sm"}
    return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}


def _link() -> dict[str, Any]:
    return {"type": "dashboards", "title": "Gnomon", "tags": ["gnomon"], "asDropdown": True, "keepTime": True}


NETWORKS: Final = (
    "SELECT DISTINCT network FROM gnomon.requests WHERE at >= now() - INTERVAL 1 DAY ORDER BY network LIMIT 1000"
)
"""What can be chosen at the top of a page."""


def _network() -> dict[str, Any]:
    return {
        "name": "network",
        "label": "Network",
        "type": "query",
        "datasource": CLICKHOUSE,
        "query": NETWORKS,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": ["All"], "value": ["$__all"]},
        "sort": 1,
    }


def asks(dashboards: Sequence[Dashboard]) -> list[tuple[str, Sql | Promql]]:
    """Return every question with the place that it has, variables included."""
    found: list[tuple[str, Sql | Promql]] = [("variable network", Sql(NETWORKS))]
    for dashboard in dashboards:
        found += [(f"{dashboard.uid}: {panel.title}", ask) for panel in dashboard.panels for ask in panel.asks]
    return found
