"""Upstreams: what is configured, and how each does: its score card."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Protocol
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response

from analytics.questions import load
from api import examples, exposed, values
from api.asking import Rows
from api.dependencies import asking_of, in_force, json_response, needs, services_of
from api.errors import Refused
from api.exposed import MAX_TEXT, TIME, add_question
from api.proxies import Said, by_upstream
from gnomon.config.model import Settings

router: Final = APIRouter(tags=["upstreams"])


class Asks(Protocol):
    """What score cards need of `asking.Asking`."""

    async def ask(self, name: str, given: Mapping[str, str] | None = None) -> Rows:
        """Return the answer to a question."""
        ...


add_question(router, "/v1/upstreams/health", "upstream_health")
add_question(router, "/v1/upstreams/errors", "errors_by_class")
add_question(router, "/v1/upstreams/methods", "upstream_methods")

_CARDS: Final[Mapping[str, str]] = {
    "health": "upstream_health",
    "spend": "spend_by_upstream",
    "heads": "head_lag",
    "breaker": "breakers",
    "divergence": "divergence_by_shadow",
}
"""Member of a score card → the question whose rows of the upstream it has."""
_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}
_BLOCK: Final = {"type": ["integer", "null"]}
_MOMENT: Final = {"type": "string", "format": "date-time"}
_CORDON: Final[Mapping[str, Any]] = {
    "project": _TEXT,
    "upstream": _TEXT,
    "at": _MOMENT,
    "until": {**_MOMENT, "type": ["string", "null"], "description": "null: until it is ended."},
    "comment": _TEXT,
    "author": _TEXT,
}
_LIVE: Final[Mapping[str, Any]] = {
    "proxy": {**_TEXT, "description": "Whose word it is."},
    "project": _TEXT,
    "network": _TEXT,
    "upstream": _TEXT,
    "tier": _TEXT,
    "is_verified": {**_FLAG, "description": "Its chain is the network's."},
    "is_syncing": _FLAG,
    "latest": {**_BLOCK, "description": "Its head; null: unknown."},
    "lag_blocks": {**_BLOCK, "description": "Behind the network's head."},
    "trouble": {**_TEXT, "description": "What puts it behind other primaries, or why its chain is not verified."},
    "held": {**_TEXT, "description": "Why nobody calls it for a while: quota or rate_limited; empty: it is called."},
    "breakers": {"type": "object", "additionalProperties": _TEXT, "description": "Pattern of methods → state."},
    "cordon": {
        "type": ["object", "null"],
        "required": list(_CORDON),
        "properties": _CORDON,
        "description": "How it is kept out by hand; null: it is not.",
    },
}
LIVE: Final[Mapping[str, Any]] = {"type": "object", "required": list(_LIVE), "properties": _LIVE}
"""JSON schema of how an upstream stands at one proxy now."""
_ROW: Final[Mapping[str, Any]] = {
    "upstream": _TEXT,
    "project": {**_TEXT, "description": "Empty where it is not configured any more."},
    "network": _TEXT,
    "tier": _TEXT,
    "vendor": _TEXT,
    "account": _TEXT,
    "host": {**_TEXT, "description": "Of its endpoint; the rest may be a secret."},
    "is_configured": {"type": "boolean", "description": "false: it was called in the range, and is gone since."},
    "sample_rate": {
        "type": ["number", "null"],
        "description": "Of a shadow: share of requests mirrored to it; else null.",
    },
    "live": {"type": "array", "items": LIVE, "description": "How it stands at each proxy that answers, now."},
    **{
        member: {
            "type": "array",
            "items": exposed.row(load(name)),
            "description": f"Its rows of `gnomon query {name}`; empty where there are none in the range.",
        }
        for member, name in _CARDS.items()
    },
}
_COLLECTION: Final = {
    "type": "object",
    "required": ["items", "next_cursor", "from", "to", "proxies"],
    "properties": {
        "items": {"type": "array", "items": {"type": "object", "required": list(_ROW), "properties": _ROW}},
        "next_cursor": {"type": "null"},
        "from": {"type": "string", "format": "date-time"},
        "to": {"type": "string", "format": "date-time"},
        "proxies": {
            "type": "array",
            "description": "Who was asked for `live`.",
            "items": {
                "type": "object",
                "required": ["address", "error"],
                "properties": {
                    "address": _TEXT,
                    "error": {**_TEXT, "description": "Why it did not answer; empty: it did."},
                },
            },
        },
    },
}
_ITEM: Final[Mapping[str, Any]] = {
    "upstream": "mine", "project": "main", "network": "evm:1", "tier": "primary", "vendor": "", "account": "",
    "host": "127.0.0.1", "is_configured": True, "sample_rate": None, "live": [],
    **{member: [examples.row(load(name))] for member, name in _CARDS.items()},
}  # fmt: skip
_EXAMPLE: Final = {
    "items": [_ITEM], "next_cursor": None, "from": "2026-12-01T00:00:00.000Z", "to": "2026-12-02T00:00:00.000Z",
    "proxies": [{"address": "http://127.0.0.1:4000", "error": ""}],
}  # fmt: skip
_METHODS: Final = load("upstream_methods")
_ERRORS: Final = load("errors_by_class")
_MORE: Final[Mapping[str, Any]] = {
    "methods": {"type": "array", "items": exposed.row(_METHODS), "description": "How it answers each method."},
    "errors": {"type": "array", "items": exposed.row(_ERRORS), "description": "What goes wrong there."},
}

UpstreamId = Annotated[str, Path(min_length=1, max_length=MAX_TEXT, description="The upstream's id.")]
From = Annotated[str, Query(alias="from", pattern=TIME, description="Start of the range, included.")]
To = Annotated[str, Query(pattern=TIME, description="End of the range, not included.")]
Project = Annotated[
    str, Query(max_length=MAX_TEXT, description="Its project, where several have an upstream of that name.")
]


@router.get(
    "/v1/upstreams",
    summary="Which upstreams are there, and how do they do?",
    description="One row per upstream of the configuration, and per one that was called in the range and is gone. "
    "Calls are counted by network and upstream: two projects that share both share the card.",
    response_class=Response,
    dependencies=[Depends(needs("read"))],
    responses={200: {"content": {"application/json": {"schema": _COLLECTION, "example": _EXAMPLE}}}},
)
async def all_of_them(
    request: Request,
    start: From = "now-24h",
    to: To = "now",
    network: Annotated[str, Query(max_length=MAX_TEXT, description="Only this network.")] = "",
) -> Response:
    """Answer with every upstream and its score card."""
    given = {"from": start, "to": to, "network": network}
    (items, health), states = await asyncio.gather(
        cards(asking_of(request), in_force(request).settings, given), services_of(request).proxies.states()
    )
    add_live(items, states)
    assert health.start is not None
    assert health.end is not None
    said = {"from": values.moment(health.start), "to": values.moment(health.end)}
    asked = [{"address": state.address, "error": state.reason} for state in states]
    return json_response({"items": items, "next_cursor": None, **said, "proxies": asked})


@router.get(
    "/v1/upstreams/{upstream:id}",
    summary="How does one upstream do?",
    description="Its score card, with its methods and errors.",
    response_class=Response,
    dependencies=[Depends(needs("read"))],
    responses={200: {"content": {"application/json": {
        "schema": {"type": "object", "required": [*_ROW, *_MORE], "properties": {**_ROW, **_MORE}},
        "example": {**_ITEM, "methods": [examples.row(_METHODS)], "errors": [examples.row(_ERRORS)]}}}}},
)  # fmt: skip
async def one(
    request: Request, upstream: UpstreamId, start: From = "now-24h", to: To = "now", project: Project = ""
) -> Response:
    """Answer with one upstream's score card."""
    asking = asking_of(request)
    given = {"from": start, "to": to}
    (items, _), states = await asyncio.gather(
        cards(asking, in_force(request).settings, given), services_of(request).proxies.states()
    )
    add_live(items, states)
    found = [item for item in items if item["upstream"] == upstream and project in ("", item["project"])]
    item = only(found, upstream)
    own = {**given, "network": item["network"]}
    methods = await asking.ask("upstream_methods", {**own, "upstream": upstream})
    errors = (await asking.ask("errors_by_class", own)).items()
    more = {"methods": methods.items(), "errors": [row for row in errors if row["upstream"] == upstream]}
    return json_response({**item, **more})


def named(settings: Settings, upstream: str, project: str) -> dict[str, Any]:
    """
    Return an upstream of the configuration.

    Raises:
        Refused: there is none, or `project` has to say which.
    """
    return only(
        [i for i in _configured(settings) if i["upstream"] == upstream and project in ("", i["project"])], upstream
    )


def add_live(items: Iterable[dict[str, Any]], states: Sequence[Said]) -> None:
    """Add to each upstream how it stands at the proxies now."""
    found = by_upstream(states)
    for item in items:
        item["live"] = [live(state) for state in found.get((item["project"], item["upstream"]), ())]


def live(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return how an upstream stands at a proxy, times as JSON has them here."""
    cordon = state["cordon"]
    if cordon is not None:
        cordon = {**cordon, **{name: _moment(cordon[name]) for name in ("at", "until")}}
    return {**state, "cordon": cordon}


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else values.moment(datetime.fromtimestamp(seconds, UTC))


def only(found: Sequence[dict[str, Any]], upstream: str) -> dict[str, Any]:
    """
    Return the one that was found.

    Raises:
        Refused: there is none, or `project` has to say which.
    """
    if not found:
        raise Refused("not-found", f"there is no upstream {upstream!r}; /v1/upstreams has them")
    if len(found) > 1:
        projects = ", ".join(item["project"] or "(none)" for item in found)
        raise Refused(
            "invalid-parameter",
            f"several projects have an upstream {upstream!r}: {projects}; say which",
            errors=[{"parameter": "project", "detail": f"is needed: one of {projects}"}],
        )
    return found[0]


async def cards(asking: Asks, settings: Settings, given: Mapping[str, str]) -> tuple[list[dict[str, Any]], Rows]:
    """
    Return each upstream with its score card, and the answer whose range holds for all.

    Args:
        asking: asks the questions.
        settings: in force.
        given: `from`, `to`, and `network` where only one is wanted.
    """
    wanted = given.get("network", "")

    async def ask(name: str) -> Rows:
        names = {parameter.name for parameter in load(name).parameters}
        return await asking.ask(name, {key: value for key, value in given.items() if key in names})

    answers = dict(zip(_CARDS, await asyncio.gather(*map(ask, _CARDS.values())), strict=True))
    rows: dict[str, dict[tuple[str, str], list[dict[str, Any]]]] = {}
    for member, answer in answers.items():
        by_upstream = rows[member] = {}
        for row in answer.items():
            name = row["shadow_upstream"] if member == "divergence" else row["upstream"]
            by_upstream.setdefault((row["network"], name), []).append(row)
    items = [item for item in _configured(settings) if wanted in ("", item["network"])]
    known = {(item["network"], item["upstream"]) for item in items}
    items += [_gone(*key, rows) for key in sorted({key for found in rows.values() for key in found} - known)]
    for item in items:
        key = (item["network"], item["upstream"])
        item |= {member: rows[member].get(key, []) for member in _CARDS}
    return items, answers["health"]


def _configured(settings: Settings) -> Iterable[dict[str, Any]]:
    for project in settings.projects:
        for upstream in project.upstreams:
            yield {
                "upstream": upstream.id,
                "project": project.id,
                "network": upstream.network,
                "tier": upstream.tier,
                "vendor": upstream.vendor,
                "account": upstream.account,
                "host": _host(upstream.display_endpoint),
                "is_configured": True,
                "sample_rate": upstream.shadow.sample_rate if upstream.shadow is not None else None,
            }


def _gone(
    network: str, upstream: str, rows: Mapping[str, Mapping[tuple[str, str], list[dict[str, Any]]]]
) -> dict[str, Any]:
    """Return an upstream of which only rows tell."""
    key = (network, upstream)
    seen = {**(rows["health"].get(key) or [{}])[0], **(rows["spend"].get(key) or [{}])[0]}
    said = {member: seen.get(member, "") for member in ("tier", "vendor", "account")}
    return {
        "upstream": upstream, "project": "", "network": network, **said, "host": "", "is_configured": False,
        "sample_rate": None,
    }  # fmt: skip


def _host(endpoint: str) -> str:
    try:
        return urlsplit(endpoint).hostname or ""
    except ValueError:
        return ""
