"""
Batches: lists of responses, paired by id, judged one by one and summed up in one verdict.

Paths begin with the place in the primary's list: `$[1].result` is its second response. The outcome is the gravest of
the elements'; the finality is theirs where all agree. A response that only one list has is an `error`: the other side
gave no answer to that request.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from gnomon.compare import classes
from gnomon.compare.envelope import NO_ANSWER, Response
from gnomon.compare.findings import Finding
from gnomon.compare.judge import NO_POLICY, Outcome, Policy, Question, Verdict, judge
from gnomon.rpc.finality import Finality

_GRAVEST: Final[tuple[Outcome, ...]] = (
    "mismatch", "error", "missing", "undecided", "incomparable", "tolerated", "identical_masked", "identical",
)  # fmt: skip


def judge_batch(
    question: Question, primary: Sequence[Response], shadow: Sequence[Response], policy: Policy = NO_POLICY
) -> Verdict:
    """
    Return one verdict on two lists of responses.

    Args:
        question: its `params` are the requests of the batch, decoded; its `method` is not used.
        primary, shadow: the responses, in any order.
        policy: for every element.
    """
    requests = _requests_by_id(question.params)
    partners: dict[bytes, list[Response]] = {}
    for response in shadow:
        partners.setdefault(_key(response.rpc_id), []).append(response)
    verdicts: list[tuple[int, Verdict]] = []
    for index, response in enumerate(primary):
        key = _key(response.rpc_id)
        waiting = partners.get(key)
        method, params = requests.get(key, ("", None))
        element = msgspec.structs.replace(question, method=method, params=params)
        if waiting:
            verdicts.append((index, judge(element, response.answer, waiting.pop(0).answer, policy)))
        else:
            verdicts.append((index, _swapped(judge(element, NO_ANSWER, response.answer, policy))))
    surplus = [response for waiting in partners.values() for response in waiting]
    for offset, response in enumerate(surplus):
        method, params = requests.get(_key(response.rpc_id), ("", None))
        element = msgspec.structs.replace(question, method=method, params=params)
        verdicts.append((len(primary) + offset, judge(element, NO_ANSWER, response.answer, policy)))
    return _sum(verdicts)


def _swapped(verdict: Verdict) -> Verdict:
    """Return the verdict on an answer that only the primary gave, from that on one which only the shadow gave."""
    findings = tuple(
        msgspec.structs.replace(one, primary_value=one.shadow_value, shadow_value=one.primary_value)
        for one in verdict.findings
    )
    return msgspec.structs.replace(verdict, findings=findings, is_emptyish=False, is_larger=False)


def _requests_by_id(params: object) -> dict[bytes, tuple[str, object]]:
    found: dict[bytes, tuple[str, object]] = {}
    for request in params if isinstance(params, list) else ():
        if isinstance(request, Mapping) and "id" in request:
            method = request.get("method")
            found[_key(msgspec.json.encode(request["id"]))] = (
                method if isinstance(method, str) else "",
                request.get("params"),
            )
    return found


def _key(rpc_id: bytes) -> bytes:
    """Return an id without the white space and escapes of its text."""
    try:
        return msgspec.json.encode(msgspec.json.decode(rpc_id))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return rpc_id


def _sum(verdicts: list[tuple[int, Verdict]]) -> Verdict:
    if not verdicts:
        return Verdict(outcome="identical")
    outcomes = {verdict.outcome for _, verdict in verdicts}
    outcome = next(candidate for candidate in _GRAVEST if candidate in outcomes)
    named = {class_ for _, verdict in verdicts for class_ in verdict.classes}
    all_classes = classes.most_telling(named)
    counting = [class_ for _, v in verdicts if v.outcome == outcome for class_ in v.classes]
    finalities: set[Finality] = {verdict.finality for _, verdict in verdicts}
    findings = tuple(_placed(index, finding) for index, v in verdicts for finding in v.findings)
    return Verdict(
        outcome=outcome,
        class_=classes.most_telling(set(counting))[0] if counting else "none",
        classes=all_classes,
        finality=next(iter(finalities)) if len(finalities) == 1 else "unknown",
        findings=findings,
        paths=tuple(f"$[{index}]{path[1:]}" for index, verdict in verdicts for path in verdict.paths),
        is_emptyish=all(verdict.is_emptyish for _, verdict in verdicts),
        is_larger=any(verdict.is_larger for _, verdict in verdicts),
        n_masked=sum(verdict.n_masked for _, verdict in verdicts),
        reason=next((verdict.reason for _, verdict in verdicts if verdict.reason), ""),
    )


def _placed(index: int, finding: Finding) -> Finding:
    return msgspec.structs.replace(
        finding, path=f"$[{index}]{finding.path[1:]}", generic_path=f"$[*]{finding.generic_path[1:]}"
    )
