"""
JSON decoded without loss, and equality that takes no two values for one.

What the text may hold, and what becomes of it:

    integers            any size, exact; past 4,300 digits kept as text
    other numbers       `Number`: the spelling as it stands; `1`, `1.0` and `1e0` are three notations of one value
    duplicate members   the last one counts, as for nearly every reader
    escapes             decoded: `\\u003e` is `>`; half a surrogate pair is kept as it is
    invalid UTF-8, control characters in strings
                        kept byte for byte, and comparable
    nesting             past about 900 levels: `TooDeep`
    anything else       `NotJson`

msgspec reads nearly everything; the standard library's reader takes over for the texts that msgspec refuses.
"""

import json
from collections.abc import Hashable
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

Value = Any
"""None, bool, int, str, `Number`, list or dict of values."""


class NotJson(ValueError):
    """The text is no JSON value."""


class TooDeep(ValueError):
    """The text is nested deeper than values can be walked."""


class Number:
    """A number that is no plain integer, as it is spelled."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return type(other) is Number and other.text == self.text

    def __hash__(self) -> int:
        return hash((Number, self.text))

    def __repr__(self) -> str:
        return f"Number({self.text!r})"

    def value(self) -> Decimal | None:
        """Return its exact value; None for what has none (NaN, an absurd exponent)."""
        try:
            return Decimal(self.text)
        except InvalidOperation:
            return None


_decode = msgspec.json.Decoder(float_hook=Number).decode


def _encode_number(value: object) -> object:
    if type(value) is Number:
        return msgspec.Raw(value.text.encode())
    raise TypeError(f"no JSON value: {type(value)}")


def _pack_number(value: object) -> object:
    if type(value) is Number:
        return msgspec.msgpack.Ext(1, value.text.encode())
    raise TypeError(f"no JSON value: {type(value)}")


_pack = msgspec.msgpack.Encoder(enc_hook=_pack_number).encode
_encode = msgspec.json.Encoder(enc_hook=_encode_number, order="sorted").encode
_encode_as_is = msgspec.json.Encoder(enc_hook=_encode_number).encode


def decode(fragment: bytes) -> Value:
    """
    Return the value of a JSON text.

    Raises:
        NotJson: it is none.
        TooDeep: it is nested too deep.
    """
    try:
        return _decode(fragment)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _decode_odd(fragment)
    except RecursionError:
        raise TooDeep("nested too deep") from None


def _integer(text: str) -> int | Number:
    try:
        return int(text)
    except ValueError:  # more digits than Python converts
        return Number(text)


_odd = json.JSONDecoder(strict=False, parse_int=_integer, parse_float=Number, parse_constant=Number)


def _decode_odd(fragment: bytes) -> Value:
    try:
        return _odd.decode(fragment.decode("utf-8", "surrogateescape"))
    except RecursionError:
        raise TooDeep("nested too deep") from None
    except ValueError as error:
        raise NotJson(str(error)) from None


def canonical(value: Value) -> Hashable:
    """Return a key that two values share exactly when they are equal: member order does not count, types do."""
    try:
        return _encode(value)
    except UnicodeEncodeError:  # half a surrogate pair, or bytes that are no UTF-8
        return _frozen(value)


def _frozen(value: Value) -> Hashable:
    if type(value) is dict:
        return ("object", frozenset((name, _frozen(member)) for name, member in value.items()))
    if type(value) is list:
        return ("list", *map(_frozen, value))
    return (type(value).__name__, value)


class Numbering:
    """
    Numbers for values, the same for equal ones; each part of a value is looked at once, however often it is asked for.

    The values must stay as they are, and alive, while numbers of theirs are asked for.
    """

    def __init__(self) -> None:
        self._number_by_form: dict[Hashable, int] = {}
        self._number_by_id: dict[int, int] = {}

    def of(self, value: Value) -> int:
        """Return the number of a value."""
        kind = type(value)
        if kind is not dict and kind is not list:
            return self._of_form((kind, value))
        number = self._number_by_id.get(id(value))
        if number is None:
            if kind is list:
                form: Hashable = (list, *map(self.of, value))
            else:
                form = (dict, frozenset([(name, self.of(member)) for name, member in value.items()]))
            number = self._number_by_id[id(value)] = self._of_form(form)
        return number

    def _of_form(self, form: Hashable) -> int:
        return self._number_by_form.setdefault(form, len(self._number_by_form))

    def are_same(self, a: Value, b: Value) -> bool:
        """Return whether two values are equal, types included."""
        return self.of(a) == self.of(b)


def same(a: Value, b: Value) -> bool:
    """
    Return whether two decoded values are equal, types included: Python alone takes `true` for 1.

    What is equal to Python is packed, and the bytes are compared: that is quicker than to look for booleans in either
    text, and than to look at each value here.
    """
    if a != b:
        return False
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is not dict and kind is not list:
        return True
    try:
        return _pack(a) == _pack(b) or _are_of_one_type(a, b)
    except (OverflowError, UnicodeEncodeError):  # no message pack has such integers, or half a surrogate pair
        return _are_of_one_type(a, b)


def _are_of_one_type(a: Value, b: Value) -> bool:
    """Return whether two values that Python takes for equal have the same types all the way down."""
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is dict:
        for name, x in a.items():
            kind = type(x)
            if kind is str:
                continue
            y = b[name]
            if kind is not type(y) or ((kind is dict or kind is list) and not _are_of_one_type(x, y)):
                return False
    elif kind is list:
        for x, y in zip(a, b, strict=True):
            kind = type(x)
            if kind is str:
                continue
            if kind is not type(y) or ((kind is dict or kind is list) and not _are_of_one_type(x, y)):
                return False
    return True


def text_of(value: Value) -> str:
    """Return a value as JSON text, members in their own order; what is no text is shown by escapes."""
    try:
        return _encode_as_is(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, default=lambda number: number.text, separators=(",", ":"))
