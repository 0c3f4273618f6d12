"""A pair judged at once with rules that are given: what a mask or a tolerance would do before it is in force."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from xxhash import xxh3_128_hexdigest

from api import bodies, examples, rules, values
from api.asking import Rows
from api.bodies import wrong
from api.dependencies import asking_of, in_force, json_response, needs, services_of
from api.errors import Refused
from api.exposed import MAX_TEXT, TIME
from api.problems import PROBLEMS_KEY
from api.rules import Rule
from gnomon.compare import masks, tolerances
from gnomon.compare.cases import BadCase, read_case
from gnomon.compare.envelope import read
from gnomon.compare.errors import MaskError, ToleranceError
from gnomon.compare.exact import NotJson, TooDeep
from gnomon.compare.findings import Finding
from gnomon.compare.judge import Answer, Policy, Question
from gnomon.compare.masks import MAX_MASK_CHARACTERS
from gnomon.compare.preview import Effect, Elsewhere, Kind, Preview, elsewhere, preview

router: Final = APIRouter(tags=["comparisons"])

MAX_RULES: Final = 100
MAX_FINDINGS: Final = 1000
_PAIR_MEMBERS: Final = frozenset(
    ("network", "method", "params", "head", "primary", "primary_raw", "shadow", "shadow_raw")
)

_Rules = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=MAX_MASK_CHARACTERS + 100)]], Meta(max_length=MAX_RULES)
]
_Text = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
_Moment = Annotated[str, Meta(pattern=TIME)]


class Wanted(Struct, forbid_unknown_fields=True, rename={"start": "from", "end": "to"}):
    """What is to be judged, and by which rules."""

    request_id: Annotated[_Text | None, Meta(description="A stored pair: the request's id …")] = None
    shadow: Annotated[_Text | None, Meta(description="… and its shadow; may be left out where there is one.")] = None
    pair: Raw | UnsetType = UNSET
    masks: Annotated[
        _Rules | None,
        Meta(description="Masks of the verdict, all of them. Left out or null: those in force for the pair."),
    ] = None
    tolerate: Annotated[
        _Rules | None,
        Meta(description="Tolerances (`CLASS` or `CLASS@PATH`), all of them. Left out or null: those in force."),
    ] = None
    elsewhere: Annotated[
        bool, Meta(description="Also say what the rules that are not in force would do to stored pairs of the method.")
    ] = False
    start: Annotated[_Moment | None, Meta(description="Of the stored pairs; default now-7d.")] = None
    end: Annotated[_Moment | None, Meta(description="Of the stored pairs, not included; default now.")] = None


_HEIGHT: Final = {"type": ["integer", "null"], "minimum": 0}
_WIRE: Final = "the wire text of a response, as a string; it wins"
_PAIR_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "In place of a stored pair: two responses, as a line of `gnomon diff --cases` has them.",
    "additionalProperties": False,
    "properties": {
        "network": {"type": ["string", "null"]},
        "method": {"type": ["string", "null"]},
        "params": {"description": "Of the question."},
        "head": {
            "type": ["object", "null"],
            "properties": {"latest": _HEIGHT, "finalized": _HEIGHT},
            "description": "The network's heads then.",
        },
        "primary": {"description": "A whole JSON-RPC response."},
        "primary_raw": {"type": ["string", "null"], "description": f"Instead: {_WIRE}."},
        "shadow": {"description": "The same of the shadow."},
        "shadow_raw": {"type": ["string", "null"], "description": f"Instead: {_WIRE}."},
    },
}


_WANTED_EXAMPLE: Final = {
    "request_id": examples.REQUEST_ID,
    "shadow": "candidate",
    "masks": ["*.logs.*.blockTimestamp"],
    "tolerate": [],
    "elsewhere": True,
}

# --- the answer -------------------------------------------------------------------------------------------------------

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer"}
_FLAG: Final = {"type": "boolean"}


def _object(properties: Mapping[str, Any], *, or_null: bool = False) -> dict[str, Any]:
    kind: Any = ["object", "null"] if or_null else "object"
    return {"type": kind, "required": list(properties), "properties": dict(properties)}


def _list(items: Mapping[str, Any], *, or_null: bool = False) -> dict[str, Any]:
    return {"type": ["array", "null"] if or_null else "array", "items": dict(items)}


_FINDING: Final = _object(
    {
        "path": {**_TEXT, "description": "Of the first place."},
        "generic_path": _TEXT,
        "class": _TEXT,
        "n_paths": _COUNT,
        "primary_value": _TEXT,
        "shadow_value": _TEXT,
    }
)
_KIND: Final = _object({"generic_path": _TEXT, "class": _TEXT, "pairs": _COUNT})
_EFFECTS: Final = "null: not known; the answers are not kept, or too large to be judged once for each mask."


def _rule_schema(name: str, effect: str) -> dict[str, Any]:
    return _object(
        {
            name: _TEXT,
            "source": {"enum": ["preset", "configuration", "request"]},
            "is_on": {**_FLAG, "description": "Holds in this verdict."},
            effect: {**_list(_FINDING, or_null=True), "description": f"What it does to this pair alone. {_EFFECTS}"},
        }
    )


_SCHEMA: Final = _object(
    {
        "request_id": {"type": ["string", "null"], "description": "null where the pair was given."},
        "network": _TEXT,
        "method": _TEXT,
        "primary_upstream": _TEXT,
        "shadow_upstream": _TEXT,
        "stored": {
            **_object(
                {"outcome": _TEXT, "class": _TEXT, "mask_version": _TEXT, "tolerance_version": _TEXT}, or_null=True
            ),
            "description": "The verdict that is stored.",
        },
        "outcome": _TEXT,
        "class": _TEXT,
        "classes": _list(_TEXT),
        "finality": _TEXT,
        "reason": {**_TEXT, "description": "Why it is undecided; `no_body`: an answer is not kept any more."},
        "mask_version": _TEXT,
        "tolerance_version": _TEXT,
        "n_masked": {**_COUNT, "description": "Members that masks removed, both sides together."},
        "n_findings": _COUNT,
        "findings": {**_list(_FINDING), "description": f"Of this verdict, the first {MAX_FINDINGS}."},
        "differences": {
            **_list(_object({"path": _TEXT, "class": _TEXT, "state": {"enum": ["counted", "masked", "tolerated"]}})),
            "description": "Each place that differs without rules, and what becomes of it.",
        },
        "masks": _list(_rule_schema("mask", "hides")),
        "tolerances": _list(_rule_schema("tolerance", "forgives")),
        "elsewhere": {
            **_object(
                {
                    "from": {**_TEXT, "format": "date-time"},
                    "to": {**_TEXT, "format": "date-time"},
                    "is_complete": {**_FLAG, "description": "false: the rarest sets of differences are left out."},
                    "shadows": _list(
                        _object(
                            {
                                "shadow_upstream": _TEXT,
                                "pairs": {**_COUNT, "description": "Stored pairs with differences."},
                                "cleared": {**_COUNT, "description": "Of which no difference would be left."},
                                "touched": {**_COUNT, "description": "Of which some would be gone."},
                                "kinds": _list(_KIND),
                            }
                        )
                    ),
                },
                or_null=True,
            ),
            "description": "Told by the paths of stored findings; only `gnomon replay` judges the pairs again.",
        },
    }
)
_EXAMPLE_FINDING: Final = {
    "path": "$.result[0].logs[0].blockTimestamp",
    "generic_path": "$.result[*].logs[*].blockTimestamp",
    "class": "missing_field",
    "n_paths": 226,
    "primary_value": '"0x6870c3a8"',
    "shadow_value": "",
}
_EXAMPLE: Final = {
    "request_id": examples.REQUEST_ID,
    "network": "evm:1",
    "method": "eth_getBlockReceipts",
    "primary_upstream": "mine",
    "shadow_upstream": "candidate",
    "stored": {"outcome": "mismatch", "class": "missing_field", "mask_version": "", "tolerance_version": ""},
    "outcome": "identical_masked",
    "class": "none",
    "classes": [],
    "finality": "finalized",
    "reason": "",
    "mask_version": "52c5a7e4b1a9d0f3",
    "tolerance_version": "",
    "n_masked": 226,
    "n_findings": 0,
    "findings": [],
    "differences": [
        {"path": "$.result[0].logs[0].blockTimestamp", "class": "missing_field", "state": "masked"},
    ],
    "masks": [
        {"mask": "*.logs.*.blockTimestamp", "source": "request", "is_on": True, "hides": [_EXAMPLE_FINDING]},
    ],
    "tolerances": [],
    "elsewhere": {
        "from": "2026-11-24T00:00:00.000Z",
        "to": "2026-12-01T00:00:00.000Z",
        "is_complete": True,
        "shadows": [
            {
                "shadow_upstream": "candidate",
                "pairs": 1880,
                "cleared": 1720,
                "touched": 1790,
                "kinds": [{k: _EXAMPLE_FINDING[k] for k in ("generic_path", "class")} | {"pairs": 1790}],
            }
        ],
    },
}


# --- the route --------------------------------------------------------------------------------------------------------


@router.post(
    "/v1/compare/preview",
    summary="What would the verdict on a pair be with these masks and tolerances?",
    description="Nothing is stored. The same comparer gives it as gives the verdicts that are stored.",
    response_class=Response,
    dependencies=[Depends(needs("read"))],
    responses={200: {"content": {"application/json": {"schema": _SCHEMA, "example": _EXAMPLE}}}},
    openapi_extra={
        PROBLEMS_KEY: ["not-found"],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": bodies.schema(Wanted, pair=_PAIR_SCHEMA), "example": _WANTED_EXAMPLE}
            },
        },
    },
)
async def compare_preview(request: Request) -> Response:
    """Judge a pair with the rules of the request."""
    wanted = _read(await request.body())
    asked_masks = _spelled(wanted.masks, rules.mask_spelling, "masks")
    asked_tolerances = _spelled(wanted.tolerate, rules.tolerance_spelling, "tolerate")
    subject, question, sides = await _pair(request, wanted)
    settings = in_force(request).settings
    about = (question.network, question.method, subject["shadow_upstream"])
    mask_rules = rules.chosen(rules.masks_in_force(settings, *about), asked_masks)
    tolerance_rules = rules.chosen(rules.tolerances_in_force(settings, *about), asked_tolerances)
    policy = Policy(masks=masks.compile(_on(mask_rules)), tolerate=tolerances.compile(_on(tolerance_rules)))
    services = services_of(request)
    async with services.judging.take():
        found = await asyncio.to_thread(
            preview,
            question,
            *sides,
            policy,
            explained_masks=[rule.text for rule in mask_rules],
            explained_tolerances=[rule.text for rule in tolerance_rules],
        )
    document = {
        **subject,
        **_verdict(found),
        "mask_version": rules.mask_version(question.network, question.method, policy.masks),
        "tolerance_version": policy.tolerate.version,
        "masks": _rules("mask", "hides", mask_rules, found.masks),
        "tolerances": _rules("tolerance", "forgives", tolerance_rules, found.tolerances),
        "elsewhere": None,
    }
    if wanted.elsewhere:
        document["elsewhere"] = await _elsewhere(request, wanted, question, [*mask_rules], [*tolerance_rules])
    return json_response(document)


def _read(body: bytes) -> Wanted:
    wanted = bodies.read(body, Wanted)
    if (wanted.request_id is None) == isinstance(wanted.pair, UnsetType):
        raise wrong("/request_id", "give either `request_id`, and `shadow`, or `pair`")
    if wanted.request_id is None and wanted.shadow is not None:
        raise wrong("/shadow", "belongs to `request_id`")
    return wanted


def _spelled(texts: Sequence[str] | None, spelling: Any, member: str) -> list[str] | None:
    if texts is None:
        return None
    found = []
    for index, text in enumerate(texts):
        try:
            found.append(spelling(text))
        except (MaskError, ToleranceError) as error:
            raise wrong(f"/{member}/{index}", str(error).splitlines()[0]) from error
    return found


def _on(found: Sequence[Rule]) -> list[str]:
    return [rule.text for rule in found if rule.is_on]


async def _pair(request: Request, wanted: Wanted) -> tuple[dict[str, Any], Question, tuple[Answer, Answer]]:
    """Return what is said of the pair, the question, and both answers."""
    if not isinstance(wanted.pair, UnsetType):
        return _given(bytes(wanted.pair))
    given = {"id": str(wanted.request_id)}
    if wanted.shadow is not None:
        given["shadow"] = wanted.shadow
    rows: Rows = await asking_of(request).ask("pair", given)
    records = rows.records()
    if not records:
        whose = f" of shadow {wanted.shadow!r}" if wanted.shadow is not None else ""
        raise Refused(
            "not-found", f"there is no pair{whose} of request {wanted.request_id!r}; /v1/comparisons has them"
        )
    if len(records) > 1:
        names = ", ".join(str(one["shadow_upstream"]) for one in records)
        raise wrong("/shadow", f"is needed: the request has pairs of {names}")
    return _stored(records[0])


def _given(text: bytes) -> tuple[dict[str, Any], Question, tuple[Answer, Answer]]:
    try:
        members = msgspec.json.decode(text, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise wrong("/pair", "is no object") from None
    unknown = sorted(members.keys() - _PAIR_MEMBERS)
    if unknown:
        raise wrong(f"/pair/{unknown[0]}", f"is not known here; there are {', '.join(sorted(_PAIR_MEMBERS))}")
    try:
        case = read_case(text)
    except BadCase as error:
        raise wrong("/pair", str(error)) from error
    answers = []
    for name, side in (("primary", case.primary), ("shadow", case.shadow)):
        try:
            response = read(side)
        except NotJson:
            answers.append(Answer())
            continue
        except TooDeep:
            raise wrong(f"/pair/{name}", "is nested too deep to be read") from None
        if isinstance(response, list):
            raise wrong(f"/pair/{name}", "is a batch; give one response")
        answers.append(response.answer)
    subject = {
        "request_id": None,
        "network": case.question.network,
        "method": case.question.method,
        "primary_upstream": "",
        "shadow_upstream": "",
        "stored": None,
    }
    return subject, case.question, (answers[0], answers[1])


def _stored(pair: Mapping[str, Any]) -> tuple[dict[str, Any], Question, tuple[Answer, Answer]]:
    question = Question(
        network=pair["network"],
        method=pair["method"],
        params=Raw(pair["params"].encode("utf-8", "surrogatepass")) if pair["params"] else None,
        latest=pair["head_latest"],
        finalized=pair["head_finalized"],
        primary_head=pair["primary_head"],
        shadow_head=pair["shadow_head"],
    )
    subject = {
        "request_id": pair["request_id"],
        "network": pair["network"],
        "method": pair["method"],
        "primary_upstream": pair["primary_upstream"],
        "shadow_upstream": pair["shadow_upstream"],
        "stored": {
            "outcome": pair["outcome"],
            "class": pair["class"],
            "mask_version": pair["mask_version"],
            "tolerance_version": pair["tolerance_version"],
        },
    }
    return subject, question, (_answer(pair, "primary"), _answer(pair, "shadow"))


def _answer(pair: Mapping[str, Any], side: str) -> Answer:
    """Return a stored answer; without its text where it is not kept whole, or not as it came."""
    is_equal = pair["primary_hash"] == pair["shadow_hash"] != ""
    body = str(pair[f"{side}_body"] or "").encode("utf-8", "surrogatepass")
    if pair[f"{side}_is_cut"] or xxh3_128_hexdigest(body) != pair[f"{side}_hash"]:
        body = b""
    return Answer(kind=pair[f"{side}_kind"], fragment=body, is_equal=is_equal)


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "path": one.path,
        "generic_path": one.generic_path,
        "class": one.class_,
        "n_paths": one.n_paths,
        "primary_value": one.primary_value,
        "shadow_value": one.shadow_value,
    }


def _verdict(found: Preview) -> dict[str, Any]:
    verdict = found.verdict
    return {
        "outcome": verdict.outcome,
        "class": verdict.class_,
        "classes": list(verdict.classes),
        "finality": verdict.finality,
        "reason": verdict.reason,
        "n_masked": verdict.n_masked,
        "n_findings": len(verdict.findings),
        "findings": [_finding(one) for one in verdict.findings[:MAX_FINDINGS]],
        "differences": [{"path": one.path, "class": one.class_, "state": one.state} for one in found.places],
    }


def _rules(name: str, effect: str, shown: Sequence[Rule], effects: Sequence[Effect]) -> list[dict[str, Any]]:
    return [
        {
            name: rule.text,
            "source": rule.source,
            "is_on": rule.is_on,
            effect: None if one.findings is None else [_finding(f) for f in one.findings[:MAX_FINDINGS]],
        }
        for rule, one in zip(shown, effects, strict=True)
    ]


async def _elsewhere(
    request: Request,
    wanted: Wanted,
    question: Question,
    mask_rules: Sequence[Rule],
    tolerance_rules: Sequence[Rule],
) -> dict[str, Any]:
    given = {"network": question.network, "method": question.method}
    given |= {name: text for name, text in (("from", wanted.start), ("to", wanted.end)) if text is not None}
    rows = await asking_of(request).ask("difference_sets", given)
    assert rows.start is not None
    assert rows.end is not None
    sets = [
        (
            one["shadow_upstream"],
            [
                Kind(path, generic, class_)
                for path, generic, class_ in zip(one["paths"], one["generic_paths"], one["classes"], strict=True)
            ],
            one["pairs"],
        )
        for one in rows.records()
    ]
    new_masks = masks.compile([rule.text for rule in mask_rules if rule.source == "request"])
    new_tolerances = tolerances.compile([rule.text for rule in tolerance_rules if rule.source == "request"])
    found = elsewhere(sets, new_masks, new_tolerances)
    return {
        "from": values.moment(rows.start),
        "to": values.moment(rows.end),
        "is_complete": rows.is_complete,
        "shadows": [_of_shadow(name, said) for name, said in found.items()],
    }


def _of_shadow(name: str, said: Elsewhere) -> dict[str, Any]:
    kinds = sorted(said.n_by_kind.items(), key=lambda one: (-one[1], one[0]))
    return {
        "shadow_upstream": name,
        "pairs": said.n_pairs,
        "cleared": said.n_cleared,
        "touched": said.n_touched,
        "kinds": [{"generic_path": path, "class": class_, "pairs": n} for (path, class_), n in kinds],
    }
