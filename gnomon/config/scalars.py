"""Durations, sizes and words as configuration files write them."""

import math
import re

_UNIT_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 7 * 86400.0,
    "y": 365 * 86400.0,
}
_UNIT_BYTES = {
    "": 1,
    "b": 1,
    "k": 1 << 10,
    "kb": 10**3,
    "kib": 1 << 10,
    "m": 1 << 20,
    "mb": 10**6,
    "mib": 1 << 20,
    "g": 1 << 30,
    "gb": 10**9,
    "gib": 1 << 30,
    "t": 1 << 40,
    "tb": 10**12,
    "tib": 1 << 40,
}
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d|w|y)")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)\Z")

TRUE_WORDS = frozenset({"true", "yes", "on"})
FALSE_WORDS = frozenset({"false", "no", "off"})


def parse_duration(text: str) -> float:
    """
    Return seconds.

    Go's form, as eRPC writes it (`500ms`, `5s`, `1m30s`), with `d`, `w` and `y` (365 days) added. A bare `0` is zero.

    Raises:
        ValueError: for anything else: no unit, a space, words, an overflow.

    >>> parse_duration("1m30s"), parse_duration("500ms"), parse_duration("-5s")
    (90.0, 0.5, -5.0)
    """
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0.0
    total, at = 0.0, 0
    while at < len(body):
        part = _DURATION_PART.match(body, at)
        if part is None:
            break
        total += float(part.group(1)) * _UNIT_SECONDS[part.group(2)]
        at = part.end()
    if at != len(body) or not body or not math.isfinite(total):
        raise ValueError(f"{text!r} is not a duration: write a number with a unit, as in 500ms, 5s, 1m30s")
    return -total if text[0] == "-" else total


def format_duration(seconds: float) -> str:
    """Return the shortest text that `parse_duration` reads as these seconds, to the nanosecond."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    nanoseconds = round(seconds * 1e9)
    for unit, size in (("y", 365 * 86400 * 10**9), ("d", 86400 * 10**9), ("h", 3600 * 10**9), ("m", 60 * 10**9)):
        if nanoseconds and nanoseconds % size == 0:
            return f"{nanoseconds // size}{unit}"
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if nanoseconds % size == 0:
            return f"{nanoseconds // size}{unit}"
    return f"{nanoseconds}ns"


def parse_size(text: str) -> int:
    """
    Return bytes: a number, or one with a unit (`64MiB`, `1GB`; `k`, `m`, `g`, `t` alone are binary).

    Raises:
        ValueError: for anything else.

    >>> parse_size("1048576"), parse_size("64MiB"), parse_size("1.5 KB")
    (1048576, 67108864, 1500)
    """
    match = _SIZE.match(text)
    factor = _UNIT_BYTES.get(match.group(2).lower()) if match else None
    if match is None or factor is None:
        raise ValueError(f"{text!r} is not a size: write bytes, or a number with a unit, as in 64MiB, 1GB")
    size = float(match.group(1)) * factor if "." in match.group(1) else int(match.group(1)) * factor
    if size != int(size):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(size)


def parse_flag(text: str) -> bool:
    """
    Return the truth of a word: true, yes, on; false, no, off (any case).

    Raises:
        ValueError: for any other word.
    """
    word = text.lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ValueError(f"{text!r} is neither true nor false")
