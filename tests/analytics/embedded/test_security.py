"""Without the writer's credentials the port gives the views of `gnomon` and nothing else."""

import time

import pytest

from analytics import gate
from analytics.embedded.engine import READER_LIMITS
from analytics.store import StoreError
from tests.analytics.embedded.attacks import ALLOWED, ATTACKS, BOMBS
from tests.analytics.server import ClickHouse

pytestmark = pytest.mark.clickhouse


@pytest.mark.parametrize("sql", ATTACKS)
def test_an_attack_is_refused(clickhouse: ClickHouse, sql: str) -> None:
    """Over the port, by either layer; nothing of a file or a table comes back."""
    status, headers, body = clickhouse.ask(sql)

    assert 400 <= status < 600
    assert int(headers["X-ClickHouse-Exception-Code"]) in (36, 46, 47, 48, 60, 62, 81, 164, 497, 503)
    assert b"root:" not in body


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_readers_need_is_allowed(clickhouse: ClickHouse, sql: str) -> None:
    """The gate is no reason to reach for the writer's credentials."""
    status, _, body = clickhouse.ask(sql)

    assert status == 200, body


@pytest.mark.parametrize(("_name", "sql"), BOMBS)
def test_a_bomb_is_stopped_and_the_engine_lives(clickhouse: ClickHouse, _name: str, sql: str) -> None:
    """By a limit of rows, memory, depth or size, within seconds; the next reader is served."""
    started = time.monotonic()
    with clickhouse.reader() as reader:
        with pytest.raises(StoreError) as caught:
            for _ in reader.lines(sql, "TabSeparated"):
                pass

        assert caught.value.code in (62, 158, 159, 161, 162, 167, 168, 241, 306, 396)
        assert time.monotonic() - started < 20
        assert reader.rows("SELECT 1") == [(1,)]


def test_the_gate_alone_refuses_what_the_role_cannot(clickhouse: ClickHouse) -> None:
    """A scalar file() passes every role: the engine reads it for the writer, who has no grant on files either."""
    status, _, body = clickhouse.ask("SELECT length(file('/etc/hostname')) >= 0", is_writer=True)

    assert (status, body) == (200, b"1\n")
    assert clickhouse.ask("SELECT length(file('/etc/hostname')) >= 0")[0] == 403


def test_the_role_alone_refuses_what_the_gate_cannot(clickhouse: ClickHouse) -> None:
    """`1 IN other.table` is a plain identifier in the tree."""
    sql = "SELECT 1 IN gnomon_core.sink_epochs"
    with clickhouse.store() as store:
        functions = gate.decode_functions(b"\n".join(store.lines(gate.FUNCTIONS_QUERY, gate.ROW_FORMAT)))
        (line,) = store.lines(gate.TREE_QUERY, gate.ROW_FORMAT, {"q": sql})
        gate.check_tree(gate.decode_answer(line).tree, functions, frozenset())

    status, _, body = clickhouse.ask(sql)

    assert status == 403
    assert b"Not enough privileges" in body


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_execution_time": "1000"},
        {"max_memory_usage": "0"},
        {"readonly": "0", "allow_ddl": "1"},
        {"role": "gnomon_writer"},
        {"database": "gnomon_core"},
        {"database": "default`; DROP DATABASE gnomon; --"},
        {"format_schema": "/etc/passwd:x"},
        {"user": "gnomon"},
        {"user": "gnomon", "password": "x"},
    ],
)
def test_a_url_gives_a_reader_nothing_more(clickhouse: ClickHouse, parameters: dict[str, str]) -> None:
    """Neither settings, nor roles, nor another database."""
    assert clickhouse.ask("SELECT 1", parameters)[0] in (403, 404, 500)


def test_a_bound_parameter_is_a_value(clickhouse: ClickHouse) -> None:
    """Quotes in it end nothing, and it names no table."""
    sql = "SELECT {x:String} AS x FORMAT TSVRaw"
    evil = "'); DROP TABLE gnomon_core.requests; --"

    assert clickhouse.ask(sql, {"param_x": evil})[2].decode() == evil + "\n"
    assert clickhouse.ask("SELECT * FROM {t:Identifier}", {"param_t": "requests"})[0] == 403


@pytest.mark.parametrize(
    "headers",
    [{"Host": "rebound.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": ""}],
)
def test_another_site_cannot_ask(clickhouse: ClickHouse, headers: dict[str, str]) -> None:
    """Not even with the writer's credentials, and not even whether the port is alive."""
    assert clickhouse.ask("SELECT 1", headers=headers, is_writer=True)[0] == 403
    assert clickhouse.ask(None, headers=headers, path="/ping")[0] == 403


def test_files_of_the_engine_are_private(clickhouse: ClickHouse) -> None:
    """Configuration, credentials and data are the owner's alone."""
    for name in ("secrets/clickhouse-password", "secrets/clickhouse-user", "clickhouse-config/users.xml"):
        assert (clickhouse.data_dir / name).stat().st_mode & 0o077 == 0
    for name in ("secrets", "clickhouse", "clickhouse-config"):
        assert (clickhouse.data_dir / name).stat().st_mode & 0o077 == 0


def test_allowed_functions_are_the_engines(clickhouse: ClickHouse) -> None:
    """The list names no function that is not there: a typo would be a hole or a refusal."""
    from analytics.gate_functions import ALLOWED as NAMES

    with clickhouse.store() as store:
        known = gate.decode_functions(b"\n".join(store.lines(gate.FUNCTIONS_QUERY, gate.ROW_FORMAT)))

    assert NAMES - known == {"lambda", "exists", "grouping"}


def test_limits_of_readers_are_settings_of_the_engine(clickhouse: ClickHouse) -> None:
    """Each is known to the engine and changed for readers."""
    with clickhouse.reader() as reader:
        said = dict(reader.rows("SELECT name, value FROM system.settings WHERE changed"))

    assert {name: said.get(name) for name in READER_LIMITS} == dict(READER_LIMITS)
    assert said["readonly"] == "1"
