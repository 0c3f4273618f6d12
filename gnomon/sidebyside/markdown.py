"""A report to paste into a bug thread: what differs, how often, and the commands that show it again."""

import msgspec

from gnomon.sidebyside.report import Finding, Report, conclusion, counts, parted, silences

MAX_FINDINGS = 25
"""So many kinds of difference are shown with their values; the rest are counted."""


def markdown(report: Report) -> str:
    """Return the report as Markdown, without a newline at the end; URLs are shown as `Report` holds them."""
    lines = [
        f"### JSON-RPC answers: {_plain(report.primary)} and {_plain(report.shadow)}",
        "",
        f"{report.requests} questions: {counts(report.outcomes) or 'none'}. {conclusion(report)}",
    ]
    if report.parting is not None:
        lines += ["", parted(report.parting)]
    unserved = [f"{_code(family)} ({who})" for family, who in sorted(report.unserved.items())]
    if unserved:
        lines += ["", f"Not served: {', '.join(unserved)}."]
    lines += [line for why in silences(report) for line in ("", _plain(f"{why[0].upper()}{why[1:]}."))]
    findings = report.findings
    if findings:
        lines += ["", "| pairs | method | path | difference |", "| ---: | --- | --- | --- |"]
        lines += [f"| {f.n} | {_code(f.method)} | {_code(f.generic_path)} | {f.class_} |" for f in findings]
    for finding in findings[:MAX_FINDINGS]:
        lines += ["", *_example(finding)]
    if len(findings) > MAX_FINDINGS:
        lines += ["", f"… and {len(findings) - MAX_FINDINGS} more kinds, without their values."]
    return "\n".join(lines)


def _example(finding: Finding) -> list[str]:
    example = finding.example
    request = msgspec.json.encode(
        {"jsonrpc": "2.0", "id": 1, "method": finding.method, "params": example["params"]}
    ).decode()
    quoted = request.replace("'", "'\\''")
    block = [
        f"at       {example['path']}",
        f"primary  {example['primary'] or '(absent)'}",
        f"shadow   {example['shadow'] or '(absent)'}",
        "",
        'for url in "$PRIMARY" "$SHADOW"; do',
        f"  curl -s \"$url\" -H 'content-type: application/json' -d '{quoted}'",
        "done",
    ]
    text = "\n".join(block)
    fence = "`" * max(3, _longest_run(text) + 1)
    return [f"**{_code(finding.method)} {_code(finding.generic_path)}: {finding.class_}**", "", fence, text, fence]


def _longest_run(text: str) -> int:
    """Return the length of the longest run of back quotes."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


def _code(text: str) -> str:
    """Return text as code that neither a table nor back quotes in it can break."""
    fence = "`" * (_longest_run(text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}".replace("|", "\\|").replace("\n", " ")


def _plain(text: str) -> str:
    """Return text in which nothing is markup."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#" else c for c in text)
