"""
What kind of difference it is (rule 5 of the specification), and which of several kinds tells most.

A class lets a policy forgive one kind without hiding the others: two spellings of one value (`hex_case`,
`hex_padding`, `encoding`), null against nothing, another order.
"""

import re
from decimal import Decimal
from typing import Final

from gnomon.compare.exact import Number, Value

TELLING: Final = (
    "stale_head", "reorg_block_hash", "error_vs_result", "error_code", "error_message", "empty_vs_data", "value",
    "type", "array_length", "missing_field", "extra_field", "array_order", "encoding", "hex_padding", "hex_case",
    "null_vs_absent",
)  # fmt: skip
"""All classes of differences; the first that a pair has is its class."""

CLASSES: Final = frozenset(TELLING)

_RANK: Final = {class_: rank for rank, class_ in enumerate(TELLING)}

_HEX = re.compile(r"[0-9a-fA-F]+")
_DECIMAL = re.compile(r"[0-9]+")
_MIN_BARE_HEX = 16
"""Digits that a text without prefix must have to be taken for hex when only its case differs ("Ada" is a name)."""
_MAX_DECIMAL_DIGITS = 100
"""Longer numbers are no decimal notation of a quantity (2^256 has 78)."""


def most_telling(classes: set[str]) -> tuple[str, ...]:
    """Return the classes, the most telling first."""
    return tuple(sorted(classes, key=_RANK.__getitem__))


def of_values(a: Value, b: Value) -> str:
    """Return the class of two different values of which not both are objects and not both are lists."""
    kind = type(a)
    if kind is type(b):
        if kind is str:
            return _of_texts(a, b)
        return _of_numbers(a, b) if kind is Number else "value"
    if a is None or b is None:
        other = b if a is None else a
        if other == "" or other == "0x" or (type(other) in (list, dict) and not other):
            return "type"
        return "empty_vs_data"
    if kind in (int, Number) and type(b) in (int, Number):
        return _of_numbers(a, b)
    return "type"


def of_names(a: str, b: str) -> str | None:
    """Return the class when two member names are spellings of one hex word; None when they are not."""
    if fold_name(a) is None or fold_name(a) != fold_name(b):
        return None
    return _of_texts(a, b)


def fold_name(name: str) -> str | None:
    """Return what all spellings of a hex word share: no prefix, no leading zeros, lower case; None if it is none."""
    if name[:2] in ("0x", "0X"):
        digits = name[2:]
    elif len(name) >= _MIN_BARE_HEX:
        digits = name
    else:
        return None
    return digits.lower().lstrip("0") if _HEX.fullmatch(digits) else None


def _of_texts(a: str, b: str) -> str:
    digits_a, digits_b = _hex_digits(a), _hex_digits(b)
    if digits_a is not None and digits_b is not None:
        if digits_a.lower() == digits_b.lower():
            return "hex_case"
        if _folded(digits_a) == _folded(digits_b):
            return "hex_padding"
    elif {a, b} == {"", "0x"} or _is_other_notation(a, digits_a, b, digits_b):
        return "encoding"
    elif digits_a is None and digits_b is None and _HEX.fullmatch(a) and _HEX.fullmatch(b):
        if len(a) == len(b) >= _MIN_BARE_HEX and a.lower() == b.lower():
            return "hex_case"
        if len(a) != len(b) and _folded(a) == _folded(b):
            return "hex_padding"
    if a in ("", "0x") or b in ("", "0x"):
        return "empty_vs_data"
    return "value"


def _hex_digits(text: str) -> str | None:
    """Return the digits of `0x…` (none for `0x`); None where the text is not of that form."""
    if text[:2] not in ("0x", "0X"):
        return None
    digits = text[2:]
    return digits if not digits or _HEX.fullmatch(digits) else None


def _folded(digits: str) -> str:
    return digits.lower().lstrip("0")


def _is_other_notation(a: str, digits_a: str | None, b: str, digits_b: str | None) -> bool:
    """Return whether a text without prefix says the same as one with it, or as another without, in hex or decimal."""
    if digits_a is not None or digits_b is not None:
        digits, bare = (digits_a, b) if digits_a is not None else (digits_b or "", a)
        if not digits or not _HEX.fullmatch(bare):
            return False
        return _folded(digits) == _folded(bare) or _decimal(bare) == int(digits[:_MAX_DECIMAL_DIGITS], 16)
    return "." in a + b and _is_plain_number(a) and _is_plain_number(b) and Decimal(a) == Decimal(b)


def _is_plain_number(text: str) -> bool:
    return text.isascii() and len(text) <= _MAX_DECIMAL_DIGITS and text.replace(".", "", 1).isdigit()


def _decimal(text: str) -> int | None:
    return int(text) if len(text) <= _MAX_DECIMAL_DIGITS and _DECIMAL.fullmatch(text) else None


def _of_numbers(a: int | Number, b: int | Number) -> str:
    value_a = a.value() if isinstance(a, Number) else a
    value_b = b.value() if isinstance(b, Number) else b
    return "encoding" if value_a is not None and value_a == value_b else "value"
