"""
Mirrored pairs become verdicts, findings and kept bodies.

The verdict is `gnomon.compare.judge`'s. Here is decided only what the judge is given: equal digests stand for equal
bytes, and a pair whose bodies did not travel is told apart from one whose answers are missing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, get_args

from gnomon.compare import judge as judging
from gnomon.compare import masks as masking
from gnomon.compare import presets
from gnomon.compare import tolerances as tolerating
from gnomon.compare.findings import Finding
from gnomon.config.model import ANY_METHOD
from gnomon.events.contract import NO_BODY, Answer, Head, Heads
from gnomon.rpc.finality import Finality, finality
from ingest.asked import Asked
from ingest.batch import Group
from ingest.blocks import Block, Members, members
from ingest.bodies import UNSTORED_PREFIX
from ingest.reading import Pair
from ingest.tables import COMPARISONS, FINDINGS

LINE_BYTES = 600
"""Of a request or an answer, as much as a log line shows."""
_CACHE_ENTRIES = 10_000


TOLD = frozenset(("mismatch", "error", "missing", "undecided"))
"""Outcomes that are worth a log line."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a log line says of one pair."""

    request_id: str
    network: str
    upstream: str
    primary_upstream: str
    method: str
    outcome: str
    class_: str
    finality: str
    error: str
    """The shadow's error class, else the primary's."""
    reason: str
    paths: tuple[str, ...]
    masks: tuple[str, ...]
    params: bytes
    primary: bytes
    shadow: bytes


class Policies:
    """Compiled masks and tolerances: a policy is a function of the event and the settings, and is kept."""

    def __init__(self, tolerate: Mapping[str, Iterable[str]] = MappingProxyType({})) -> None:
        """
        Args:
            tolerate: what the installation tolerates at every shadow (`gnomon.shadow.tolerate`), by method.
        """
        self._everywhere = tolerate
        self._known: dict[tuple[str, str, tuple[str, ...], tuple[str, ...]], Found] = {}

    def find(self, network: str, method: str, ignore_fields: tuple[str, ...], tolerate: tuple[str, ...]) -> "Found":
        """
        Return the policy for a pair: the masks of the chain's family and the configured ones, all tolerances.

        Args:
            network, method: choose the family's masks.
            ignore_fields, tolerate: as the event carries them.
        """
        key = (network, method, ignore_fields, tolerate)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _CACHE_ENTRIES:
                self._known.clear()
            found = self._known[key] = self._compile(key)
        return found

    def find_all(self, pair: Members) -> list["Found"]:
        """Return the policies for pairs by the members of their events; most have the same."""
        keys = list(zip(pair["network"], pair["method"], pair["ignore_fields"], pair["tolerate"], strict=True))
        known = {key: self.find(*key) for key in set(keys)}
        return list(map(known.__getitem__, keys))

    def _compile(self, key: tuple[str, str, tuple[str, ...], tuple[str, ...]]) -> "Found":
        network, method, ignore_fields, tolerate = key
        tolerated = [*self._everywhere.get(ANY_METHOD, ()), *self._everywhere.get(method, ()), *tolerate]
        preset = presets.masks_of(network, method)
        try:
            mask_set = masking.compile([*preset, *ignore_fields])
        except ValueError as error:
            return Found(None, str(error).partition("\n")[0], ",".join(sorted(tolerated)))
        version = presets.version_of(mask_set.version, network, method)
        try:
            forgiven = tolerating.compile(tolerated)
        except ValueError as error:
            return Found(None, version, str(error).partition("\n")[0])
        return Found(judging.Policy(masks=mask_set, tolerate=forgiven), version, forgiven.version)


@dataclass(frozen=True, slots=True)
class Found:
    """A policy with the versions that its verdicts store."""

    policy: judging.Policy | None
    """None when a mask or a tolerance does not compile."""
    mask_version: str
    """Of the masks, and of the family's preset where it has a part in them; else the compiler's complaint."""
    tolerance_version: str
    """The tolerances themselves, else the compiler's complaint."""


class Heights(NamedTuple):
    """Block numbers that were known when a pair was answered; None = unknown."""

    latest: int | None
    """The network's: the primary's side where it knew any."""
    finalized: int | None
    primary: int | None
    """The newest block of the upstream that answered."""
    shadow: int | None


class Alike(NamedTuple):
    """What metrics tell pairs apart by."""

    project: str
    vendor: str
    network: str
    upstream: str
    method: str
    outcome: str
    finality: str
    is_emptyish: bool
    is_larger: bool
    error: str
    """The shadow's error class, else the primary's."""


class Compared(NamedTuple):
    """What mirrored pairs become."""

    comparisons: Block
    findings: Block
    verdicts: list[Verdict]
    """Those worth a line."""
    counts: Counter[Alike]


def compare(group: Group, asked: Sequence[Asked], policies: Policies) -> Compared:
    """Return the rows of mirrored pairs, their verdicts and what they found."""
    pair, attempt = group.of, group.call
    primary, shadow = members(pair["primary"]), members(pair["shadow"])
    heights = _heights(pair)
    found = policies.find_all(pair)
    judged = [
        _judge(event, question, height, policy.policy)
        for event, question, height, policy in zip(group.events, asked, heights, found, strict=True)
    ]
    verdicts, reasons = zip(*judged, strict=True)
    verdict = members(verdicts)
    head_latest, head_finalized, primary_head, shadow_head = zip(*heights, strict=True)
    columns = {
        **pair,
        **verdict,
        "at": [at // 1_000_000 for at in pair["at"]],
        "class": verdict["class_"],
        "settled": [
            "pending" if outcome == "mismatch" and finality == "unfinalized" else ""
            for outcome, finality in zip(verdict["outcome"], verdict["finality"], strict=True)
        ],
        "suspect": [""] * len(verdicts),
        "reason": reasons,
        "block_number": [
            in_answer if question.ref.number is None else question.ref.number
            for question, in_answer in zip(asked, primary["response_block"], strict=True)
        ],
        "primary_kind": primary["kind"],
        "shadow_kind": shadow["kind"],
        "primary_hash": primary["digest"],
        "shadow_hash": shadow["digest"],
        "primary_bytes": primary["n_bytes"],
        "shadow_bytes": shadow["n_bytes"],
        "shadow_error_class": attempt["error_class"],
        "shadow_duration_us": attempt["duration_us"],
        "mask_version": [policy.mask_version for policy in found],
        "tolerance_version": [policy.tolerance_version for policy in found],
        "n_findings": list(map(len, verdict["findings"])),
        "params": [
            bytes(params) if a != b and not method.startswith(UNSTORED_PREFIX) else b""
            for params, a, b, method in zip(
                pair["params"], primary["digest"], shadow["digest"], pair["method"], strict=True
            )
        ],
        "head_latest": head_latest,
        "head_finalized": head_finalized,
        "primary_head": primary_head,
        "shadow_head": shadow_head,
        "off": group.offsets,
    }
    errors = [own or other for own, other in zip(attempt["error_class"], pair["primary_error_class"], strict=True)]
    alike = Counter(
        zip(
            pair["project"], attempt["vendor"], pair["network"], pair["shadow_upstream"], pair["method"],
            verdict["outcome"], verdict["finality"], verdict["is_emptyish"], verdict["is_larger"], errors, strict=True,
        )
    )  # fmt: skip
    told = [index for index, outcome in enumerate(verdict["outcome"]) if outcome in TOLD]
    return Compared(
        Block(COMPARISONS, columns),
        _findings(group, verdict["findings"]),
        [_told(group.events[index], verdicts[index], reasons[index], errors[index]) for index in told],
        Counter({Alike(*values): n for values, n in alike.items()}),
    )


def _findings(group: Group, findings: Sequence[tuple[Finding, ...]]) -> Block:
    found = [
        (finding, index, event, off)
        for event, off, several in zip(group.events, group.offsets, findings, strict=True)
        if several
        for index, finding in enumerate(several)
    ]
    if not found:
        return Block(FINDINGS, {})
    which, indexes, events, offsets = zip(*found, strict=True)
    columns = {
        **members(events),
        **members(which),
        "at": [event.at // 1_000_000 for event in events],
        "idx": indexes,
        "class": [finding.class_ for finding in which],
        "off": offsets,
    }
    return Block(FINDINGS, columns)


_NO_HEAD = Head()


def _heights(pair: Members) -> list[Heights]:
    """Return the block numbers of each pair; most have those of the pair before."""
    known: dict[tuple[int, int, str, str], Heights] = {}
    heights = []
    for heads, primary_heads, primary, shadow in zip(
        pair["heads"], pair["primary_heads"], pair["primary_upstream"], pair["shadow_upstream"], strict=True
    ):
        key = (id(heads), id(primary_heads), primary, shadow)
        found = known.get(key)
        if found is None:
            found = known[key] = _heights_of(heads, primary_heads, primary, shadow)
        heights.append(found)
    return heights


def _heights_of(heads: Heads, primary_heads: Heads, primary: str, shadow: str) -> Heights:
    network = primary_heads.network
    if network.latest is None and network.finalized is None:
        network = heads.network
    return Heights(
        network.latest,
        network.finalized,
        primary_heads.upstreams.get(primary, _NO_HEAD).latest,
        heads.upstreams.get(shadow, _NO_HEAD).latest,
    )


def _told(event: Pair, judged: judging.Verdict, reason: str, error: str) -> Verdict:
    shows = event.primary.digest != event.shadow.digest and not event.method.startswith(UNSTORED_PREFIX)
    return Verdict(
        request_id=event.request_id,
        network=event.network,
        upstream=event.shadow_upstream,
        primary_upstream=event.primary_upstream,
        method=event.method,
        outcome=judged.outcome,
        class_=judged.class_,
        finality=judged.finality,
        error=error,
        reason=reason,
        paths=judged.paths,
        masks=event.ignore_fields,
        params=bytes(event.params)[:LINE_BYTES] if shows else b"",
        primary=_head_of(event.primary) if shows else b"",
        shadow=_head_of(event.shadow) if shows else b"",
    )


_IDENTICAL: Mapping[Finality, judging.Verdict] = {
    finality: judging.Verdict(outcome="identical", finality=finality) for finality in get_args(Finality)
}


def _judge(event: Pair, asked: Asked, heights: Heights, policy: judging.Policy | None) -> tuple[judging.Verdict, str]:
    """Return the verdict, and why there is none where there is none."""
    primary, shadow = event.primary, event.shadow
    attempt = event.attempt
    is_equal = primary.kind == shadow.kind != "none" and primary.digest == shadow.digest != ""
    if is_equal and shadow.kind == "result" and primary.body is shadow.body is NO_BODY:
        # Rule 1, and nothing travels that could be looked at.
        block = None
        if asked.method.response_block_path is not None:
            block = shadow.response_block if primary.response_block is None else primary.response_block
        return _IDENTICAL[finality(*asked, block, heights.latest, heights.finalized)], ""
    if shadow.kind != "none" and not is_equal:
        reason = ""
        if policy is None:
            reason = "mask"
        elif _lacks_body(primary) or _lacks_body(shadow):
            reason = "too_large" if primary.body_base64 or shadow.body_base64 else "no_body"
        if reason:
            known = finality(*asked, primary.response_block, heights.latest, heights.finalized)
            return judging.Verdict(outcome="undecided", finality=known), reason
    found = judging.judge(
        judging.Question(
            network=event.network,
            method=event.method,
            ref=asked.ref,
            latest=heights.latest,
            finalized=heights.finalized,
            primary_head=heights.primary,
            shadow_head=heights.shadow,
        ),
        judging.Answer(
            kind=primary.kind,
            fragment=primary.body,
            is_equal=is_equal,
            response_block=primary.response_block,
            error_class=event.primary_error_class,
        ),
        judging.Answer(
            kind=shadow.kind,
            fragment=shadow.body,
            is_equal=is_equal,
            response_block=shadow.response_block,
            error_class=attempt.error_class,
        ),
        policy or judging.NO_POLICY,
    )
    if found.outcome == "missing":
        return found, attempt.error_class or attempt.outcome
    if found.outcome == "error":
        return found, attempt.error_class or event.primary_error_class
    return found, found.reason


def _lacks_body(answer: Answer) -> bool:
    return answer.kind != "none" and len(memoryview(answer.body)) == 0


def _head_of(answer: Answer) -> bytes:
    return bytes(memoryview(answer.body)[:LINE_BYTES])
