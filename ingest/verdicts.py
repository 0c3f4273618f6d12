"""
Which verdicts are worth a log line, and what it says.

A mismatch is an error with the request, both answers (cut), the paths and the masks; a pair without a verdict is a
warning. The rest is silent (`ingest.comparisons.TOLD`). A burst is cut: `MAX_LINES_PER_BATCH` lines, then one that says
how many more there were.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ingest.comparisons import Verdict

Level = Literal["info", "warning", "error"]

MAX_LINES_PER_BATCH = 10
MAX_PATHS = 5


@dataclass(frozen=True, slots=True)
class Line:
    """One log line: a constant phrase and its facts."""

    level: Level
    event: str
    facts: dict[str, object]


def lines(verdicts: Iterable[Verdict]) -> list[Line]:
    """Return the lines of a batch, in its order."""
    shown: list[Line] = []
    n_more = 0
    for verdict in verdicts:
        if len(shown) == MAX_LINES_PER_BATCH:
            n_more += 1
        else:
            shown.append(_line(verdict))
    if n_more:
        shown.append(
            Line("warning", "more verdicts worth reading", {"n": n_more, "see": "gnomon query last_mismatches"})
        )
    return shown


def _line(verdict: Verdict) -> Line:
    facts: dict[str, object] = {
        "request_id": verdict.request_id,
        "network": verdict.network,
        "method": verdict.method,
        "primary": verdict.primary_upstream,
        "shadow": verdict.upstream,
        "finality": verdict.finality,
    }
    if verdict.outcome != "mismatch":
        facts["outcome"] = verdict.outcome
        facts["reason"] = verdict.reason or verdict.error or verdict.class_
        return Line("warning", "shadow gave no verdict", facts)
    facts["class"] = verdict.class_
    facts["paths"] = " ".join(verdict.paths[:MAX_PATHS])
    if len(verdict.paths) > MAX_PATHS:
        facts["n_paths"] = len(verdict.paths)
    if verdict.masks:
        facts["masks"] = " ".join(verdict.masks)
    facts["params"] = _text(verdict.params)
    facts["primary_answer"] = _text(verdict.primary)
    facts["shadow_answer"] = _text(verdict.shadow)
    return Line("error", "shadow differs from primary", facts)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
