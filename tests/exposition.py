"""Reads Prometheus' text format, for tests of what the services show."""

import re
from collections.abc import Mapping, Sequence

_SAMPLE = re.compile(r'(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>(?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (?P<value>\S+)')
_LABEL = re.compile(r'([a-z_]+)="(?:[^"\\]|\\.)*"')


def labels_by_name(text: str) -> dict[str, set[tuple[str, ...]]]:
    """Return metric → the label names of its samples, sorted; a line of another form is an AssertionError."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        match = _SAMPLE.fullmatch(line)
        assert match is not None, line
        float(match["value"])
        found.setdefault(match["name"], set()).add(tuple(sorted(_LABEL.findall(match["labels"] or ""))))
    return found


def undeclared(text: str, declared: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what a text shows otherwise than declared: a metric that is not in the list, other labels."""
    return [
        f"{name}{labels}"
        for name, found in labels_by_name(text).items()
        for labels in found
        if name not in declared or tuple(sorted(declared[name])) != labels
    ]
