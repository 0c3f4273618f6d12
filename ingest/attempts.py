"""
Calls to upstreams become rows of `attempts`: each is charged, and the useless ones among the paid are marked.

A call that never left the proxy costs nothing. `at` is the end of the call. Its place in time follows from the event
alone: a request's attempts lie within the request, a mirrored or internal call ends with its event.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec import Raw

from gnomon.cost.charge import FREE, Charge, Charger
from gnomon.cost.distance import blocks_behind
from gnomon.cost.waste import is_paid, is_useless
from gnomon.events.contract import NO_BODY, Attempt, InternalAttempt
from gnomon.rpc.blocks import NO_BLOCK, BlockRef, request_block
from gnomon.rpc.methods import lookup
from ingest.asked import Asked
from ingest.batch import Group
from ingest.blocks import Block, Members, each
from ingest.tables import ATTEMPTS

MAY_NOT_HAVE_LEFT = frozenset(("transport", "timeout", "cancelled"))
"""Outcomes of calls that may have ended before a byte went out; those cost nothing."""


class _Reason(NamedTuple):
    """What the price and the use of a call depend on besides the call."""

    asked: Asked
    params: Raw
    latest: int | None
    is_beyond: bool
    was_answered: bool
    is_newest: bool
    """It asks for the newest block, by whatever tag."""


def request_attempts(group: Group, asked: Sequence[Asked], charger: Charger) -> Block:
    """Return a row for each call that clients' requests caused."""
    request, counts = group.of, group.n_calls
    owners = each(range(len(counts)), counts)

    def reason(index: int) -> _Reason:
        event, question = group.events[owners[index]], asked[owners[index]]
        latest = request["heads"][owners[index]].network.latest
        is_beyond = event.beyond_head or is_beyond_head(question.ref, latest)
        return _Reason(question, event.params, latest, is_beyond, event.outcome in ("result", "verdict"), False)

    begun_ns = [at - took * 1000 for at, took in zip(request["at"], request["duration_us"], strict=True)]
    of: dict[str, Sequence[Any]] = {
        name: each(request[name], counts) for name in ("request_id", "project", "user", "network", "method", "event_id")
    }
    of["at"] = [
        (begun + (start + took) * 1000) // 1_000_000
        for begun, start, took in zip(
            each(begun_ns, counts), group.call["start_us"], group.call["duration_us"], strict=True
        )
    ]
    of["attempt_id"] = [""] * len(group.calls)
    of["idx"] = [index for n in counts for index in range(n)]
    of["block_number"] = each([question.ref.number for question in asked], counts)
    of["head_latest"] = each([heads.network.latest for heads in request["heads"]], counts)
    of["off"] = each(group.offsets, counts)
    return _block(group, of, reason, charger)


def shadow_attempts(group: Group, asked: Sequence[Asked], charger: Charger) -> Block:
    """Return the rows of mirrored calls."""
    pair = group.of

    def reason(index: int) -> _Reason:
        question, latest = asked[index], pair["heads"][index].network.latest
        is_beyond = is_beyond_head(question.ref, latest)
        return _Reason(question, pair["params"][index], latest, is_beyond, False, False)

    of = {
        **pair,
        "at": [at // 1_000_000 for at in pair["at"]],
        "attempt_id": [""] * len(group.calls),
        "idx": [0] * len(group.calls),
        "block_number": [question.ref.number for question in asked],
        "head_latest": [heads.network.latest for heads in pair["heads"]],
        "off": group.offsets,
    }
    return _block(group, of, reason, charger)


def internal_attempts(group: Group, charger: Charger) -> Block:
    """Return the rows of calls that no client asked for; only a probe asks what a client has asked."""
    refs = [_internal_block(event) for event in group.events]

    def reason(index: int) -> _Reason:
        event, ref = group.events[index], refs[index]
        is_probe = event.attempt.kind == "probe"
        return _Reason(
            Asked(lookup(event.attempt.method), ref), event.params if is_probe else NO_BODY, event.latest,
            is_beyond_head(ref, event.latest), False, not is_probe,
        )  # fmt: skip

    nothing = [""] * len(group.calls)
    of = {
        **group.of,
        "at": [at // 1_000_000 for at in group.of["at"]],
        "idx": [0] * len(group.calls),
        "request_id": nothing,
        "user": nothing,
        "method": nothing,
        "block_number": [ref.number for ref in refs],
        "head_latest": group.of["latest"],
        "off": group.offsets,
    }
    return _block(group, of, reason, charger)


def _internal_block(event: InternalAttempt) -> BlockRef:
    return request_block(lookup(event.attempt.method), event.params) if event.attempt.kind == "probe" else NO_BLOCK


def is_beyond_head(ref: BlockRef, latest: int | None) -> bool:
    """Return whether a request names a block above the network's head; an unknown head is never below it."""
    return ref.number is not None and latest is not None and ref.number > latest


def _block(group: Group, of: Members, reason: Callable[[int], _Reason], charger: Charger) -> Block:
    """Return the rows of calls; `of` has the columns that come with their events."""
    calls, call = group.calls, group.call
    if not calls:
        return Block(ATTEMPTS, {})
    methods = [own or asked for own, asked in zip(call["method"], of["method"], strict=True)]
    charges = [FREE] * len(calls)
    useless, wasted = [False] * len(calls), [False] * len(calls)
    behind: list[int | None] = [None] * len(calls)
    if any(call["vendor"]):
        for index, attempt in enumerate(calls):
            if attempt.vendor:
                why = reason(index)
                # Kept even where it does not matter now: another price book may ask for it (ingest.repricing).
                behind[index] = 0 if why.is_newest else blocks_behind(*why.asked, why.params, why.latest)
                charge = charges[index] = _charge(
                    attempt, methods[index], of["project"][index], of["network"][index], of["at"][index],
                    behind[index], charger,
                )  # fmt: skip
                useless[index] = is_useless(attempt, is_beyond_head=why.is_beyond, was_answered=why.was_answered)
                wasted[index] = useless[index] and is_paid(attempt.vendor, charge)
    columns = {
        **call,
        **of,
        "method": methods,
        "is_useless": useless,
        "is_wasted": wasted,
        "units": [charge.units for charge in charges],
        "usd": [charge.usd for charge in charges],
        "is_estimate": [charge.is_estimate for charge in charges],
        "blocks_behind": behind,
    }
    return Block(ATTEMPTS, columns)


def _charge(
    attempt: Attempt, method: str, project: str, network: str, at_ms: int, behind: int | None, charger: Charger
) -> Charge:
    if attempt.request_bytes == 0 and attempt.outcome in MAY_NOT_HAVE_LEFT:
        return FREE
    vendor = attempt.vendor
    return charger.charge(
        vendor, network, method, attempt.outcome, attempt.error_class, attempt.status, attempt.n_batch,
        at_ms // 1000, behind if charger.needs_distance(vendor, method) else None,
        charger.own_units(project, attempt.upstream, method),
        attempt.response_bytes if charger.needs_bytes(vendor, method) else 0,
        charger.has_archive(project, attempt.upstream),
    )  # fmt: skip
