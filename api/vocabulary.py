"""Closed vocabularies that filters take (contract: an unknown value is a bug, not an extension)."""

from collections.abc import Mapping, Sequence
from typing import Final, get_args

from gnomon.compare.classes import TELLING
from gnomon.compare.judge import Outcome
from gnomon.events import contract

_SHARED: Final[Mapping[str, Sequence[str]]] = {
    "class": ("none", *TELLING),
    "finality": ("finalized", "unfinalized", "realtime", "unknown"),
    "settled": ("pending", "primary_right", "shadow_right", "both_wrong", "same", "reorged", "unresolved"),
    "tier": get_args(contract.Tier),
    "kind": get_args(contract.Kind),
    "axis": get_args(contract.Axis),
    "cause": tuple(word for word in get_args(contract.Cause) if word),
}
"""Filter → its words, wherever it stands."""

_OF_QUESTIONS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "comparisons": {"outcome": get_args(Outcome)},
    "differences": {"outcome": get_args(Outcome)},
    "requests": {"outcome": get_args(contract.RequestOutcome)},
    "attempts": {"outcome": get_args(contract.AttemptOutcome)},
    "alert_changes": {"state": ("firing", "resolved")},
}
"""Question → filters whose words are its own."""


def of_question(name: str) -> Mapping[str, Sequence[str]]:
    """Return the words of each filter of a question that has a closed vocabulary."""
    return {**_SHARED, **_OF_QUESTIONS.get(name, {})}
