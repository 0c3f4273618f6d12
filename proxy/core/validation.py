"""
What a result must have to count: paths that may not be missing or null.

    hash                      a member of the result
    transactions.*.hash       of each element, or of each member
"""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Raw

Fragment = bytes | memoryview | Raw

_decode = msgspec.json.Decoder().decode


def lacking(paths: Sequence[str]) -> Callable[[Fragment], bool]:
    """Return a function that says whether a raw result lacks one of the paths, or is no JSON."""
    split = [path.split(".") for path in paths]

    def lacks(fragment: Fragment) -> bool:
        try:
            value = _decode(fragment)
        except (ValueError, RecursionError):
            return True
        return not all(_has(value, keys) for keys in split)

    return lacks


def _has(value: object, keys: Sequence[str]) -> bool:
    for i, key in enumerate(keys):
        if key == "*":
            if not isinstance(value, dict | list):
                return False
            return all(_has(one, keys[i + 1 :]) for one in (value.values() if isinstance(value, dict) else value))
        if isinstance(value, list):
            value = value[int(key)] if key.isdecimal() and int(key) < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value is not None
