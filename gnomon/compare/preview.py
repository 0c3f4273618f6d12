"""
What a rule does: a pair judged with rules that are not (or not yet) in force, and what each of them hides or forgives.

A mask's effect is what it does alone: the differences of the pair without any mask that are gone with this one only.
So a difference that two masks hide is named by both. A tolerance's effect is what it forgives of what masks leave.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from gnomon.compare import masks, paths, tolerances
from gnomon.compare.findings import Finding, group
from gnomon.compare.judge import NO_POLICY, Answer, Policy, Question, Verdict, examine, is_forgiven
from gnomon.compare.masks import MaskSet
from gnomon.compare.tolerances import Tolerances
from gnomon.compare.walk import Difference

JUDGED_BYTES: Final = 32 << 20
"""Of answers read for the effects of masks; those that come after have no known effect."""
MAX_PLACES: Final = 10_000

State = Literal["counted", "masked", "tolerated"]


@dataclass(frozen=True, slots=True)
class Place:
    """One difference, and what becomes of it."""

    path: str
    class_: str
    state: State


@dataclass(frozen=True, slots=True)
class Effect:
    """What one rule does to one pair."""

    rule: str
    findings: tuple[Finding, ...] | None
    """That it hides or forgives; None: not known, the pair cannot be judged without rules, or not once more."""


@dataclass(frozen=True, slots=True)
class Preview:
    """A pair under rules."""

    verdict: Verdict
    places: tuple[Place, ...]
    """All differences that there are without rules, and those that only rules make; in order of appearance."""
    masks: tuple[Effect, ...]
    tolerances: tuple[Effect, ...]


def preview(
    question: Question,
    primary: Answer,
    shadow: Answer,
    policy: Policy,
    *,
    explained_masks: Sequence[str] = (),
    explained_tolerances: Sequence[str] = (),
    judged_bytes: int = JUDGED_BYTES,
) -> Preview:
    """
    Return the verdict under a policy, and the effect of each rule that is to be explained, of the policy or not.

    Args:
        question, primary, shadow: as `judge` takes them.
        policy: the rules of the verdict.
        explained_masks, explained_tolerances: rules, each valid.
        judged_bytes: see `JUDGED_BYTES`.
    """
    verdict, counted = examine(question, primary, shadow, policy)
    bare, differences = examine(question, primary, shadow, NO_POLICY) if policy.masks else (verdict, counted)
    n_bytes = max(1, len(bytes(primary.fragment)) + len(bytes(shadow.fragment)))
    n_affordable = judged_bytes // n_bytes
    effects = []
    for mask in explained_masks:
        if bare.outcome == "undecided":
            effects.append(Effect(mask, None))
        elif not bare.findings:
            effects.append(Effect(mask, ()))
        elif n_affordable <= 0:
            effects.append(Effect(mask, None))
        else:
            n_affordable -= 1
            alone, _ = examine(question, primary, shadow, Policy(masks=masks.compile([mask])))
            effects.append(Effect(mask, _gone(bare.findings, alone.findings)))
    return Preview(
        verdict,
        tuple(_places(differences, counted, policy.tolerate)),
        tuple(effects),
        tuple(Effect(text, _forgiven(counted, tolerances.compile([text]))) for text in explained_tolerances),
    )


def _gone(before: Iterable[Finding], after: Iterable[Finding]) -> tuple[Finding, ...]:
    left = {(finding.generic_path, finding.class_): finding.n_paths for finding in after}
    found = []
    for one in before:
        n_gone = one.n_paths - left.get((one.generic_path, one.class_), 0)
        if n_gone > 0:
            found.append(
                Finding(one.path, one.generic_path, n_gone, one.class_, one.primary_value, one.shadow_value)
            )  # fmt: skip
    return tuple(found)


def _forgiven(counted: Iterable[tuple[str, Difference]], tolerate: Tolerances) -> tuple[Finding, ...]:
    return group([(root, one) for root, one in counted if is_forgiven(tolerate, root, one)])[1]


def _places(
    bare: Iterable[tuple[str, Difference]], counted: Iterable[tuple[str, Difference]], tolerate: Tolerances
) -> Iterable[Place]:
    left: dict[tuple[str, str], State] = {}
    for root, one in counted:
        key = (paths.render(root, paths.keys_of(one.place)), one.class_)
        left[key] = "tolerated" if tolerate and is_forgiven(tolerate, root, one) else "counted"
    shown: dict[tuple[str, str], State] = {}
    for root, one in bare:
        key = (paths.render(root, paths.keys_of(one.place)), one.class_)
        shown[key] = left.get(key, "masked")
    for key, state in left.items():
        shown.setdefault(key, state)
    return (Place(path, class_, state) for (path, class_), state in list(shown.items())[:MAX_PLACES])


# --- elsewhere --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kind:
    """One difference of a stored pair."""

    path: str
    """The first place of one pair that has it."""
    generic_path: str
    class_: str


@dataclass(slots=True)
class Elsewhere:
    """What rules would do to the stored pairs of one shadow."""

    n_pairs: int = 0
    """With differences."""
    n_cleared: int = 0
    """Of which all would be hidden or forgiven."""
    n_touched: int = 0
    """Of which some would."""
    n_by_kind: dict[tuple[str, str], int] = field(default_factory=dict)
    """(generic path, class) that would be hidden or forgiven → pairs."""


def elsewhere(
    sets: Iterable[tuple[str, Sequence[Kind], int]], mask_set: MaskSet, tolerate: Tolerances
) -> Mapping[str, Elsewhere]:
    """
    Return by shadow what rules would do to stored pairs, told by the paths of their findings.

    Args:
        sets: shadow, the differences that its pairs have together, and how many pairs have these.
        mask_set, tolerate: the rules, in one.

    Only judging again is exact: a path stands for all of its kind in a pair, and a mask within the elements of a list
    can make lists equal that differ as a whole.
    """
    found: dict[str, Elsewhere] = {}
    for shadow, kinds, n_pairs in sets:
        said = found.setdefault(shadow, Elsewhere())
        said.n_pairs += n_pairs
        gone = [kind for kind in kinds if _is_gone(kind, mask_set, tolerate)]
        for kind in gone:
            key = (kind.generic_path, kind.class_)
            said.n_by_kind[key] = said.n_by_kind.get(key, 0) + n_pairs
        if gone:
            said.n_touched += n_pairs
            said.n_cleared += n_pairs if len(gone) == len(kinds) else 0
    return found


def _is_gone(kind: Kind, mask_set: MaskSet, tolerate: Tolerances) -> bool:
    try:
        root, keys = paths.parse(kind.path)
    except ValueError:
        return False
    is_result = root.endswith(".result") and kind.class_ != "error_vs_result"
    if is_result and mask_set and mask_set.covers(keys):
        return True
    return bool(tolerate) and tolerate.forgives(kind.class_, keys if is_result else None)
