"""What a URL says is sorted into interface, bound parameters and settings."""

import pytest

from analytics.embedded.engine import READER_LIMITS
from analytics.embedded.errors import Refusal
from analytics.embedded.parameters import parse, reader_limits


def test_names_are_sorted() -> None:
    """Interface, transport, bound parameters, settings."""
    said = parse(
        [
            ("query", "SELECT 1"),
            ("database", "gnomon"),
            ("param_a", "1"),
            ("max_threads", "2"),
            ("enable_http_compression", "1"),
            ("send_progress_in_http_headers", "1"),
            ("wait_end_of_query", "1"),
            ("session_id", "s"),
            ("session_timeout", "5"),
        ]
    )

    assert (said.query, said.database, said.session_id, said.session_seconds) == ("SELECT 1", "gnomon", "s", 5.0)
    assert (dict(said.bound), dict(said.settings)) == ({"a": "1"}, {"max_threads": "2"})
    assert (said.wants_compression, said.waits_for_end) == (True, True)


def test_inserts_are_never_queued() -> None:
    """A queued insert would pass the fence after its owner is gone."""
    assert dict(parse([("async_insert", "1"), ("wait_for_async_insert", "0")]).settings) == {}


@pytest.mark.parametrize("seconds", ["-1", "x", "3601", "1e3", ""])
def test_a_session_timeout_is_bounded(seconds: str) -> None:
    """An hour at most, as with ClickHouse."""
    with pytest.raises(Refusal, match="session timeout"):
        parse([("session_timeout", seconds)])


@pytest.mark.parametrize(("value", "expected"), [("1", "1"), ("29", "29"), ("30", "30")])
def test_a_reader_may_lower_its_limits(value: str, expected: str) -> None:
    """Up to the limit itself."""
    assert reader_limits({"max_execution_time": value}, READER_LIMITS)["max_execution_time"] == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_execution_time", "31"),
        ("max_execution_time", "0"),
        ("max_execution_time", "-1"),
        ("max_execution_time", "1.5"),
        ("max_memory_usage", "1000000001"),
        ("max_threads", "1"),
        ("date_time_output_format", "unix_timestamp"),
        ("output_format_json_quote_decimals", "2"),
        ("allow_ddl", "1"),
        ("format_schema", "/etc/passwd:x"),
    ],
)
def test_a_reader_may_set_nothing_else(name: str, value: str) -> None:
    """Nought means no limit in ClickHouse, so it is refused too."""
    with pytest.raises(Refusal) as caught:
        reader_limits({name: value}, READER_LIMITS)

    assert caught.value.name == "READONLY"


def test_a_reader_may_choose_how_values_are_written() -> None:
    """Among a few forms that give nothing away."""
    chosen = {"date_time_output_format": "iso", "output_format_json_quote_decimals": "1"}

    assert reader_limits(chosen, READER_LIMITS) == {**READER_LIMITS, **chosen}


def test_readonly_of_a_client_changes_nothing() -> None:
    """Clients send it to protect themselves; here it holds anyway."""
    assert reader_limits({"readonly": "0"}, READER_LIMITS) == dict(READER_LIMITS)
