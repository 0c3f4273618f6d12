"""Which members do not count, and which differences are forgiven: what is in force, preset and configuration merged."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from api import rules
from api.dependencies import in_force, json_response, needs
from api.exposed import MAX_TEXT
from gnomon.compare import masks, presets, tolerances
from gnomon.config.model import ANY_METHOD, Settings, Upstream

router: Final = APIRouter(tags=["divergence"])

_TEXT: Final = {"type": "string"}
_RULE: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["text", "source"],
        "properties": {"text": _TEXT, "source": {**_TEXT, "description": "preset, or the setting that has it."}},
    },
}
_ROW: Final[Mapping[str, Any]] = {
    "project": _TEXT,
    "network": _TEXT,
    "shadow_upstream": _TEXT,
    "method": {**_TEXT, "description": "`*`: every method that has no row of its own, and what holds for all."},
    "masks": {**_RULE, "description": "Members of the result that do not count."},
    "tolerances": {**_RULE, "description": "Differences that are forgiven: a class, or CLASS@PATH."},
    "mask_version": {**_TEXT, "description": "As verdicts store it."},
    "tolerance_version": {**_TEXT, "description": "As verdicts store it."},
}
_SCHEMA: Final = {
    "type": "object",
    "required": ["items", "next_cursor", "preset_version"],
    "properties": {
        "items": {"type": "array", "items": {"type": "object", "required": list(_ROW), "properties": _ROW}},
        "next_cursor": {"type": "null"},
        "preset_version": _TEXT,
    },
}
_EXAMPLE: Final = {
    "items": [
        {
            "project": "main", "network": "evm:1", "shadow_upstream": "candidate", "method": "eth_getLogs",
            "masks": [{"text": "*.blockTimestamp", "source": "preset"}],
            "tolerances": [{"text": "hex_case", "source": "gnomon.shadow.tolerate"}],
            "mask_version": "2f1c0a7b9d3e4f50+2026-11-1", "tolerance_version": "hex_case",
        }
    ],
    "next_cursor": None,
    "preset_version": presets.VERSION,
}  # fmt: skip

_Filter = Annotated[str, Query(max_length=MAX_TEXT)]


@router.get(
    "/v1/masks",
    summary="Which masks and tolerances are in force?",
    description="One row per shadow and method that has any: the masks of the chain's family and the configured ones, "
    "as verdicts from now on use them.",
    response_class=Response,
    dependencies=[Depends(needs("read"))],
    responses={200: {"content": {"application/json": {"schema": _SCHEMA, "example": _EXAMPLE}}}},
)
async def in_use(
    request: Request,
    network: Annotated[str, Query(max_length=MAX_TEXT, description="Only this network.")] = "",
    shadow_upstream: Annotated[str, Query(max_length=MAX_TEXT, description="Only this shadow.")] = "",
    method: Annotated[str, Query(max_length=MAX_TEXT, description="Only this method.")] = "",
) -> Response:
    """Answer with the masks and tolerances in force."""
    wanted = {"network": network, "shadow_upstream": shadow_upstream, "method": method}
    items = [
        row
        for row in rows(in_force(request).settings)
        if all(not value or row[name] == value for name, value in wanted.items())
    ]
    return json_response({"items": items, "next_cursor": None, "preset_version": presets.VERSION})


def rows(settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield what is in force for each shadow and method."""
    everywhere = settings.gnomon.shadow.tolerate
    for project in settings.projects:
        for upstream in project.upstreams:
            if upstream.shadow is None:
                continue
            own = upstream.shadow
            named = {*presets.methods_of(upstream.network), *own.ignore_fields, *own.tolerate, *everywhere}
            for method in (ANY_METHOD, *sorted(named - {ANY_METHOD})):
                row = _row(settings, upstream, method)
                if row["masks"] or row["tolerances"]:
                    yield {"project": project.id, **row}


def _row(settings: Settings, upstream: Upstream, method: str) -> dict[str, Any]:
    masked = rules.stated_masks(upstream, method)
    forgiven = rules.stated_tolerances(settings, upstream, method)
    return {
        "network": upstream.network,
        "shadow_upstream": upstream.id,
        "method": method,
        "masks": [{"text": one.text, "source": one.setting} for one in masked],
        "tolerances": [{"text": one.text, "source": one.setting} for one in forgiven],
        "mask_version": rules.mask_version(upstream.network, method, masks.compile(one.text for one in masked)),
        "tolerance_version": tolerances.compile(one.text for one in forgiven).version,
    }
