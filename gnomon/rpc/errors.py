"""
What an error answer means: one table, read by code and structure first and by text last.

    structure   revert data, wherever the node put it, makes a revert whatever the code says
    code        most codes decide; some only narrow the choice, and the text then picks among a few named classes
    status      an HTTP status that speaks of the account (401, 402, 403, 429) settles a code that says nothing
    text        for -32000, -32603 and codes nobody knows

A *verdict* (revert, halt, nonce, invalid_params) states how the request itself turned out: it is an answer. All else is
*no answer*: the node could not or would not look. A contract's own revert text ("rate limit exceeded") never makes a
rate limit, because reverts are recognised before any other text is read.

Sources of codes: EIP-1474, EIP-4444 (4444), execution-apis (3; -38010 to -38026 of eth_simulateV1), geth rpc/errors.go
(-32002 timeout, -32003 response too large), Nethermind and Parity-style nodes (-32010, -32015, -32016), QuickNode
(-32007 to -32011), dRPC (small positive codes), eRPC (-32012, -32014 to -32016), Base and BSC (-32016 rate limit).
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gnomon.events.contract import ErrorClass
from gnomon.rpc import error_texts as texts
from gnomon.rpc.methods import lookup

VERDICTS: Final = frozenset(("revert", "halt", "nonce", "invalid_params"))
"""Classes that are answers; the others say that there is none."""


class ErrorVerdict(Struct, frozen=True):
    """What one error means."""

    error_class: ErrorClass
    is_verdict: bool
    """It is the chain's answer to this request: served, never retried, never held against the upstream."""
    is_no_answer: bool
    """The node could not or would not look."""
    try_elsewhere: bool
    """Another upstream may do better."""


_VERDICT_BY_CLASS: dict[str, ErrorVerdict] = {}


def _verdict(error_class: ErrorClass, text: str = "") -> ErrorVerdict:
    if error_class == "rate_limited" and "sender is over rate limit" in text:
        return _NOWHERE_ELSE
    found = _VERDICT_BY_CLASS.get(error_class)
    if found is None:
        is_verdict = error_class in VERDICTS
        found = ErrorVerdict(error_class, is_verdict, not is_verdict, not is_verdict)
        _VERDICT_BY_CLASS[error_class] = found
    return found


_NOWHERE_ELSE = ErrorVerdict("rate_limited", False, True, False)
"""OP-stack sequencers limit the sender of a transaction, whoever forwards it."""

# --- structure --------------------------------------------------------------------------------------------------------

_REVERT_SELECTORS = ("0x08c379a0", "0x4e487b71")
"""`Error(string)` and `Panic(uint256)`: the ABI of what `require` and `assert` leave behind."""

_REVERT_WORD = re.compile(r"^\s*revert(?:ed)?\s*(?:0x|$)", re.IGNORECASE)
"""Parity and Nethermind put "Reverted 0x…" into data."""

_MAX_DATA_DEPTH = 3


_EXECUTING = frozenset(
    ("", "eth_call", "eth_estimateGas", "eth_createAccessList", "eth_callMany", "eth_simulateV1", "debug_traceCall")
)
"""Methods that run code: hex data of theirs in the shape of an ABI call is a custom error ('' = method unknown)."""

_CUSTOM_ERROR = re.compile(r"0x[0-9a-f]{8}(?:[0-9a-f]{64})*", re.IGNORECASE)


def _is_revert_data(data: object, method: str, depth: int = 0) -> bool:
    """Return whether `error.data` carries what a revert leaves behind; nodes wrap it in objects of their own."""
    if isinstance(data, str):
        if data.lower().startswith(_REVERT_SELECTORS) or _REVERT_WORD.match(data) is not None:
            return True
        return method in _EXECUTING and _CUSTOM_ERROR.fullmatch(data) is not None
    if isinstance(data, Mapping) and depth < _MAX_DATA_DEPTH:
        # hardhat: {"message", "data"}; ganache: {"result", "reason", …} or {"0x<hash>": {"error": "revert", …}}
        if data.get("error") == "revert" or ("programCounter" in data and "reason" in data):
            return True
        return any(
            _is_revert_data(data.get(member), method, depth + 1) for member in ("data", "result", "originalError")
        )
    return False


# --- codes ------------------------------------------------------------------------------------------------------------


class _Code(Struct, frozen=True):
    """What a code says: its class, or else the classes that a text may pick in its place."""

    error_class: ErrorClass
    or_by_text: tuple[ErrorClass, ...] = ()


_CODES: dict[int, _Code] = {
    3: _Code("revert", ("halt",)),
    4444: _Code("missing_data"),
    -32601: _Code("method_not_found"),
    # Range, history and head refusals come as "invalid params" from reth, Besu, Alchemy and geth's log filter.
    -32602: _Code("invalid_params", ("range_limit",)),
    # Providers answer for the account with "invalid request".
    -32600: _Code("invalid_params", ("rate_limited", "range_limit", "quota", "unauthorized", "method_not_found")),
    -32700: _Code("internal"),
    -32001: _Code(
        "unknown_block", ("revert", "nonce", "rate_limited", "unauthorized", "missing_data", "method_not_found")
    ),
    -32002: _Code("missing_data", ("rate_limited", "quota", "unauthorized", "unknown_block", "no_upstream", "timeout")),
    -32003: _Code("halt", ("revert", "nonce", "range_limit", "rate_limited", "unauthorized")),
    -32004: _Code("method_not_found", ("unknown_block", "missing_data", "rate_limited", "quota", "halt")),
    -32005: _Code("rate_limited", ("halt", "range_limit", "quota", "timeout", "unauthorized")),
    -32006: _Code("internal", ("rate_limited", "range_limit", "method_not_found", "nonce")),
    -32007: _Code("rate_limited", ("range_limit", "quota", "missing_data")),
    -32008: _Code("range_limit", ("rate_limited",)),
    -32009: _Code("rate_limited", ("missing_data", "unknown_block", "range_limit", "timeout", "halt")),
    -32010: _Code("halt", ("nonce", "rate_limited", "range_limit", "quota", "no_upstream")),
    -32011: _Code("no_upstream", ("unauthorized", "rate_limited")),
    -32012: _Code("range_limit", ("quota",)),
    -32014: _Code("missing_data", ("unknown_block",)),
    -32015: _Code("halt", ("revert", "timeout")),
    -32016: _Code("unauthorized", ("rate_limited", "quota", "revert", "halt")),
    -32029: _Code("rate_limited", ("quota",)),
    -32052: _Code("unauthorized", ("method_not_found", "quota")),
    -38010: _Code("nonce"),
    -38011: _Code("nonce"),
    -38012: _Code("halt"),
    -38013: _Code("halt"),
    -38014: _Code("halt"),
    -38015: _Code("halt"),
    -38020: _Code("invalid_params"),
    -38021: _Code("invalid_params"),
    -38022: _Code("invalid_params"),
    -38023: _Code("invalid_params"),
    -38024: _Code("halt"),
    -38025: _Code("halt"),
    -38026: _Code("range_limit"),
    401: _Code("unauthorized"),
    402: _Code("quota"),
    403: _Code("unauthorized", ("quota", "rate_limited", "method_not_found")),
    405: _Code("method_not_found"),
    408: _Code("timeout"),
    429: _Code("rate_limited", ("quota",)),
    500: _Code("internal"),
    502: _Code("no_upstream"),
    503: _Code("no_upstream", ("rate_limited",)),
    504: _Code("timeout"),
}  # fmt: skip
"""
-32000 and -32603 say nothing and are absent: their text decides, as for any code nobody knows. -38026 is "too many
blocks for this client", so another may serve them.
"""

_ACCOUNT_STATUS: Final[dict[int, ErrorClass]] = {
    401: "unauthorized",
    402: "quota",
    403: "unauthorized",
    407: "unauthorized",
    429: "rate_limited",
}

_MAX_TEXT_CHARACTERS = 4096


def classify(
    code: int | None,
    message: str,
    data: object | None,
    http_status: int = 200,
    method: str = "",
) -> ErrorVerdict:
    """
    Return what a JSON-RPC error means.

    Args:
        code: `error.code`, None where it is absent or no integer.
        message: `error.message`, '' where absent.
        data: `error.data`, decoded.
        http_status: the status that the answer came with; it counts only where the code decides nothing.
        method: the method asked, '' when unknown. "Limit" texts under -32602 count only for methods over ranges.
    """
    if _is_revert_data(data, method):
        return _verdict("revert")
    text = message[:_MAX_TEXT_CHARACTERS].lower()
    known = None if code is None else _CODES.get(code)
    if known is not None:
        return _by_code(known, text, data, method)
    if code in (-32603, -32000, None) and texts.REVERT.search(text):
        return _verdict("revert")
    status_class = _ACCOUNT_STATUS.get(http_status)
    if status_class is not None:
        is_quota = status_class != "quota" and not texts.PER_SECOND.search(text) and texts.QUOTA.search(text)
        return _verdict("quota" if is_quota else status_class)
    return _by_text(text) or _by_text(_data_text(data)) or _verdict("internal")


def _by_code(known: _Code, text: str, data: object, method: str) -> ErrorVerdict:
    if known.error_class == "revert":
        # eRPC and Nitro send halts ("EVM error: …", "out of gas") under code 3; a revert's own text begins as below.
        is_halt = data in (None, "", "0x") and not texts.REVERT.search(text) and texts.HALT.search(text)
        return _verdict("halt" if is_halt else "revert")
    if known.error_class == "invalid_params":
        for pattern, refusal in texts.REFUSED_PARAMS:
            if pattern.search(text):
                return _verdict(refusal)
    for error_class in known.or_by_text:
        if not texts.PATTERN_BY_CLASS[error_class].search(text):
            continue
        if error_class == "quota" and texts.PER_SECOND.search(text):
            continue
        if error_class == "range_limit" and known.error_class == "invalid_params" and not _takes_range(method):
            continue
        return _verdict(error_class, text)
    return _verdict(known.error_class, text)


def _takes_range(method: str) -> bool:
    """Return whether a limit on ranges or results may apply to `method`; an unknown method may have one."""
    entry = lookup(method)
    return entry.is_range or not entry.is_known or method in ("eth_getBlockReceipts", "eth_feeHistory", "eth_newFilter")


def _by_text(text: str) -> ErrorVerdict | None:
    if text:
        for pattern, error_class in texts.TEXTS:
            if pattern.search(text):
                return _verdict(error_class, text)
    return None


def _data_text(data: object) -> str:
    if isinstance(data, str):
        return data[:_MAX_TEXT_CHARACTERS].lower()
    if isinstance(data, Mapping):
        message = data.get("message")
        return message[:_MAX_TEXT_CHARACTERS].lower() if isinstance(message, str) else ""
    return ""


_CLASS_BY_STATUS: Final[dict[int, ErrorClass]] = {**_ACCOUNT_STATUS}


def classify_status(http_status: int) -> ErrorClass:
    """Return the class of an answer that is no JSON-RPC, by its HTTP status; a 2xx that is no JSON is `parse`."""
    found = _CLASS_BY_STATUS.get(http_status)
    if found is not None:
        return found
    return "parse" if 200 <= http_status < 300 else "status"


# --- fingerprint ------------------------------------------------------------------------------------------------------

_VARIABLE = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{16,}\b|\d[\d,._]*", re.IGNORECASE)
_MAX_FINGERPRINT_CHARACTERS = 120


def fingerprint(code: int | None, message: str) -> str:
    """Return a short stable name of an error, free of numbers, hashes and addresses, for grouping and labels."""
    words = " ".join(_VARIABLE.sub("#", message).split())
    return f"{'' if code is None else code}:{words}"[:_MAX_FINGERPRINT_CHARACTERS]
