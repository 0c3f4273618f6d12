"""
Parameters of a statement, from JSON to ClickHouse's own text of a value; the engine binds them, and parses them by the
type that the statement declares (`{name:Type}`). Nothing of them becomes a part of the statement.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import Raw

from api.bodies import wrong

MAX_PARAMETERS: Final = 100
MAX_BYTES: Final = 128 << 10
"""Of all values together: they travel in the address of the request to ClickHouse."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_DECLARED: Final = re.compile(r"\{\s*([A-Za-z_]\w*)\s*:\s*(?:(?:Nullable|Array)\(\s*)*(DateTime\w*)", re.ASCII)
_raws: Final = msgspec.json.Decoder(list[Raw]).decode
_NUMBER: Final = re.compile(rb"-?[0-9]")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"})
_QUOTED: Final = str.maketrans({"\\": "\\\\", "'": "\\'", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"})


def bind(sql: str, given: Mapping[str, Raw]) -> dict[str, str]:
    """
    Return the values by name, as ClickHouse reads them.

    Args:
        sql: the statement: a time for a parameter that it declares as DateTime, or as an array of them, may be ISO 8601
            with a zone.
        given: JSON texts; numbers keep every digit.

    Raises:
        Refused: a name that is none, a value that has no form in SQL, too many.
    """
    if len(given) > MAX_PARAMETERS:
        raise wrong("/params", f"there may be {MAX_PARAMETERS}")
    times = {name for name, _ in _DECLARED.findall(sql)}
    bound = {}
    for name, text in given.items():
        if not _NAME.fullmatch(name):
            raise wrong(f"/params/{name}", "is no name of a parameter: letters, digits and _")
        bound[name] = _value(name, bytes(text), name in times)
    if sum(len(value.encode()) for value in bound.values()) > MAX_BYTES:
        raise wrong("/params", f"may have {MAX_BYTES} bytes together")
    return bound


def _value(name: str, text: bytes, is_time: bool) -> str:
    if _NUMBER.match(text):
        return text.decode("ascii")
    value = _decoded(name, text)
    match value:
        case None:
            return "\\N"
        case bool():
            return "true" if value else "false"
        case str():
            return (_time(value) if is_time else value).translate(_ESCAPES)
        case list():
            try:
                return _element(name, text, is_time)
            except RecursionError:
                raise wrong(f"/params/{name}", "holds arrays within too many arrays") from None
    raise wrong(f"/params/{name}", "is an object; give its keys and values as two arrays (mapFromArrays)")


def _element(name: str, text: bytes, is_time: bool) -> str:
    if _NUMBER.match(text):
        return text.decode("ascii")
    value = _decoded(name, text)
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case str():
            return f"'{(_time(value) if is_time else value).translate(_QUOTED)}'"
        case list():
            return f"[{','.join(_element(name, bytes(one), is_time) for one in _raws(text))}]"
    raise wrong(f"/params/{name}", "holds an object; there is none in arrays of parameters")


def _decoded(name: str, text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise wrong(f"/params/{name}", "is no JSON that can be read") from None


def _time(text: str) -> str:
    """
    Return a time as ClickHouse takes it: UTC without a zone.

    >>> _time("2026-01-02T03:04:05.250+01:00"), _time("2026-01-02 03:04:05"), _time("now")
    ('2026-01-02 02:04:05.250000', '2026-01-02 03:04:05', 'now')
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    if at.tzinfo is not None:
        at = at.astimezone(UTC).replace(tzinfo=None)
    return at.isoformat(" ")
