"""A stored pair under the rules in force, for the page that shows it: what the one comparer says, place by place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api import rules
from gnomon.compare import masks, tolerances
from gnomon.compare.judge import Answer, Policy, Question, Verdict
from gnomon.compare.preview import Effect, Place, State, preview
from gnomon.config.model import Settings

SOURCES: Mapping[str, str] = {"preset": "mask of the chain's preset", "configuration": "configured"}


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One rule in force, and what it does to the pair."""

    kind: str
    """mask or tolerate."""
    text: str
    source: str
    n_places: int | None
    """That it hides or forgives; None = not known."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair under some rules."""

    verdict: Verdict
    places: Sequence[Place]
    rules: Sequence[RuleLine]

    def n(self, state: State) -> int:
        """Return how many places are counted, masked or tolerated."""
        return sum(place.state == state for place in self.places)


def judged(row: Mapping[str, Any], settings: Settings) -> Judged:
    """
    Return a stored pair under the rules in force now.

    Args:
        row: of the question `pair`.
    """
    about = (row["network"], row["method"], row["shadow_upstream"])
    mask_rules = rules.masks_in_force(settings, *about)
    tolerance_rules = rules.tolerances_in_force(settings, *about)
    mask_texts, tolerance_texts = [rule.text for rule in mask_rules], [rule.text for rule in tolerance_rules]
    primary, shadow = answers(row)
    found = preview(
        question(row),
        primary,
        shadow,
        Policy(masks=masks.compile(mask_texts), tolerate=tolerances.compile(tolerance_texts)),
        explained_masks=mask_texts,
        explained_tolerances=tolerance_texts,
    )
    lines = [
        *(_line("mask", rule, effect) for rule, effect in zip(mask_rules, found.masks, strict=True)),
        *(_line("tolerate", rule, effect) for rule, effect in zip(tolerance_rules, found.tolerances, strict=True)),
    ]
    return Judged(found.verdict, found.places, lines)


def _line(kind: str, rule: rules.Rule, effect: Effect) -> RuleLine:
    n = None if effect.findings is None else sum(finding.n_paths for finding in effect.findings)
    return RuleLine(kind, rule.text, SOURCES.get(rule.source, rule.source), n)


def question(row: Mapping[str, Any]) -> Question:
    """Return what was asked, and what was known of the chain then."""
    return Question(
        network=row["network"],
        method=row["method"],
        params=row["params"].encode("utf-8", "surrogatepass") or None,
        latest=row["head_latest"],
        finalized=row["head_finalized"],
        primary_head=row["primary_head"],
        shadow_head=row["shadow_head"],
    )


def answers(row: Mapping[str, Any]) -> tuple[Answer, Answer]:
    """Return both answers of a stored pair; one whose body is not kept whole has none."""
    sides = []
    for side in ("primary", "shadow"):
        body = "" if row[f"{side}_is_cut"] else row[f"{side}_body"]
        sides.append(
            Answer(
                kind=row[f"{side}_kind"],
                fragment=body.encode("utf-8", "surrogatepass"),
                is_equal=row["primary_hash"] == row["shadow_hash"] != "",
            )
        )
    return sides[0], sides[1]


def has_bodies(row: Mapping[str, Any]) -> bool:
    """Return whether both answers are kept whole."""
    return all(
        row[f"{side}_kind"] == "none" or (row[f"{side}_body"] and not row[f"{side}_is_cut"])
        for side in ("primary", "shadow")
    )


def mask_for(generic_path: str) -> str:
    """
    Return the mask that leaves a generic path out; empty where none can (an error, or the result as a whole).

    >>> mask_for("$.result[*].logs[*].logIndex")
    '*.logs.*.logIndex'
    """
    keys = steps_of(generic_path)
    if not keys or keys[-1] == "*":
        return ""
    return ".".join("*" if key == "*" else masks.show_name(key) for key in keys)


def steps_of(generic_path: str) -> list[str]:
    """Return the steps of a generic path below the result, `*` for each that is folded; none for other roots."""
    if not generic_path.startswith("$.result"):
        return []
    rest, keys = generic_path[len("$.result") :], []
    while rest:
        if rest.startswith("[*]"):
            keys.append("*")
            rest = rest[3:]
        elif rest.startswith("['"):
            end = rest.index("']")
            keys.append(rest[2:end].replace("\\'", "'").replace("\\\\", "\\"))
            rest = rest[end + 2 :]
        else:
            name = rest[1:].replace("[", ".").split(".", 1)[0]
            keys.append(name)
            rest = rest[1 + len(name) :]
    return keys
