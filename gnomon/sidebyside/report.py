"""What a comparison found: counted while it runs, rendered for a machine or for a person."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from gnomon.compare.judge import Verdict
from gnomon.sidebyside.sampling import Ask

FOUND_IN: Final = frozenset({"mismatch", "error"})
"""Outcomes whose findings are reported: the others are equal, forgiven, or have no single right answer."""


@dataclass(slots=True)
class Finding:
    """One kind of difference: a method, a path without indexes, a class."""

    method: str
    generic_path: str
    class_: str
    example: dict[str, Any]
    """`params`, `path`, and the values there as JSON texts, cut to a limit; an absent member is an empty text."""
    n: int = 0
    """Pairs that show it."""


@dataclass(slots=True)
class Report:
    """The tally of a run; `primary` and `shadow` are URLs that may be shown."""

    primary: str
    shadow: str
    requests: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    n_final_mismatches: int = 0
    """Pairs that differ and speak of final blocks: the reason for exit status 1."""
    parting: int | None = None
    """The first block of which the two have different hashes, where their histories part below the final height."""
    unserved: dict[str, str] = field(default_factory=dict)
    """Kind of question → which endpoint does not serve it."""
    n_unserved: Counter[str] = field(default_factory=Counter)
    """Kind of question → how many were asked in vain."""
    silences: Counter[str] = field(default_factory=Counter)
    """Which endpoint gave no JSON-RPC answer and why → how often."""
    n_in_vain: int = 0
    """Pairs of which one side gave no answer, methods that it does not serve left out."""
    ended_by: str = ""
    """Why the run ended before its time: an endpoint stopped answering."""
    _findings: dict[tuple[str, str, str], Finding] = field(default_factory=dict)

    def add(self, ask: Ask, verdict: Verdict, *, is_final: bool, unserved_by: str = "") -> None:
        """
        Count one pair.

        Args:
            unserved_by: which endpoint does not know the method; that is then all there is to find.
        """
        self.requests += 1
        self.outcomes[verdict.outcome] += 1
        self.classes[verdict.class_] += 1
        if verdict.outcome == "mismatch" and is_final:
            self.n_final_mismatches += 1
        if unserved_by:
            self.unserved[ask.family] = unserved_by
            self.n_unserved[ask.family] += 1
            return
        self.n_in_vain += verdict.outcome in ("error", "missing")
        if verdict.outcome not in FOUND_IN:
            return
        for found in verdict.findings:
            if found.class_ == "error_vs_result" and found.path == "$.result":
                continue  # one difference with two paths: the other one, $.error, stands for it
            if found.class_ == "error_message" and "error_code" in verdict.classes:
                continue  # another refusal says so in other words: its code stands for it
            key = (ask.method, found.generic_path, found.class_)
            finding = self._findings.get(key)
            if finding is None:
                example = {
                    "params": _params(ask.params),
                    "path": found.path,
                    "primary": found.primary_value,
                    "shadow": found.shadow_value,
                }
                finding = self._findings[key] = Finding(*key, example)
            finding.n += 1

    @property
    def findings(self) -> list[Finding]:
        """Most frequent first, then by name."""
        return sorted(self._findings.values(), key=lambda f: (-f.n, f.method, f.generic_path, f.class_))

    @property
    def n_compared(self) -> int:
        """Pairs in which both endpoints answered with something that has a right answer."""
        return sum(self.outcomes[outcome] for outcome in ("identical", "identical_masked", "tolerated", "mismatch"))

    def as_json(self) -> dict[str, Any]:
        """Return the contract's object."""
        return {
            "primary": self.primary,
            "shadow": self.shadow,
            "requests": self.requests,
            "outcomes": dict(self.outcomes),
            "classes": dict(self.classes),
            "findings": [
                {
                    "method": finding.method,
                    "generic_path": finding.generic_path,
                    "class": finding.class_,
                    "n": finding.n,
                    "example": finding.example,
                }
                for finding in self.findings
            ],
        }


def render(report: Report) -> str:
    """Return the report for a person, without a newline at the end."""
    lines = [
        f"primary  {report.primary}",
        f"shadow   {report.shadow}",
        "",
        f"{report.requests} questions: {counts(report.outcomes) or 'none'}",
    ]
    kinds = {name: n for name, n in report.classes.items() if name not in ("none", "")}
    if kinds:
        lines.append(f"kinds of difference: {counts(kinds)}")
    if report.parting is not None:
        lines.append(parted(report.parting))
    for family, who in sorted(report.unserved.items()):
        n = report.n_unserved[family]
        lines.append(f"not served by {who}: {family} ({n} {'questions' if n > 1 else 'question'})")
    lines += silences(report)
    for finding in report.findings:
        lines += [
            "",
            f"{finding.n:>5} × {finding.method}  {finding.generic_path}  {finding.class_}",
            f"        asked    {_cut(msgspec.json.encode(finding.example['params']).decode(), 110)}",
        ]
        if finding.example["path"] != finding.generic_path:
            lines.append(f"        at       {finding.example['path']}")
        lines += [
            f"        primary  {_value(finding.example['primary'])}",
            f"        shadow   {_value(finding.example['shadow'])}",
        ]
    lines += ["", conclusion(report)]
    return "\n".join(lines)


def parted(height: int) -> str:
    """Return what it means that histories part at a block, in a sentence."""
    if height == 0:
        return "They have different genesis blocks: two chains of one id, which differ in every hash."
    return f"Their histories part at block {height}: from there on they are two chains, which differ in every hash."


def _params(text: bytes) -> Any:
    """Return parameters decoded; as a text where they cannot be."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text.decode(errors="backslashreplace")


def silences(report: Report) -> list[str]:
    """Return a line for each of the commonest reasons why an endpoint gave no answer."""
    lines = [f"{why} ({n} {'times' if n > 1 else 'time'})" for why, n in report.silences.most_common(5)]
    n_folded = len(report.silences) - len(lines)
    return [*lines, f"… and {n_folded} more reasons"] if n_folded > 0 else lines


def conclusion(report: Report) -> str:
    """Return what the run showed, in a sentence or two."""
    n = report.n_in_vain
    also = f" {n} of {report.requests} questions were not answered by both." if n else ""
    ended = f" The run ended early: {report.ended_by}." if report.ended_by else ""
    return f"{_conclusion(report)}{also}{ended}"


def _conclusion(report: Report) -> str:
    n = report.outcomes["mismatch"]
    if report.n_final_mismatches:
        return f"They differ on final data: {report.n_final_mismatches} of {n} mismatches speak of final blocks."
    if not report.n_compared:
        return "Nothing could be compared: no question was answered by both."
    if n:
        return f"They differ in {n} answers, none of which is known to speak of final blocks."
    return f"No difference in {report.n_compared} compared answers."


def counts(numbers: Mapping[str, int]) -> str:
    """Return numbers with their names, the greatest first."""
    ordered = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{n} {name}" for name, n in ordered if n)


def _value(text: str) -> str:
    return _cut(text, 110) if text else "(absent)"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
