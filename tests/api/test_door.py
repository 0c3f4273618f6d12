"""What holds for every request, whichever route it is for."""

import hashlib
import json
import logging

import pytest

from analytics.questions import load
from analytics.store import StoreAway, StoreError
from api.access import Access, Caller, Token
from api.app import document
from gnomon.config.model import Role
from tests.api.calling import Answer, Api, FakeReader, result_of, settings_of

ROWS = result_of(load("spend_by_cause"))


def tokens(**roles: Role) -> Access:
    return Access(Token(Caller(n, r), hashlib.sha256(n.encode()).digest()) for n, r in roles.items())


def api(result: object = ROWS, gnomon: str = "{}", access: Access | None = None) -> Api:
    return Api(FakeReader(result), settings_of(gnomon), access)  # type: ignore[arg-type]


def assert_problem(answer: Answer, status: int, problem: str) -> None:
    said = answer.json()

    assert (answer.status, answer.problem) == (status, problem)
    assert said["status"] == status
    assert said["request_id"] == answer.headers["x-request-id"]
    assert int(answer.headers["content-length"]) == len(answer.body)


def test_every_answer_has_an_id_of_its_own() -> None:
    """Which stands in the log too."""
    one = api()
    first, second = one.get("/v1/spend"), one.get("/v1/spend")

    assert first.status == 200
    assert len({first.headers["x-request-id"], second.headers["x-request-id"]}) == 2
    assert first.headers["x-content-type-options"] == "nosniff"
    assert first.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("method", "path", "status", "problem"),
    [
        ("GET", "/nope", 404, "not-found"),
        ("GET", "/v1/nope", 404, "not-found"),
        ("GET", "/v1/spend/", 404, "not-found"),
        ("GET", "/v1/spend/\u2603", 404, "not-found"),
        ("POST", "/v1/spend", 405, "method-not-allowed"),
        ("OPTIONS", "/v1/spend", 405, "method-not-allowed"),
        ("TRACE", "/v1/spend", 405, "method-not-allowed"),
        ("BREW", "/v1/spend", 405, "method-not-allowed"),
    ],
)
def test_what_is_not_there_is_a_problem(method: str, path: str, status: int, problem: str) -> None:
    """No page of the framework is seen."""
    answer = api().call(method, path)

    assert_problem(answer, status, problem)
    assert ("allow" in answer.headers) == (status == 405)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"nope": "1"}, "nope"),
        ({"network": ["a", "b"]}, "network"),
        ({"from_": "yesterday"}, "from"),
        ({"from_": "2026-01-01T25:00"}, "from"),
        ({"from_": "now-999999w"}, "from"),
        ({"network": "x" * 257}, "network"),
    ],
)
def test_a_wrong_parameter_is_named(query: dict[str, object], named: str) -> None:
    """400, with what would be right."""
    answer = api().get("/v1/spend", **query)

    assert_problem(answer, 400, "invalid-parameter")
    assert named in answer.json()["detail"]


def test_each_wrong_parameter_is_listed() -> None:
    """All at once, for programs."""
    answer = api().get("/v1/comparisons", outcome="maybe", limit=0, class_="none")

    assert_problem(answer, 400, "invalid-parameter")
    assert {error["parameter"] for error in answer.json()["errors"]} == {"outcome", "limit"}


@pytest.mark.parametrize(("start", "end"), [("now", "now-1h"), ("now-1h", "now-1h"), ("2026-01-02", "2026-01-01")])
def test_an_empty_range_is_refused(start: str, end: str) -> None:
    """Nobody asks for it on purpose."""
    assert_problem(api().get("/v1/spend", from_=start, to=end), 400, "invalid-range")


def test_clickhouse_away_is_503_with_the_way_out() -> None:
    """And when to try again."""
    answer = api(StoreAway("ClickHouse does not answer at http://127.0.0.1:8123; start it with `gnomon up`")).get(
        "/v1/spend"
    )

    assert_problem(answer, 503, "store-away")
    assert answer.headers["retry-after"] == "2"
    assert "gnomon up" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("code", "status", "problem"),
    [
        (159, 504, "query-too-slow"),
        (396, 400, "query-too-large"),
        (47, 500, "store-refused"),
        (60, 503, "schema-missing"),
    ],
)
def test_what_clickhouse_says_is_told_by_its_code(code: int, status: int, problem: str) -> None:
    """Its words stay in the log."""
    answer = api(StoreError("ClickHouse: secret words", code, "NAME")).get("/v1/spend")

    assert_problem(answer, status, problem)
    assert b"secret words" not in answer.body


def test_a_bug_says_nothing_internal(caplog: pytest.LogCaptureFixture) -> None:
    """The log has it under the id that the caller sees."""
    caplog.set_level(logging.ERROR)
    answer = api(ZeroDivisionError("secret words")).get("/v1/spend")

    assert_problem(answer, 500, "internal")
    assert b"secret" not in answer.body
    assert answer.json()["request_id"] in caplog.text
    assert "secret words" in caplog.text


def test_a_body_above_the_limit_is_refused() -> None:
    """By its length before it is read, and by what came where it said nothing."""
    one = api(gnomon="{api: {limits: {maxRequestBytes: 100}}}", access=tokens(root="admin"))
    said = {"content-type": "application/json", "content-length": "101"}
    by_length = one.call("POST", "/v1/silences", headers=said, body=b"{}", token="root")
    by_bytes = one.call(
        "POST", "/v1/silences", headers={"content-type": "application/json"}, body=[b" " * 60, b" " * 60], token="root"
    )

    assert_problem(by_length, 413, "too-large")
    assert_problem(by_bytes, 413, "too-large")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b'{"rule": 1}', b"[" * 5000])
def test_a_body_that_is_none_is_a_problem(body: bytes) -> None:
    """Whatever it is."""
    one = api(access=tokens(root="admin"))
    answer = one.call("POST", "/v1/silences", headers={"content-type": "application/json"}, body=body, token="root")

    assert_problem(answer, 422, "invalid-body")


# --- who asks ---------------------------------------------------------------------------------------------------------


def routes() -> list[tuple[str, str]]:
    paths = document()["paths"]
    return [(method.upper(), path) for path, operations in paths.items() for method in operations if path[:4] == "/v1/"]


@pytest.mark.parametrize(("method", "path"), routes())
def test_every_route_asks_for_a_token(method: str, path: str) -> None:
    """Where tokens are configured: 401 without one and with a wrong one, whatever else is wrong."""
    one = api(access=tokens(ann="admin"))
    path = path.replace("{", "").replace("}", "")
    without = one.call(method, path, nope="1")
    wrong = one.call(method, path, token="eve")

    assert_problem(without, 401, "unauthorized")
    assert_problem(wrong, 401, "unauthorized")
    assert without.headers["www-authenticate"] == 'Bearer realm="gnomon"'


ASKED_BY_POST = {"/v1/sql", "/v1/compare/preview"}
"""They change nothing; what is asked is too long for an address."""


@pytest.mark.parametrize(("method", "path"), [(m, p) for m, p in routes() if m != "GET" and p not in ASKED_BY_POST])
def test_what_changes_needs_a_role(method: str, path: str) -> None:
    """Who may read may not change; without tokens nobody may."""
    path = path.replace("{", "").replace("}", "")
    answer = api(access=tokens(bob="read")).call(method, path, token="bob")

    assert_problem(answer, 403, "forbidden")
    assert_problem(api().call(method, path), 403, "forbidden")


def test_a_valid_token_reads() -> None:
    """By the standard's header."""
    assert api(access=tokens(bob="read")).get("/v1/spend", token="bob").status == 200


def test_health_and_the_document_need_no_token() -> None:
    """Who watches processes has none."""
    one = api(access=tokens(bob="read"))

    assert one.get("/healthcheck").json()["status"] == "ok"
    assert one.get("/openapi.json").json()["openapi"].startswith("3.1")
    assert "gnomon_api_requests_total" in one.get("/metrics").body.decode()
    assert one.get("/problems/not-found").json()["status"] == 404
    assert_problem(one.get("/problems/nope"), 404, "not-found")


def test_who_asks_too_often_waits() -> None:
    """429 with the time to wait, and others go on."""
    one = api(gnomon="{api: {limits: {requestsPerSecond: 0.5, burst: 2}}}", access=tokens(bob="read", ann="read"))
    answers = [one.get("/v1/spend", token="bob") for _ in range(3)]

    assert [answer.status for answer in answers] == [200, 200, 429]
    assert_problem(answers[2], 429, "rate-limited")
    assert answers[2].headers["retry-after"] == "2"
    assert one.get("/v1/spend", token="ann").status == 200
    assert one.get("/healthcheck").status == 200


def test_guessing_tokens_is_limited_and_locks_nobody_out() -> None:
    """All who have none share one bucket; a valid token has its own."""
    one = api(gnomon="{api: {limits: {requestsPerSecond: 0.1, burst: 2}}}", access=tokens(bob="read"))
    guesses = [one.get("/v1/spend", token=f"guess{n}").status for n in range(4)]

    assert guesses == [401, 401, 429, 429]
    assert one.get("/v1/spend", token="bob").status == 200


# --- pages of others --------------------------------------------------------------------------------------------------


def test_a_foreign_host_is_refused() -> None:
    """A page that gave its own name our address (DNS rebinding) gets nothing."""
    assert_problem(api().get("/v1/spend", headers={"host": "evil.example"}), 403, "foreign-host")


def test_a_foreign_page_is_refused() -> None:
    """Also where no preflight comes before."""
    answer = api().get("/v1/spend", headers={"origin": "https://evil.example"})

    assert_problem(answer, 403, "foreign-origin")
    assert "access-control-allow-origin" not in answer.headers


def test_a_listed_page_may_ask_and_read_errors() -> None:
    """With a preflight, which needs no token."""
    one = api(gnomon="{api: {cors: {allowedOrigins: ['https://a.example']}}}", access=tokens(bob="read"))
    page = {"origin": "https://a.example"}
    preflight = one.call("OPTIONS", "/v1/silences", headers={**page, "access-control-request-method": "POST"})

    assert (preflight.status, preflight.body) == (204, b"")
    assert "POST" in preflight.headers["access-control-allow-methods"]
    assert "authorization" in preflight.headers["access-control-allow-headers"]
    for answer in (one.get("/v1/spend", headers=page, token="bob"), one.get("/v1/spend", headers=page)):
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        assert answer.headers["vary"] == "Origin"


# --- what is counted --------------------------------------------------------------------------------------------------


def test_requests_are_counted_by_route() -> None:
    """Never by address: what is asked for is unbounded."""
    one = api(access=tokens(bob="read"))
    for path in ("/v1/spend", "/v1/nope", "/v1/silences/abc"):
        one.get(path, token="bob")
    one.get("/v1/spend")
    metrics = one.services.metrics

    assert metrics.get("gnomon_api_requests_total", ("/v1/spend", "GET", "200")) == 1
    assert metrics.get("gnomon_api_requests_total", ("/v1/spend", "GET", "401")) == 1
    assert metrics.get("gnomon_api_requests_total", ("_OTHER", "GET", "404")) == 1
    assert metrics.get("gnomon_api_problems_total", ("not-found",)) == 2
    assert metrics.get("gnomon_api_problems_total", ("unauthorized",)) == 1
    assert metrics.get("gnomon_api_in_flight") == 0
    assert "/v1/silences/{silence_id}" in one.services.metrics.render()


def test_no_token_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Neither a valid one nor a guess, at any level."""
    caplog.set_level(logging.DEBUG)
    one = api(access=tokens(hunter2="read"))
    one.get("/v1/spend", token="hunter2")
    one.get("/v1/spend", token="guess0815")

    assert "guess0815" not in caplog.text
    assert "Bearer" not in caplog.text
    assert "token=hunter2" in caplog.text  # the name, here the same as the secret


def test_a_page_of_an_allowed_origin_may_use_all_of_the_api() -> None:
    """It reads what answers say in headers, and goes on with a live stream: with a token that takes a fetch."""
    one = api(gnomon="{api: {cors: {allowedOrigins: ['https://a.example']}}}")
    page = {"origin": "https://a.example"}
    preflight = one.call("OPTIONS", "/v1/stream", headers={**page, "access-control-request-method": "GET"})
    exposed = one.get("/v1/spend", headers=page).headers["access-control-expose-headers"].lower().split(", ")

    assert "last-event-id" in preflight.headers["access-control-allow-headers"].split(", ")
    assert {"location", "retry-after", "x-gnomon-read-bytes", "x-gnomon-read-rows", "x-gnomon-seconds"} <= set(exposed)


@pytest.mark.parametrize("path", ["/healthcheck", "/metrics", "/openapi.json", "/docs", "/problems/unauthorized"])
def test_what_says_nothing_of_anybody_needs_no_token(path: str) -> None:
    """Prometheus needs none, as the guide says; and who is refused can read why."""
    assert api(access=tokens(bob="read")).get(path).status == 200


@pytest.mark.parametrize("path", ["/healthcheck", "/metrics", "/v1/spend", "/openapi.json", "/login"])
def test_head_is_get_without_the_body(path: str) -> None:
    """As what watches a service asks, and `curl -I`."""
    there = api()
    answer, whole = there.call("HEAD", path), there.get(path)

    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-type"] == whole.headers["content-type"]
    if path != "/metrics":
        assert answer.headers["content-length"] == str(len(whole.body))


def test_head_of_the_live_stream_ends() -> None:
    """Its headers are all that there is to say."""
    answer = api().call("HEAD", "/v1/stream")

    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/spend", "GET, HEAD"),
        ("/v1/sql", "POST"),
        ("/v1/silences", "GET, HEAD, POST"),
        ("/v1/silences/5f0a91c2", "DELETE, GET, HEAD"),
        ("/v1/upstreams/mine/cordon", "DELETE, PUT"),
    ],
)
def test_allow_lists_every_method_of_the_path(path: str, allowed: str) -> None:
    assert api().call("PATCH", path).headers["allow"] == allowed


def test_no_answer_is_kept() -> None:
    """Problems and what leads elsewhere neither: a browser keeps a 308 for ever."""
    one = api()

    for path in ("/v1/nothing", "/v1/spend?x=1", "/healthcheck", "/favicon.ico", "/openapi.json"):
        assert one.get(path).headers["cache-control"] == "no-store", path


def test_the_document_is_what_is_committed() -> None:
    """`make docs` writes docs/openapi.json."""
    from tests.services import ROOT

    assert json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8")) == document()
