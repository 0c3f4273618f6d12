"""
What a request's URL and headers say, as ClickHouse's HTTP interface reads them.

Names are of three kinds: those of the interface (`query`, `database`, …), bound parameters (`param_x`), and every
other one, which is a setting of the engine. Settings that only steer a server's transport have no effect here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from analytics.embedded.errors import Code, Refusal

_INTERFACE = frozenset(
    {
        "query", "database", "default_format", "user", "password", "quota_key", "session_id", "session_timeout",
        "session_check", "close_session", "query_id", "compress", "decompress", "stacktrace", "wait_end_of_query",
        "buffer_size", "role", "client_protocol_version",
    }
)  # fmt: skip

_TRANSPORT = frozenset(
    {
        "enable_http_compression", "http_zlib_compression_level", "send_progress_in_http_headers",
        "http_headers_progress_interval_ms", "cancel_http_readonly_queries_on_client_close", "add_http_cors_header",
        "http_wait_end_of_query", "http_response_buffer_size", "http_write_exception_in_output_format",
        "replace_running_query", "replace_running_query_max_wait_ms", "log_queries", "log_comment",
        "http_native_compression_disable_checksumming_on_decompress", "send_logs_level",
    }
)  # fmt: skip

_ALWAYS_OFF = frozenset({"async_insert", "wait_for_async_insert", "async_insert_busy_timeout_ms"})
"""An insert is stored when it is answered; a queued one would pass the fence (facts: sink)."""

READER_SETTINGS = frozenset(
    {"max_execution_time", "max_result_rows", "max_result_bytes", "max_rows_to_read", "max_memory_usage"}
)
"""What an untrusted reader may set, downwards only."""

READER_FORMS: Mapping[str, frozenset[str]] = {
    "date_time_output_format": frozenset({"simple", "iso"}),
    "output_format_json_quote_decimals": frozenset({"0", "1"}),
    "output_format_decimal_trailing_zeros": frozenset({"0", "1"}),
}
"""How values are written: what an untrusted reader may choose."""

_READER_IGNORED = frozenset({"readonly", "date_time_input_format", "cast_string_to_dynamic_use_inference"})
"""Settings that ordinary clients send with every request and that have no effect on a reader here."""

MAX_SESSION_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Parameters:
    """One request, its statement apart."""

    query: str | None = None
    database: str = ""
    default_format: str = ""
    query_id: str = ""
    session_id: str = ""
    session_seconds: float = 60.0
    session_must_exist: bool = False
    closes_session: bool = False
    role: str = ""
    wants_compression: bool = False
    """`enable_http_compression`: answer by `Accept-Encoding`."""
    wants_native_compression: bool = False
    """`compress`: answer in ClickHouse's own block format."""
    sends_native_compression: bool = False
    """`decompress`: the body is in ClickHouse's own block format."""
    waits_for_end: bool = False
    replaces_running: bool = False
    bound: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


def parse(pairs: Iterable[tuple[str, str]]) -> Parameters:
    """
    Sort the pairs of a URL (and of a form, behind it); the last of equal names wins.

    Raises:
        Refusal: a session timeout that is no number or too long.
    """
    said = dict(pairs)
    bound = {name[6:]: value for name, value in said.items() if name.startswith("param_")}
    settings = {
        name: value
        for name, value in said.items()
        if name not in _INTERFACE
        and name not in _TRANSPORT
        and name not in _ALWAYS_OFF
        and not name.startswith("param_")
    }
    return Parameters(
        query=said.get("query"),
        database=said.get("database", ""),
        default_format=said.get("default_format", ""),
        query_id=said.get("query_id", ""),
        session_id=said.get("session_id", ""),
        session_seconds=_session_seconds(said.get("session_timeout", "60")),
        session_must_exist=_flag(said.get("session_check")),
        closes_session=_flag(said.get("close_session")),
        role=said.get("role", ""),
        wants_compression=_flag(said.get("enable_http_compression")),
        wants_native_compression=_flag(said.get("compress")),
        sends_native_compression=_flag(said.get("decompress")),
        waits_for_end=_flag(said.get("wait_end_of_query")),
        replaces_running=_flag(said.get("replace_running_query")),
        bound=bound,
        settings=settings,
    )


def reader_limits(settings: Mapping[str, str], limits: Mapping[str, str]) -> dict[str, str]:
    """
    Return the limits of a reader's request.

    Args:
        settings: as the request asks.
        limits: what a reader gets when it asks for nothing; also the most it can get.

    Raises:
        Refusal: a setting that a reader may not set, or one above its limit.
    """
    chosen = dict(limits)
    for name, value in settings.items():
        if name in _READER_IGNORED:
            continue
        if value in READER_FORMS.get(name, ()):
            chosen[name] = value
            continue
        if name not in READER_SETTINGS:
            raise Refusal.of(
                Code.READONLY,
                f"Cannot modify '{name}' setting without the writer's credentials; a reader may set "
                + ", ".join(sorted(READER_SETTINGS | READER_FORMS.keys())),
            )
        most = int(limits[name])
        if not value.isdecimal() or not 0 < int(value) <= most:
            raise Refusal.of(Code.READONLY, f"Setting {name} must be 1 to {most} for a reader, not {value!r}")
        chosen[name] = str(int(value))
    return chosen


def _flag(value: str | None) -> bool:
    return value is not None and value.lower() in ("1", "true", "yes", "on")


def _session_seconds(value: str) -> float:
    if not value.isdecimal() or int(value) > MAX_SESSION_SECONDS:
        raise Refusal.of(
            Code.INVALID_SESSION_TIMEOUT, f"Invalid session timeout {value!r}: 0 to {int(MAX_SESSION_SECONDS)} seconds"
        )
    return float(value)
