"""The words at the end: what was asked, what was found, what it cost, and whether that is what was planted."""

import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from gnomon.demo.measures import Findings
from gnomon.demo.planted import PLANTS
from gnomon.demo.world import Endpoint

TOP: Final = 10
QUERIES: Final = (
    (
        "where do they differ?",
        "SELECT method, generic_path, class, count() AS n, any(primary_value) AS a, any(shadow_value) AS b "
        "FROM gnomon.findings GROUP BY method, generic_path, class ORDER BY n DESC LIMIT 20",
    ),
    (
        "what was paid, and why?",
        "SELECT vendor, kind, cause, count() AS n, sum(usd) AS usd "
        "FROM gnomon.attempts WHERE tier = 'fallback' GROUP BY vendor, kind, cause ORDER BY n DESC",
    ),
    (
        "how fast is each upstream?",
        "SELECT upstream, tier, kind, count() AS n, quantile(0.5)(duration_us) AS p50_us, "
        "quantile(0.99)(duration_us) AS p99_us "
        "FROM gnomon.attempts GROUP BY upstream, tier, kind ORDER BY upstream, kind",
    ),
)
"""A question and the SQL that answers it, to paste."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the run itself knows."""

    kind: str
    """"real" or "simulated"."""
    primary: Endpoint
    shadow: Endpoint
    fallback: Endpoint
    client: str
    seconds: float
    calls: int
    failed_calls: int
    last_failure: str
    withheld: int
    refused: int
    first_divergence_seconds: float | None
    """Since the start of the program, installs left out."""


def shortfalls(facts: Facts, found: Findings) -> list[str]:
    """Return what the demonstration should have shown and did not; empty when it is as it should be."""
    missing = []
    counts = found.counts
    if not counts.requests:
        missing.append("no request reached ClickHouse")
    if counts.requests and not counts.pairs:
        missing.append("no pair was compared")
    if counts.pairs and not counts.final_mismatches:
        missing.append("no difference on final data was found, though the two nodes differ")
    causes = Counter({row["cause"]: row["n"] for row in found.paid if row["kind"] != "head_poll"})
    if facts.withheld and not causes["empty_at_head"]:
        missing.append(f"{facts.withheld} block look-ups were withheld, but no paid call has the cause empty_at_head")
    if not facts.withheld:
        missing.append("no block look-up was withheld: the run was too short")
    if facts.kind == "simulated":
        shown = {(row["method"], row["generic_path"], row["class"]) for row in found.findings}
        planted = {(plant.method, plant.generic_path, plant.class_): plant.says for plant in PLANTS}
        missing += [
            f"planted and not found: {says} ({key[0]} {key[1]})" for key, says in planted.items() if key not in shown
        ]
        missing += [f"found and not planted: {' '.join(key)}" for key in sorted(shown - planted.keys())]
    return missing


def render(facts: Facts, found: Findings) -> str:
    """Return the summary, without a newline at the end."""
    counts = found.counts
    lines = [
        "",
        f"What {facts.seconds:.0f} seconds showed",
        f"  primary   {_node(facts.primary)}, behind a shim that loses some blocks and refuses some calls",
        f"  shadow    {_node(facts.shadow)}",
        f"  fallback  {_node(facts.fallback)}, priced as Alchemy",
        f"  client    {facts.client}, {facts.calls} calls"
        + (f", {facts.failed_calls} failed (last: {facts.last_failure[:120]})" if facts.failed_calls else ""),
        "",
        f"Requests    {counts.requests} stored: {_counts(found.outcomes, 'outcome')}",
        f"Mirrored    {counts.mirrored} to the shadow ({_counts(found.decisions, 'decision')})",
        f"Pairs       {counts.pairs} compared: {_counts(_by(found.verdicts, 'outcome'), 'outcome')}",
        f"            mismatches by class: {_counts(_mismatch_classes(found), 'class') or 'none'}",
        f"            on final data: {counts.final_mismatches}",
    ]
    if facts.first_divergence_seconds is not None:
        lines.append(f"            the first real divergence was in SQL after {facts.first_divergence_seconds:.1f} s")
    lines += ["", *_paths(found.findings), "", *_bill(facts, found)]
    return "\n".join(lines)


def _node(endpoint: Endpoint) -> str:
    return f"{endpoint.name} ({endpoint.version})"


def _paths(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [f"Where they differ ({len(findings)} kinds, the most frequent first)"]
    for row in findings[:TOP]:
        lines += [
            f"  {row['n']:>5} × {row['method']}  {row['generic_path']}  {row['class']}",
            f"          {_cut(row['primary_value'])}  |  {_cut(row['shadow_value'])}",
        ]
    if len(findings) > TOP:
        lines.append(f"        and {len(findings) - TOP} more")
    return lines


def _bill(facts: Facts, found: Findings) -> list[str]:
    lines = [f"Paid calls  USD {_usd(found.paid_usd)} at {facts.fallback.name}"]
    for row in found.paid:
        price = "unpriced" if row["usd"] is None else f"USD {_usd(row['usd'])}"
        what = f"{row['kind']} {row['cause']}".strip()
        lines.append(f"  {row['n']:>5} × {what:<28} {price}")
    lines.append(
        f"            planted: {facts.withheld} block look-ups withheld, {facts.refused} calls refused with 503"
    )
    return lines


def _usd(value: object) -> str:
    return f"{Decimal(str(value)):.8f}"


def _by(rows: Sequence[Mapping[str, Any]], key: str) -> list[dict[str, Any]]:
    totals: Counter[str] = Counter()
    for row in rows:
        totals[row[key]] += row["n"]
    return [{key: name, "n": n} for name, n in totals.most_common()]


def _mismatch_classes(found: Findings) -> list[dict[str, Any]]:
    return _by([row for row in found.verdicts if row["outcome"] == "mismatch"], "class")


def _counts(rows: Sequence[Mapping[str, Any]], key: str) -> str:
    return ", ".join(f"{row['n']} {row[key]}" for row in rows)


def _cut(text: str, length: int = 60) -> str:
    text = text or "(absent)"
    return text if len(text) <= length else text[: length - 1] + "…"


def program() -> str:
    """Return what to type to get this very `gnomon`: its name where the shell finds it, else its path."""
    ours = Path(sys.executable).with_name("gnomon")
    found = shutil.which("gnomon")
    if found is not None and os.path.realpath(found) == os.path.realpath(ours):
        return "gnomon"
    return shlex.quote(_short(ours)) if ours.exists() else f"{shlex.quote(sys.executable)} -m gnomon"


def _short(path: Path) -> str:
    """Return a path from here where it is below here, else the whole path."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def where(folder: Path, config: Path, clickhouse_url: str, gnomon: str, *, is_kept: bool) -> str:
    """
    Return where SQL is, and three queries to paste.

    Args:
        folder, config: data folder and configuration of the run.
        clickhouse_url: where it is served.
        gnomon: what starts the command, for a shell.
        is_kept: whether everything keeps running.
    """
    data, file = shlex.quote(_short(folder)), shlex.quote(_short(config))
    lines = ["", f"SQL         {clickhouse_url} serves it now; three queries to paste:"]
    if not is_kept:
        lines = [
            "",
            "SQL         what was stored is served again by",
            "",
            f"  {gnomon} clickhouse --config {file} --data {data}",
            "",
            "            until Ctrl-C; beside it, three queries to paste:",
        ]
    for question, sql in QUERIES:
        lines += ["", f"  # {question}", f'  {gnomon} query --config {file} --sql "{sql}"']
    lines += [
        "",
        "  # or with any tool that speaks to ClickHouse",
        f'  curl {clickhouse_url} --data-binary "SELECT count() FROM gnomon.requests"',
    ]
    return "\n".join(lines)
