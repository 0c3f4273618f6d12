"""A network that is no EVM chain, from the client's call to SQL: `gnomon up` over Hive-like nodes."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from analytics.store import Store
from tests.cli.test_up import OPENER, Up, children_of, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

ACCOUNT = {"name": "alice", "balance": "1.000 HIVE", "reputation": 25}
ASSERTION = {"code": -32003, "message": "Assert Exception:false: no such post", "data": {"code": 10}}


class HiveNode:
    """A node that counts what it is asked; `changes` are answers of its own."""

    def __init__(self, changes: dict[str, Any] | None = None) -> None:
        self.asked: list[str] = []
        answers = {
            "condenser_api.get_accounts": [ACCOUNT],
            "condenser_api.get_dynamic_global_properties": {"head_block_number": 90_000_000},
            "condenser_api.get_block": None,
            "condenser_api.broadcast_transaction": {},
            **(changes or {}),
        }
        node = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                node.asked.append(question["method"])
                answer = {"jsonrpc": "2.0", "id": question["id"]}
                if question["method"] in answers:
                    answer["result"] = answers[question["method"]]
                else:
                    answer["error"] = ASSERTION
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing per request."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


@pytest.fixture
def nodes() -> Iterator[dict[str, HiveNode]]:
    """A primary that is gone, one that serves, a paid fallback, and a candidate with a number as text."""
    found = {
        "gone": HiveNode(),
        "own": HiveNode(),
        "paid": HiveNode(),
        "candidate": HiveNode({"condenser_api.get_accounts": [{**ACCOUNT, "reputation": "25"}]}),
    }
    found["gone"].stop()
    yield found
    for node in found.values():
        node.stop()


@pytest.fixture
def up(tmp_path: Path, nodes: dict[str, HiveNode]) -> Iterator[Up]:
    it = Up(tmp_path)
    more: dict[str, dict[str, object]] = {
        "paid": {"tags": ["tier:fallback"]},
        "candidate": {"shadow": {"enabled": True}},
    }
    upstreams = [
        {"id": name, "endpoint": node.url, "network": "hive", **more.get(name, {})} for name, node in nodes.items()
    ]
    project = {"id": "social", "networks": [{"architecture": "jsonrpc", "id": "hive"}], "upstreams": upstreams}
    own = {"proxy": {"port": 0}, "api": {"port": 0}, "clickhouse": {"url": "http://127.0.0.1:0"}}
    it.config.write_text(json.dumps({"projects": [project], "gnomon": own}))
    it.start()
    yield it
    assert it.process is not None
    if it.process.poll() is None:
        it.process.kill()
    it.process.wait(10)
    until(lambda: not children_of(it), lambda: children_of(it))


def call(url: str, method: str, params: list[object]) -> tuple[dict[str, Any], dict[str, str]]:
    body = json.dumps({"jsonrpc": "2.0", "id": "x-1", "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with OPENER.open(request, timeout=10) as answer:
        return json.load(answer), {name.lower(): value for name, value in answer.headers.items()}


CALLS: list[tuple[str, list[object], dict[str, Any]]] = [
    ("condenser_api.get_accounts", [["alice"]], {"result": [ACCOUNT]}),
    ("condenser_api.get_dynamic_global_properties", [], {"result": {"head_block_number": 90_000_000}}),
    ("condenser_api.get_block", [99_999_999], {"result": None}),
    ("condenser_api.broadcast_transaction", [{"ref_block_num": 1}], {"result": {}}),
    ("bridge.get_post", ["alice", "nothing"], {"error": ASSERTION}),
]


def test_a_generic_network_from_call_to_sql(up: Up, nodes: dict[str, HiveNode]) -> None:
    """
    Answers are the node's, failover goes on, writes are not mirrored, nothing is polled, no head and no finality is
    made up, differences are found: and all of it stands in SQL.
    """
    rpc = up.address(r"(http://127\.0\.0\.1:\d+/social/hive)")
    sql = up.address(r"SQL +(http://127\.0\.0\.1:\d+)")
    for method, params, expected in CALLS:
        answer, headers = call(rpc, method, params)
        assert answer == {"jsonrpc": "2.0", "id": "x-1", **expected}
        assert headers["x-gnomon-upstream"] == "own"
        assert "x-gnomon-head" not in headers
    answer, _ = call(rpc.removesuffix("/social/hive"), "condenser_api.get_accounts", [["alice"]])
    assert answer["result"] == [ACCOUNT]

    def rows(query: str) -> list[tuple[Any, ...]]:
        with Store.connect(sql) as store:
            return [tuple(row) for row in store.rows(query)]

    n = len(CALLS) + 1
    until(lambda: rows("SELECT count() FROM gnomon.requests") == [(n,)], lambda: up.stderr()[-3000:], 60.0)
    until(lambda: rows("SELECT count() FROM gnomon.comparisons") == [(n - 1,)], lambda: up.stderr()[-3000:], 60.0)

    assert rows("SELECT DISTINCT project, network, upstream, tier FROM gnomon.requests") == [
        ("social", "hive", "own", "primary")
    ]
    assert rows("SELECT outcome, error_class, count() FROM gnomon.requests GROUP BY ALL ORDER BY outcome") == [
        ("result", "", n - 1),
        ("verdict", "halt", 1),
    ]
    assert rows("SELECT countIf(block_number IS NOT NULL), countIf(head_latest IS NOT NULL) FROM gnomon.requests") == [
        (0, 0)
    ]
    assert rows("SELECT DISTINCT kind FROM gnomon.attempts ORDER BY kind") == [("client",), ("shadow",)]
    assert rows("SELECT count() FROM gnomon.heads") == [(0,)]
    assert rows("SELECT method, decision FROM gnomon.shadow_decisions WHERE decision != 'mirrored'") == [
        ("condenser_api.broadcast_transaction", "write")
    ]
    assert rows("SELECT DISTINCT finality, settled FROM gnomon.comparisons") == [("unknown", "")]
    assert rows("SELECT DISTINCT method, class FROM gnomon.comparisons WHERE outcome = 'mismatch'") == [
        ("condenser_api.get_accounts", "type")
    ]
    assert rows("SELECT DISTINCT generic_path FROM gnomon.findings") == [("$.result[*].reputation",)]
    asked = {
        name: {method for method in node.asked if method.startswith(("eth_", "net_"))} for name, node in nodes.items()
    }
    assert asked == {"gone": set(), "own": set(), "paid": set(), "candidate": set()}
    assert nodes["paid"].asked == []
    assert "condenser_api.broadcast_transaction" not in nodes["candidate"].asked
