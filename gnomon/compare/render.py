"""One verdict as text for a person: what it is, and what differs, side by side, lists folded."""

import unicodedata
from typing import Final

from gnomon.compare.findings import Finding
from gnomon.compare.judge import Verdict

_RESET: Final = "\x1b[0m"
_COLOURS: Final = {"good": "\x1b[32m", "bad": "\x1b[31m", "unsure": "\x1b[33m", "name": "\x1b[1m", "dim": "\x1b[2m"}
_MOOD: Final = {
    "identical": "good", "identical_masked": "good", "tolerated": "good", "mismatch": "bad", "error": "bad",
    "missing": "bad", "undecided": "unsure", "incomparable": "unsure",
}  # fmt: skip

_SAYS: Final = {
    "identical": "the answers are the same",
    "identical_masked": "the answers are the same once the masks are applied",
    "tolerated": "the answers differ in tolerated ways only",
    "mismatch": "the answers differ",
    "error": "one side gave no answer",
    "missing": "the shadow gave no JSON-RPC answer",
    "incomparable": "there is no single right answer here",
    "undecided": "it cannot be told",
}
_REASONS: Final = {
    "too_large": "an answer is too large to be read",
    "too_deep": "an answer is nested too deep",
    "too_many": "there are too many differences",
    "no_body": "a body is not at hand",
    "parse": "an answer cannot be read as JSON",
}
_MIN_COLUMN: Final = 24
_GAP: Final = " │ "
_ABSENT: Final = "(absent)"
_STACKED: Final = "  primary  "
_STACKED_ROWS: Final = 6
"""Rows that a value takes which is too long to stand beside the other."""
_MIN_MARKED: Final = 16
"""Characters from which on carets show what differs; in shorter values it is seen."""


class Painter:
    """Colours, where they are wanted."""

    def __init__(self, is_coloured: bool) -> None:
        self._is_coloured = is_coloured

    def __call__(self, colour: str, text: str) -> str:
        return f"{_COLOURS[colour]}{text}{_RESET}" if self._is_coloured and text else text


def render(
    verdict: Verdict, *, method: str = "", width: int = 100, is_coloured: bool = False, max_findings: int = 50
) -> str:
    """
    Return a verdict for a person.

    Args:
        verdict: what was judged.
        method: named in the first line where known.
        width: of the terminal, in characters.
        is_coloured: with ANSI colours.
        max_findings: more are folded into a count.
    """
    paint = Painter(is_coloured)
    head = [paint(_MOOD[verdict.outcome], verdict.outcome)]
    if verdict.class_ != "none":
        head.append(paint("name", verdict.class_))
    head.append(verdict.finality)
    if method:
        head.append(method)
    lines = [" · ".join(head), f"{_SAYS[verdict.outcome]}{_because(verdict)}"]
    if verdict.n_masked:
        lines.append(paint("dim", f"masks removed {verdict.n_masked} members"))
    if len(verdict.classes) > 1:
        lines.append(paint("dim", f"kinds of difference: {', '.join(verdict.classes)}"))
    if verdict.findings:
        lines.append(f"{paint('bad', 'primary')} {paint('dim', 'beside')} {paint('good', 'shadow')}:")
    for finding in verdict.findings[:max_findings]:
        lines += ["", *_finding(finding, width, paint)]
    n_folded = len(verdict.findings) - max_findings
    if n_folded > 0:
        lines += ["", paint("dim", f"… and {n_folded} more kinds of difference")]
    return "\n".join(lines)


def _because(verdict: Verdict) -> str:
    if verdict.reason:
        return f": {_REASONS[verdict.reason]}"
    n = len(verdict.paths)
    return f": {n} {'path' if n == 1 else 'paths'}" if n else ""


def _finding(finding: Finding, width: int, paint: Painter) -> list[str]:
    if finding.n_paths > 1:
        title = f"{paint('name', finding.generic_path)}  {finding.class_}  ×{finding.n_paths}"
        lines = [title, paint("dim", f"  first at {finding.path}")]
    else:
        lines = [f"{paint('name', finding.path)}  {finding.class_}"]
    left, right = _Side(_shown(finding.primary_value), "bad"), _Side(_shown(finding.shadow_value), "good")
    if finding.primary_value and finding.shadow_value:
        left.mark(right)
    column = (width - len(_GAP) - 2) // 2
    if column >= _MIN_COLUMN and all(columns(side.text) <= 4 * column for side in (left, right)):
        return lines + _side_by_side(left, right, column, paint)
    room = max(_MIN_COLUMN, width - len(_STACKED))
    return lines + _stacked("primary", left, room, paint) + _stacked("shadow", right, room, paint)


class _Side:
    """One value, and the part of it that the other side does not have."""

    def __init__(self, text: str, colour: str) -> None:
        self.text = text
        self.colour = colour
        self.first, self.last = 0, len(text)
        self.is_marked = False

    def mark(self, other: "_Side") -> None:
        """Find what differs in both: all but what they begin and end with in common."""
        a, b = self.text, other.text
        room = min(len(a), len(b))
        start = next((i for i in range(room) if a[i] != b[i]), room)
        end = next((i for i in range(room - start) if a[-1 - i] != b[-1 - i]), room - start)
        for side in (self, other):
            side.first, side.last = start, len(side.text) - end
            side.is_marked = room >= _MIN_MARKED and 4 * (start + end) >= 3 * room  # a small part of the whole

    def rows(self, column: int, paint: Painter) -> list[tuple[str, int]]:
        """Return the rows of at most `column` columns, painted, each with its width; carets below what differs."""
        rows: list[tuple[str, int]] = []
        for start, end in _pieces(self.text, column):
            first, last = max(start, self.first), min(end, self.last)
            before, part, after = self.text[start : max(start, first)], self.text[first:last], ""
            if first >= last:
                before, part = self.text[start:end], ""
            else:
                after = self.text[last:end]
            rows.append((before + paint(self.colour, part) + after, columns(self.text[start:end])))
            if self.is_marked and part:
                carets = " " * columns(before) + "^" * columns(part)
                rows.append((paint("dim", carets), len(carets)))
        return rows or [("", 0)]


def _side_by_side(left: _Side, right: _Side, column: int, paint: Painter) -> list[str]:
    a, b = left.rows(column, paint), right.rows(column, paint)
    blank = [("", 0)] * abs(len(a) - len(b))
    gap = paint("dim", _GAP)
    return [
        f"  {x}{' ' * (column - x_width)}{gap}{y}".rstrip()
        for (x, x_width), (y, _) in zip(a + blank, b + blank, strict=False)
    ]


def _stacked(label: str, side: _Side, room: int, paint: Painter) -> list[str]:
    """Return a long value below its label, cut to a few rows around what differs."""
    limit = _STACKED_ROWS * room
    if len(side.text) > limit // 2 and columns(side.text) > limit:
        start = max(0, side.first - room // 2)
        cut = _Side(("…" if start else "") + side.text[start : start + limit // 2] + "…", side.colour)
        shift = start - (1 if start else 0)
        cut.first = side.first - shift
        cut.last = max(cut.first, min(side.last - shift, len(cut.text)))
        cut.is_marked = side.is_marked
        side = cut
    rows = [row for row, _ in side.rows(room, paint)]
    return [f"{f'  {label}' if i == 0 else '':<{len(_STACKED)}}{row}".rstrip() for i, row in enumerate(rows)]


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_width(c) for c in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _pieces(text: str, column: int) -> list[tuple[int, int]]:
    """Return where the rows of a text begin and end when each may take `column` columns."""
    if text.isascii():
        return [(start, min(start + column, len(text))) for start in range(0, len(text), column)]
    pieces: list[tuple[int, int]] = []
    start = taken = 0
    for position, character in enumerate(text):
        width = _width(character)
        if taken + width > column and position > start:
            pieces.append((start, position))
            start, taken = position, 0
        taken += width
    return [*pieces, (start, len(text))]


def _shown(value: str) -> str:
    return shown(value) if value else _ABSENT


def shown(value: str) -> str:
    """Return a text that cannot move the cursor or change colours: control characters are shown by escapes."""
    return (
        value
        if value.isprintable()
        else "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in value)
    )
