"""
Empty results: `null`, `""`, `"0x"`, `[]`, `{}`, with any white space around or inside the brackets.

A zero quantity (`"0x0"`, `0`) and `false` are values. Whether an empty result is an answer or a miss is a property of
the method (`Method.miss_when_empty`). Both functions look at a few bytes of a large fragment, never at all of it.
"""

from gnomon.rpc.methods import Method

Fragment = bytes | bytearray | memoryview

_PLAIN = frozenset((b"null", b'""', b'"0x"', b"[]", b"{}"))
_WHITE = b" \t\r\n"
_OPEN = b"[{"


def is_emptyish(fragment: Fragment) -> bool:
    """
    Return whether the raw JSON text of a result is empty.

    Args:
        fragment: the whole text of the `result` member. Nothing at all (no bytes) is empty too.
    """
    n = len(fragment)
    if n <= 4:
        return n == 0 or bytes(fragment) in _PLAIN or _is_padded(bytes(fragment))
    first = fragment[0]
    if first not in _WHITE and (first not in _OPEN or fragment[1] not in _WHITE) and fragment[n - 1] not in _WHITE:
        return False
    return _is_padded(bytes(fragment))


def _is_padded(text: bytes) -> bool:
    """Return whether `text` is one of the empty forms once white space is taken off."""
    text = text.strip(_WHITE)
    if text in _PLAIN:
        return True
    brackets = text[:1] + text[-1:]
    return (brackets == b"[]" or brackets == b"{}") and not text[1:-1].strip(_WHITE)


def is_miss(method: Method, fragment: Fragment) -> bool:
    """Return whether this result of `method` says "not found", so that another upstream may know better."""
    if not method.miss_when_empty or not is_emptyish(fragment):
        return False
    return not (method.list_is_value and bytes(fragment).lstrip(_WHITE)[:1] == b"[")
