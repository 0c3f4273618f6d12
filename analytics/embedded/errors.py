"""
What goes wrong in the embedded ClickHouse.

    GnomonError
    └── EmbeddedError        it cannot start: told to the user in one line
    Refusal                  an exception in ClickHouse's own form, told to the client of the HTTP port

A `Refusal` comes from the engine (its code, its text) or from this front (fence, gate, limits); a client sees no
difference, as both have ClickHouse's codes and wording.
"""

import re
from enum import IntEnum

from gnomon.errors import GnomonError


class EmbeddedError(GnomonError):
    """The embedded ClickHouse cannot start or cannot go on."""


class Code(IntEnum):
    """ClickHouse error codes that this front raises or acts on (src/Common/ErrorCodes.cpp)."""

    CANNOT_READ_ALL_DATA = 33
    BAD_ARGUMENTS = 36
    NOT_IMPLEMENTED = 48
    LOGICAL_ERROR = 49
    UNKNOWN_TABLE = 60
    SYNTAX_ERROR = 62
    UNKNOWN_DATABASE = 81
    UNKNOWN_SETTING = 115
    TIMEOUT_EXCEEDED = 159
    QUERY_IS_TOO_LARGE = 229
    READONLY = 164
    NOT_ENOUGH_SPACE = 243
    AUTHENTICATION_FAILED = 516
    TOO_MANY_SIMULTANEOUS_QUERIES = 202
    QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING = 216
    TOO_MANY_BYTES = 307
    SESSION_NOT_FOUND = 372
    SESSION_IS_LOCKED = 373
    INVALID_SESSION_TIMEOUT = 374
    QUERY_WAS_CANCELLED = 394
    ACCESS_DENIED = 497
    UNKNOWN_ROLE = 511
    UNKNOWN_COMPRESSION_METHOD = 89
    CANNOT_DECOMPRESS = 271
    ABORTED = 236


_CODE = re.compile(r"Code: (\d+)\. DB::Exception: ")
_NAME = re.compile(r"\(([A-Z][A-Z0-9_]+)\)")
_VERSION_TRAILER = re.compile(r"\s*\(version [^()]*(?:\([^()]*\))?\)\s*$")

_STATUS_BY_CODE = {
    **dict.fromkeys((194,), 401),
    **dict.fromkeys((192, 193, 497, 512, 516), 403),
    **dict.fromkeys(
        (6, 8, 15, 25, 26, 27, 36, 37, 38, 41, 44, 53, 62, 72, 117, 123, 167, 168, 223, 321, 427, 441, 675, 676), 400
    ),
    **dict.fromkeys((46, 47, 50, 56, 60, 63, 73, 78, 81, 115, 139, 152, 336, 511), 404),
    **dict.fromkeys((48,), 501),
    **dict.fromkeys((159,), 408),
    **dict.fromkeys((229,), 413),
    **dict.fromkeys((76, 202, 209, 439), 503),
}
"""HTTP status by ClickHouse code; every other code is a 500. Source: ClickHouse exceptionCodeToHTTPStatus."""


class Refusal(Exception):
    """An exception as ClickHouse gives it: numeric code, symbolic name, text."""

    def __init__(self, code: int, name: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.name = name
        self.message = message

    @classmethod
    def of(cls, code: Code, message: str) -> "Refusal":
        """Return a refusal of this front."""
        return cls(code.value, code.name, message)

    @classmethod
    def from_engine(cls, text: str) -> "Refusal":
        """Return what the engine's error text says; a text without a code counts as a logical error."""
        text = _VERSION_TRAILER.sub("", text.strip())
        match = _CODE.search(text)
        if match is None:
            return cls(Code.LOGICAL_ERROR.value, Code.LOGICAL_ERROR.name, text or "the engine gave no reason")
        names: list[str] = _NAME.findall(text)
        message = text[match.end() :]
        name = names[-1] if names else "UNKNOWN"
        return cls(int(match[1]), name, message.removesuffix(f"({name})").rstrip())

    @property
    def http_status(self) -> int:
        return _STATUS_BY_CODE.get(self.code, 500)

    def text(self, version: str) -> str:
        """Return the body of ClickHouse's answer."""
        return f"Code: {self.code}. DB::Exception: {self.message} ({self.name}) (version {version})\n"
