"""SQL of people over HTTP: every attack refused, every form of the result, limits, and an end with the client."""

import hashlib
import http.client
import io
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from analytics.store import Store
from api.access import Access, Caller, Token
from api.reader import Reader
from gnomon.config.model import ClickHouseSettings, Role
from tests.analytics.embedded.attacks import ALLOWED, ATTACKS, BOMBS
from tests.api.calling import Answer, Api, settings_of
from tests.api.listening import listening
from tests.api.world import N_PAIRS
from tests.ingest.engine_process import EngineProcess

pytestmark = pytest.mark.clickhouse

NO_SQL = frozenset(
    (
        "SELECT {t:Identifier}('/etc/passwd')",
        "WATCH gnomon.requests",
        "SELECT * FROM a.b.c",
        "SELECT gnomon_core.requests.at FROM gnomon.requests",
        "SELECT 1 COMPRESSION 'gzip'",
    )
)
"""Attacks that are no statement of ClickHouse in the first place."""
LONG = "SELECT count() FROM numbers(1000000000) WHERE sipHash64(sipHash128(number)) = 0 /*{}*/"
LARGE = "SELECT number, repeat(toString(number % 10), 200) AS x FROM numbers(1000000)"
"""200 MB."""
ROLES: dict[str, Role] = {"ann": "read", "bob": "sql", "cid": "admin"}
ACCESS = Access([Token(Caller(name, role), hashlib.sha256(name.encode()).digest()) for name, role in ROLES.items()])


@pytest.fixture(scope="module")
def made(filled: EngineProcess) -> Iterator[Callable[..., Api]]:
    """Make applications over the filled store."""
    readers: list[Reader] = []

    def make(sql: str = "{}", access: Access | None = None) -> Api:
        reader = Reader(ClickHouseSettings(url=filled.url), n_connections=2, query_seconds=20)
        readers.append(reader)
        return Api(
            reader, settings_of(f"{{clickhouse: {{url: '{filled.url}'}}, api: {{sql: {sql}}}}}"), access, filled.folder
        )

    yield make
    for reader in readers:
        reader.close()


@pytest.fixture(scope="module")
def sql(made: Callable[..., Api]) -> Callable[..., Answer]:
    """Ask the application, with a second of time for what would take long."""
    api = made()

    def ask(text: str, params: dict[str, Any] | None = None, wanted: str = "json") -> Answer:
        return api.post("/v1/sql", {"sql": text, "params": params or {}, "format": wanted})

    return ask


def items(answer: Answer) -> Any:
    assert answer.status == 200, answer.body
    assert answer.is_whole
    return answer.json()["items"]


@pytest.mark.parametrize("text", ATTACKS)
def test_an_attack_is_refused(sql: Callable[..., Answer], text: str) -> None:
    """403 that names the part; nothing of a file or of another table comes back."""
    answer = sql(text)

    assert (answer.status, answer.problem) == ((400, "invalid-sql") if text in NO_SQL else (403, "sql-not-allowed"))
    assert text in NO_SQL or answer.json()["detail"].startswith("not allowed: ")
    assert b"root:" not in answer.body


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("SELECT file('/etc/passwd')", "function file"),
        ("SELECT * FROM url('http://127.0.0.1:1/','CSV','a Int8')", "table function url"),
        ("SELECT 1; DROP TABLE gnomon_core.requests", "a second statement"),
        ("SELECT 1 INTO OUTFILE '/tmp/x'", "INTO OUTFILE"),
        ("SELECT * FROM gnomon.requests SETTINGS max_execution_time=1000", "SETTINGS"),
        ("SELECT * FROM gnomon_core.requests", "gnomon_core.requests"),
        ("SELECT 1 IN gnomon_core.sink_epochs", "gnomon_core.sink_epochs"),
        ("KILL QUERY WHERE 1", "no SELECT"),
        ("SELECT 1 FORMAT CSV", "FORMAT CSV"),
    ],
)
def test_a_refusal_names_the_part(sql: Callable[..., Answer], text: str, part: str) -> None:
    """Of the statement that is not allowed, by either layer."""
    assert part in sql(text).json()["detail"]


@pytest.mark.parametrize("text", [text for text in ALLOWED if " FORMAT " not in text])
def test_what_people_need_is_allowed(sql: Callable[..., Answer], text: str) -> None:
    """The limits and the gate are no reason to look for the writer's password."""
    assert isinstance(items(sql(text)), list)


@pytest.mark.parametrize(("name", "text"), BOMBS)
def test_a_bomb_is_stopped(sql: Callable[..., Answer], name: str, text: str) -> None:
    """By rows, memory, depth or size; behind the first rows the answer is cut, never ended as if it were whole."""
    answer = sql(text)

    if name == "result":
        assert (answer.status, answer.is_whole) == (200, False)
    else:
        assert answer.problem == "query-too-large"
    assert items(sql("SELECT 1 AS x")) == [{"x": 1}]


@pytest.mark.parametrize(
    ("limits", "text", "problem"),
    [
        ("{timeout: 1s}", LONG, "query-too-slow"),
        ("{readRows: 10}", "SELECT count() FROM numbers(100)", "query-too-large"),
        ("{resultRows: 10}", "SELECT number FROM numbers(11)", "query-too-large"),
        ("{resultBytes: 1000}", "SELECT toString(number) AS x FROM numbers(100000)", "query-too-large"),
        ("{memoryBytes: 4MiB}", "SELECT length(groupArray(number)) AS n FROM numbers(10000000)", "query-too-large"),
    ],
)
def test_each_limit_is_configured(made: Callable[..., Api], limits: str, text: str, problem: str) -> None:
    """Time, rows read, rows and bytes of the result, memory."""
    assert made(limits).post("/v1/sql", {"sql": text}).problem == problem


def test_formats_that_are_made_at_once_are_smaller(sql: Callable[..., Answer]) -> None:
    """They stand in the engine's memory as a whole."""
    text = "SELECT number, repeat(toString(number % 10), 100) AS x FROM numbers(700000)"

    assert sql(text, wanted="parquet").problem == "query-too-large"
    assert len(sql(text, wanted="csv").body) > 70_000_000


@pytest.mark.parametrize(
    "body",
    [{}, {"sql": ""}, {"sql": 1}, {"sql": "SELECT 1", "format": "xml"}, {"sql": "SELECT 1", "params": []},
     {"sql": "SELECT 1", "x": 1}, {"sql": "SELECT {a:UInt8}", "params": {"a": {}}}, {"sql": "x" * 300_000}],
)  # fmt: skip
def test_a_body_that_does_not_fit_is_422(made: Callable[..., Api], body: Any) -> None:
    """Before anything is asked."""
    answer = made().post("/v1/sql", body)

    assert (answer.status, answer.problem) == (422, "invalid-body")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELEC 1", "Syntax error"),
        ("SELECT nope FROM gnomon.requests", "nope"),
        ("SELECT * FROM gnomon.nope", "nope"),
        ("SELECT {a:UInt8}", "a"),
        ("SELECT 1, 1", "two columns"),
    ],
)
def test_a_mistake_is_told_in_clickhouses_words(sql: Callable[..., Answer], text: str, said: str) -> None:
    """400: it is the caller's, and says what is wrong."""
    answer = sql(text)

    assert (answer.status, answer.problem) == (400, "invalid-sql")
    assert said in answer.json()["detail"]


@pytest.mark.parametrize(("token", "status"), [(None, 401), ("ann", 403), ("bob", 200), ("cid", 200), ("eve", 401)])
def test_the_role_sql_is_needed(made: Callable[..., Api], token: str | None, status: int) -> None:
    """Readers ask named questions."""
    assert made(access=ACCESS).post("/v1/sql", {"sql": "SELECT 1 AS x"}, token=token).status == status


def test_values_are_those_of_the_api(sql: Callable[..., Answer]) -> None:
    """Exact integers and decimals, times in UTC, unknown as null; the columns say their types."""
    answer = sql(
        "SELECT toUInt64(9007199254740993) AS big, toInt64(-7) AS small, toDecimal64('0.10', 4) AS money, "
        "toDateTime64('2026-01-02 03:04:05.250', 3, 'UTC') AS at, "
        "toDateTime('2026-01-02 00:00:00', 'Asia/Tokyo') AS t, "
        "CAST(NULL AS Nullable(UInt8)) AS none, nan AS nan, map('a', toUInt64(18446744073709551615)) AS m, "
        "[toDecimal64('1', 2)] AS l, true AS b, 'a\\xffb' AS s"
    )

    assert items(answer) == [
        {"big": "9007199254740993", "small": -7, "money": "0.1000", "at": "2026-01-02T03:04:05.250Z",
         "t": "2026-01-01T15:00:00Z", "none": None, "nan": None, "m": {"a": "18446744073709551615"}, "l": ["1.00"],
         "b": True, "s": "a�b"}
    ]  # fmt: skip
    assert answer.json()["columns"][2] == {"name": "money", "type": "Decimal(18, 4)"}
    assert answer.json()["next_cursor"] is None


def test_a_count_is_the_one_of_the_other_routes(sql: Callable[..., Answer]) -> None:
    """Over the same rows."""
    assert items(sql("SELECT count() AS n FROM gnomon.comparisons")) == [{"n": N_PAIRS}]


def test_the_answer_says_what_it_cost(sql: Callable[..., Answer]) -> None:
    """Seconds, rows and bytes read, in headers whatever the format, and in the document."""
    for wanted in ("json", "csv", "parquet", "arrow", "table"):
        answer = sql("SELECT number AS n FROM numbers(1000)", wanted=wanted)

        assert answer.headers["x-gnomon-read-rows"] == "1000"
        assert answer.headers["x-gnomon-read-bytes"] == "8000"
        assert float(answer.headers["x-gnomon-seconds"]) > 0
        assert int(answer.headers["content-length"]) == len(answer.body)
    said = sql("SELECT number AS n FROM numbers(1000)").json()["statistics"]
    assert (said["rows"], said["read_rows"], said["read_bytes"]) == (1000, 1000, 8000)


@pytest.mark.parametrize("rows", [0, 1, 65_410, 200_000])
def test_each_format_has_every_row_once(sql: Callable[..., Answer], rows: int) -> None:
    """In one piece or in many."""
    text = f"SELECT number AS n, toString(number) AS s FROM numbers({rows})"
    csv = sql(text, wanted="csv").body.decode().splitlines()
    parquet = pq.read_table(io.BytesIO(sql(text, wanted="parquet").body))
    arrow = pa.ipc.open_file(sql(text, wanted="arrow").body).read_all()

    assert [item["n"] for item in items(sql(text))] == list(range(rows))
    assert csv == ['"n","s"', *(f'{n},"{n}"' for n in range(rows))]
    assert parquet.column("n").to_pylist() == list(range(rows)) == arrow.column("n").to_pylist()
    assert arrow.schema.field("n").type == pa.uint64()


def test_a_table_is_for_eyes(sql: Callable[..., Answer]) -> None:
    """Text, without control sequences."""
    answer = sql("SELECT 1 AS one, 'x' AS two", wanted="table")

    assert answer.headers["content-type"].startswith("text/plain")
    assert "one" in answer.body.decode()
    assert b"\x1b" not in answer.body


def test_a_table_has_nothing_that_a_terminal_obeys(sql: Callable[..., Answer]) -> None:
    """A method is what a client called it: here, red."""
    answer = sql("SELECT char(27) || '[31mred' AS method", wanted="table")

    assert "\x1b" not in answer.body.decode()
    assert "�[31mred" in answer.body.decode()


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("String", "'); DROP TABLE gnomon_core.requests; -- \\ \n\t\0 é ☃", None),
        ("UInt64", 2**64 - 1, str(2**64 - 1)),
        ("Decimal(38, 12)", "0.1", "0.100000000000"),
        ("Float64", 0.1, None),
        ("Array(String)", ["it's", "a\\b", ""], None),
        ("Array(Nullable(UInt8))", [1, None], None),
        ("Nullable(String)", None, None),
        ("Bool", True, None),
        ("DateTime64(3)", "2026-01-02T03:04:05.250Z", None),
        ("DateTime64(3, 'UTC')", "2026-01-02T04:04:05.250+01:00", "2026-01-02T03:04:05.250Z"),
        ("DateTime", "2026-01-02 03:04:05", "2026-01-02T03:04:05Z"),
    ],
)
def test_a_parameter_is_a_value(sql: Callable[..., Answer], kind: str, value: Any, expected: Any) -> None:
    """Bound by ClickHouse: what comes back is what was sent."""
    assert items(sql(f"SELECT {{x:{kind}}} AS x", {"x": value})) == [{"x": value if expected is None else expected}]


def test_a_parameter_names_nothing(sql: Callable[..., Answer]) -> None:
    """No table, no column."""
    assert sql("SELECT * FROM {t:Identifier}", {"t": "requests"}).problem == "sql-not-allowed"


def test_a_store_that_is_away_is_503() -> None:
    """With what starts it."""
    reader = Reader(ClickHouseSettings(url="http://127.0.0.1:9"), n_connections=1, query_seconds=5)
    answer = Api(reader, settings_of("{clickhouse: {url: 'http://127.0.0.1:9'}}")).post("/v1/sql", {"sql": "SELECT 1"})
    reader.close()

    assert (answer.status, answer.problem) == (503, "store-away")


# --- on a port --------------------------------------------------------------------------------------------------------


class Engine:
    """What runs in the engine, seen by the writer."""

    def __init__(self, process: EngineProcess) -> None:
        self._store = Store.connect(process.url, *process.credentials())

    def runs(self, mark: str) -> bool:
        """Return whether a statement with a text in it runs."""
        sql = "SELECT count() FROM system.processes WHERE query LIKE {m:String} AND query NOT LIKE '%processes%'"
        return bool(self._store.rows(sql, {"m": f"%{mark}%"})[0][0])

    def wait(self, mark: str, *, runs: bool) -> None:
        deadline = time.monotonic() + 30
        while self.runs(mark) is not runs:
            assert time.monotonic() < deadline, f"{mark} {'never ran' if runs else 'runs on'}"
            time.sleep(0.05)


@pytest.fixture
def engine(filled: EngineProcess) -> Iterator[Engine]:
    found = Engine(filled)
    yield found
    found._store.close()


@contextmanager
def posted(url: str, text: str, token: str = "bob") -> Iterator[http.client.HTTPConnection]:
    """Send a statement and wait for nothing; the client goes when the block ends."""
    connection = http.client.HTTPConnection(str(urlsplit(url).hostname), urlsplit(url).port, timeout=60)
    body = json.dumps({"sql": text, "format": "csv"})
    connection.request("POST", "/v1/sql", body, {"Authorization": f"Bearer {token}"})
    try:
        yield connection
    finally:
        connection.close()


def answered(url: str, text: str, token: str = "bob") -> tuple[int, bytes, str]:
    """Return status, body and Retry-After."""
    with posted(url, text, token) as connection, connection.getresponse() as response:
        return response.status, response.read(), response.headers.get("Retry-After", "")


def test_a_statement_ends_with_its_client(made: Callable[..., Api], engine: Engine) -> None:
    """A client that goes while it waits leaves nothing running in the engine."""
    with listening(made(access=ACCESS)) as url:
        with posted(url, LONG.format("waits")):
            engine.wait("waits", runs=True)
        engine.wait("waits", runs=False)


def test_a_result_that_nobody_reads_on_is_ended(made: Callable[..., Api], engine: Engine) -> None:
    """A client that goes in the middle of the rows, too."""
    with listening(made(access=ACCESS)) as url:
        with posted(url, f"{LARGE} /*middle*/") as connection, connection.getresponse() as response:
            assert response.read(10) == b'"number","'
            engine.wait("middle", runs=True)
        engine.wait("middle", runs=False)


def test_statements_are_counted_by_their_end(made: Callable[..., Api], engine: Engine) -> None:
    """Done, refused by us or by ClickHouse, failed behind the first rows, ended by the client; with their time."""
    api = made("{resultRows: 1000000}", access=ACCESS)
    metrics = api.services.metrics
    with listening(api) as url:
        assert answered(url, "SELECT 1")[0] == 200
        assert answered(url, "SELECT 1; SELECT 2")[0] == 403
        assert answered(url, "SELECT file('/etc/passwd')")[0] == 403
        assert answered(url, "SELECT no_such_column")[0] == 400
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            answered(url, "SELECT if(number = 900000, intDiv(1, number - 900000), number) FROM numbers(1000000)")
        with posted(url, LONG.format("counted")):
            engine.wait("counted", runs=True)
            text = api_text(url)
        engine.wait("counted", runs=False)
        deadline = time.monotonic() + 60
        while metrics.get("gnomon_api_sql_statements_total", ("gone",)) == 0:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    counts = {
        end: metrics.get("gnomon_api_sql_statements_total", (end,)) for end in ("done", "refused", "failed", "gone")
    }
    assert counts == {"done": 1, "refused": 3, "failed": 1, "gone": 1}
    assert all(metrics.get("gnomon_api_sql_seconds_total", (end,)) > 0 for end in counts)
    assert metrics.get("gnomon_api_sql_refused_total", ("sql-not-allowed",)) == 2
    assert metrics.get("gnomon_api_sql_refused_total", ("invalid-sql",)) == 1
    assert "gnomon_api_sql_running 1\n" in text


def api_text(url: str) -> str:
    """Return what the API counts."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("GET", "/metrics", headers={"Authorization": "Bearer bob"})
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def test_a_result_is_not_held_in_memory(made: Callable[..., Api], engine: Engine) -> None:
    """A reader that stands still makes ClickHouse wait: 200 MB of rows cost this process some pieces."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    with listening(made(access=ACCESS)) as url:
        answered(url, "SELECT 1")
        before = resident()
        with posted(url, f"{LARGE} /*stands*/") as connection, connection.getresponse() as response:
            response.read(1)
            time.sleep(2)
            grown = resident() - before
            is_running = engine.runs("stands")
            rest = sum(len(piece) for piece in iter(lambda: response.read(1 << 20), b""))

    assert is_running
    assert grown < 48 << 20
    assert rest > 200_000_000


def test_one_token_may_run_so_many_at_once(made: Callable[..., Api], engine: Engine) -> None:
    """More are 429; other tokens are served, and the place is free when a statement is over."""
    with listening(made("{queries: 1}", access=ACCESS)) as url:
        with posted(url, LONG.format("holds")):
            engine.wait("holds", runs=True)
            status, body, retry_after = answered(url, "SELECT 1")
            other = answered(url, "SELECT 1", "cid")[0]
        engine.wait("holds", runs=False)
        after = answered(url, "SELECT 1")[0]

    assert (status, other, after) == (429, 200, 200)
    assert (json.loads(body)["type"], retry_after) == ("/problems/rate-limited", "2")


def test_many_statements_wait_for_each_other(made: Callable[..., Api]) -> None:
    """Three of all tokens run at once; the others come after, and each gets its own rows."""
    with listening(made("{queries: 64}", access=ACCESS)) as url, ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda n: answered(url, f"SELECT {n} AS n")[1], range(12)))

    assert answers == [f'"n"\n{n}\n'.encode() for n in range(12)]
