"""
Where a difference is: JSONPath from the root of the response, and the same without indexes and data.

While a walk goes down, a place is a chain of pairs `(parent, key)`; text is made only where something differs.
"""

import re
from typing import Any

Place = Any
"""None at the root, else `(parent place, member name or index)`."""

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_DATA_NAME = re.compile(r"0[xX][0-9a-fA-F]*(?:-\d+)?|\d+|[0-9a-fA-F]{32,}")
"""Member names that are data: hex words, addresses, slots, numbers, `0xa9059cbb-64` of the 4-byte tracer."""


def keys_of(place: Place) -> list[str | int]:
    """Return the keys from the root to a place."""
    keys: list[str | int] = []
    while place is not None:
        place, key = place
        keys.append(key)
    keys.reverse()
    return keys


def member(name: str) -> str:
    """Return the step to a member: `.data`, or `['0x0c2c…']` where the name is no identifier."""
    if _IDENTIFIER.fullmatch(name):
        return f".{name}"
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    if not quoted.isprintable():
        quoted = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in quoted)
    return f"['{quoted}']"


def render(root: str, keys: list[str | int]) -> str:
    """Return the path of a place: `$.result.logs[0].data`."""
    return root + "".join(f"[{key}]" if type(key) is int else member(str(key)) for key in keys)


def generic(root: str, keys: list[str | int]) -> str:
    """Return the path without indexes, and without member names that are data: `$.result[*].storage[*]`."""
    return root + "".join(
        "[*]" if type(key) is int or _DATA_NAME.fullmatch(str(key)) else member(str(key)) for key in keys
    )


_STEP = re.compile(
    r"\.(?P<plain>[A-Za-z_$][A-Za-z0-9_$]*)|\[(?P<index>\d+)\]|\['(?P<quoted>(?:[^'\\]|\\.)*)'\]", re.DOTALL
)
_ESCAPE = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)", re.DOTALL)


def parse(text: str) -> tuple[str, list[str | int]]:
    """
    Return root and keys of a path that `render` wrote: `$.result`, `$.error`, or those of an element of a batch.

    Raises:
        ValueError: it is no such path.

    >>> parse("$.result.logs[0]['0x1f']")
    ('$.result', ['logs', 0, '0x1f'])
    """
    root = re.match(r"\$(?:\[\d+\])?\.(?:result|error)(?![A-Za-z0-9_$])", text)
    if root is None:
        raise ValueError(f"{text!r} is no path of a difference")
    keys: list[str | int] = []
    position = root.end()
    while position < len(text):
        step = _STEP.match(text, position)
        if step is None:
            raise ValueError(f"{text!r} is no path of a difference from character {position}")
        if step["index"] is not None:
            keys.append(int(step["index"]))
        elif step["plain"] is not None:
            keys.append(step["plain"])
        else:
            keys.append(_ESCAPE.sub(_unescaped, step["quoted"]))
        position = step.end()
    return root[0], keys


def _unescaped(match: re.Match[str]) -> str:
    escape = match[0]
    if escape in ("\\\\", "\\'"):
        return escape[1]
    return escape.encode("ascii").decode("unicode_escape")
