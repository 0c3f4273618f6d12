"""
Cases: one pair a line, as JSON, with its own masks and tolerances. A line in, a verdict out.

Members of a line: `id, network, method, params, primary` or `primary_raw`, `shadow` or `shadow_raw`, `head`
(`{"latest", "finalized"}` or null), `ignore_fields`, `tolerate`. A `_raw` member is the wire text of a response and
wins; the other one's own text in the line is taken, so numbers keep their spelling.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from gnomon.compare import exact, masks, tolerances
from gnomon.compare.batch import judge_batch
from gnomon.compare.envelope import NO_ANSWER, Response, members_of, read
from gnomon.compare.exact import NotJson, TooDeep
from gnomon.compare.judge import Answer, Policy, Question, Verdict, judge
from gnomon.errors import UsageError

BATCH: Final = "(batch)"


class BadCase(UsageError):
    """A line that is no case; the message says why."""


class Case(Struct, frozen=True, kw_only=True):
    """One line, read."""

    case_id: object
    question: Question
    primary: bytes
    shadow: bytes
    policy: Policy


def read_case(line: bytes) -> Case:
    """
    Return the case of one line.

    Raises:
        BadCase: it is none.
        MaskError, ToleranceError: a mask or a tolerance of its cannot be compiled.
    """
    try:
        members = dict(members_of(line))
    except (NotJson, TooDeep) as error:
        raise BadCase(f"no JSON object: {error}") from None
    plain = {name: _plain(text) for name, text in members.items() if name in _PLAIN_MEMBERS}
    head = plain.get("head") or {}
    if not isinstance(head, Mapping):
        raise BadCase(f"head is {head!r}; it is null or {{latest, finalized}}")
    return Case(
        case_id=plain.get("id"),
        question=Question(
            network=_text(plain, "network"),
            method=_text(plain, "method"),
            params=plain.get("params"),
            latest=_height(head, "latest"),
            finalized=_height(head, "finalized"),
        ),
        primary=_side(members, "primary"),
        shadow=_side(members, "shadow"),
        policy=Policy(
            masks=masks.compile(_texts(plain, "ignore_fields")),
            tolerate=tolerances.compile(_texts(plain, "tolerate")),
        ),
    )


_PLAIN_MEMBERS: Final = frozenset(("id", "network", "method", "params", "head", "ignore_fields", "tolerate"))


def judge_case(case: Case) -> Verdict:
    """Return the verdict on one case."""
    try:
        primary, shadow = _read(case.primary), _read(case.shadow)
    except TooDeep:
        if case.primary == case.shadow:
            return Verdict(outcome="identical")
        return Verdict(outcome="undecided", reason="too_deep")
    return judge_responses(case.question, primary, shadow, case.policy)


def judge_responses(
    question: Question, primary: Response | list[Response], shadow: Response | list[Response], policy: Policy
) -> Verdict:
    """Return the verdict on two responses, or on two batches of them."""
    if isinstance(primary, list) and isinstance(shadow, list):
        return judge_batch(question, primary, shadow, policy)
    return judge(question, _as_whole(primary), _as_whole(shadow), policy)


def _as_whole(response: Response | list[Response]) -> Answer:
    """Return the answer; a batch beside a single response (a refusal of the whole) is one result."""
    if isinstance(response, Response):
        return response.answer
    texts = [bytes(one.answer.fragment) or b"null" for one in response]
    return Answer(kind="result", fragment=b"[" + b",".join(texts) + b"]")


def _read(text: bytes) -> Response | list[Response]:
    """Return what a wire text answers; what is no JSON-RPC response is no answer."""
    try:
        return read(text)
    except NotJson:
        return Response(b"", NO_ANSWER)


def as_line(case_id: object, verdict: Verdict) -> str:
    """Return a verdict as the line that goes out."""
    return json.dumps(
        {
            "id": case_id,
            "outcome": verdict.outcome,
            "class": verdict.class_,
            "finality": verdict.finality,
            "paths": list(verdict.paths),
        }
    )


def _side(members: Mapping[str, bytes], name: str) -> bytes:
    raw = members.get(f"{name}_raw")
    if raw is not None:
        text = _plain(raw)
        if isinstance(text, str):
            return text.encode("utf-8", "surrogateescape" if _is_escaped(text) else "surrogatepass")
        if text is not None:
            raise BadCase(f"{name}_raw is the wire text of a response, as a JSON string")
    try:
        return members[name]
    except KeyError:
        raise BadCase(f"has neither {name} nor {name}_raw") from None


def _is_escaped(text: str) -> bool:
    """Return whether every surrogate of a text stands for a byte that is no UTF-8."""
    return all("\udc80" <= c <= "\udcff" for c in text if "\ud800" <= c <= "\udfff")


def _plain(text: bytes) -> Any:
    try:
        return exact.decode(text)
    except (NotJson, TooDeep) as error:
        raise BadCase(f"unreadable member: {error}") from None


def _text(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadCase(f"{name} is {value!r}; it is a string")
    return value


def _texts(members: Mapping[str, Any], name: str) -> list[str]:
    value = members.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(element, str) for element in value):
        raise BadCase(f"{name} is {value!r}; it is a list of strings")
    return value


def _height(head: Mapping[str, Any], name: str) -> int | None:
    value = head.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise BadCase(f"head.{name} is {value!r}; it is a block number or null")
