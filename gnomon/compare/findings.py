"""
Differences as people and tables want them: one finding for each kind of difference at each generic path, with a count,
and with example values cut so that the difference stays visible.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from gnomon.compare import paths
from gnomon.compare.exact import Value, text_of
from gnomon.compare.walk import ABSENT, Difference

VALUE_CHARACTERS: Final = 400
"""Longest example value."""
_MAX_SPELLED: Final = 256 << 20
"""Characters written out for the examples of one verdict; lists and objects after that are shown as […] and {…}."""
_BEFORE: Final = 40
"""Characters that a cut value keeps before the first that differs."""


class Finding(Struct, frozen=True):
    """One kind of difference at one generic path of one pair."""

    path: str
    """Of the first."""
    generic_path: str
    n_paths: int
    class_: str
    primary_value: str
    """JSON text of the first, cut to a limit; empty where the member is absent."""
    shadow_value: str


def group(differences: Iterable[tuple[str, Difference]]) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """
    Return the paths of all differences, and the findings in order of first appearance.

    Args:
        differences: each with the root of its path (`$.result`, `$.error`, `$[1].result`).
    """
    all_paths: dict[str, None] = {}
    first: dict[tuple[str, str], tuple[str, Difference]] = {}
    counts: dict[tuple[str, str], int] = {}
    for root, difference in differences:
        keys = paths.keys_of(difference.place)
        path = paths.render(root, keys)
        all_paths[path] = None
        group_key = (paths.generic(root, keys), difference.class_)
        if group_key not in first:
            first[group_key] = (path, difference)
        counts[group_key] = counts.get(group_key, 0) + 1
    findings = []
    n_spelled = 0
    for group_key, (path, difference) in first.items():
        if n_spelled > _MAX_SPELLED:
            primary_value, shadow_value = _folded(difference.primary), _folded(difference.shadow)
        else:
            a, b = _texts(difference.primary, difference.shadow)
            n_spelled += len(a) + len(b)
            primary_value, shadow_value = _both_cut(a, b, VALUE_CHARACTERS)
            if group_key[1] == "array_length":
                primary_value = _counted(primary_value, difference.primary)
                shadow_value = _counted(shadow_value, difference.shadow)
        findings.append(Finding(path, group_key[0], counts[group_key], group_key[1], primary_value, shadow_value))
    return tuple(all_paths), tuple(findings)


def example(primary: Value, shadow: Value, limit: int = VALUE_CHARACTERS) -> tuple[str, str]:
    """Return two values as JSON texts of at most `limit` characters that still show where they differ."""
    return _both_cut(*_texts(primary, shadow), limit)


def _texts(primary: Value, shadow: Value) -> tuple[str, str]:
    return "" if primary is ABSENT else text_of(primary), "" if shadow is ABSENT else text_of(shadow)


def _folded(value: Value) -> str:
    """Return a value without what is in it, however large it is."""
    kind = type(value)
    if kind is list or kind is dict:
        return "[…]" if kind is list else "{…}"
    return "" if value is ABSENT else text_of(value)[:VALUE_CHARACTERS]


def _counted(text: str, elements: list[Value]) -> str:
    """Return the text of a list that was cut, with the number of its elements."""
    if not text.startswith("…") and not text.endswith("…"):
        return text
    count = f"({len(elements)} elements) "
    room = VALUE_CHARACTERS - len(count)
    return count + (text if len(text) <= room else text[: room - 1] + "…")


def _both_cut(a: str, b: str, limit: int) -> tuple[str, str]:
    if len(a) <= limit and len(b) <= limit:
        return a, b
    start = max(0, _common_length(a, b) - _BEFORE) if a and b else 0
    return _cut(a, start, limit), _cut(b, start, limit)


def _common_length(a: str, b: str) -> int:
    """Return how many characters two texts begin with in common."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _cut(text: str, start: int, limit: int) -> str:
    """Return the part of `text` from `start`, marked by an ellipsis at each end that is cut."""
    if len(text) <= limit and (start == 0 or len(text) <= start):
        return text
    head = "…" if start else ""
    part = text[start:]
    room = limit - len(head)
    return head + (part if len(part) <= room else part[: room - 1] + "…")
