"""`gnomon up` as a user runs it: real children, a node of our own, ports that it finds."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from analytics.store import Store
from gnomon.supervisor import command

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
CHAIN_ID = 31337


class Node(BaseHTTPRequestHandler):
    """A node at height 100 that knows how much everybody has."""

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        block = {"number": "0x64", "hash": "0x" + "11" * 32, "parentHash": "0x" + "22" * 32, "timestamp": "0x1"}
        results = {"eth_chainId": hex(CHAIN_ID), "eth_blockNumber": "0x64", "eth_getBlockByNumber": block}
        result = results.get(question["method"], "0x2a")
        answer = json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing per request."""


@pytest.fixture
def node() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Node)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join(10)


class Up:
    """One folder, and `gnomon up` in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "gnomon.yaml"
        self.process: subprocess.Popen[bytes] | None = None

    def configure(self, node: str, **more: object) -> None:
        upstream = {"id": "p1", "endpoint": node, "evm": {"chainId": CHAIN_ID}}
        own = {"proxy": {"port": 0}, "api": {"port": 0}, "clickhouse": {"url": "http://127.0.0.1:0"}, **more}
        self.config.write_text(json.dumps({"projects": [{"id": "main", "upstreams": [upstream]}], "gnomon": own}))

    def start(self) -> "subprocess.Popen[bytes]":
        with (self.folder / "stdout").open("wb") as out, (self.folder / "stderr").open("wb") as err:
            self.process = subprocess.Popen(
                [*command("up"), "--config", str(self.config), "--data", str(self.folder / "data")],
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        return self.process

    def stdout(self) -> str:
        return (self.folder / "stdout").read_text()

    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    def address(self, pattern: str) -> str:
        """Wait until it is ready; return an address that it printed."""
        until(lambda: str(self.folder / "data") in self.stdout(), lambda: self.stderr()[-3000:], 90.0)
        found = re.search(pattern, self.stdout())
        assert found is not None, self.stdout()
        return found[1]

    def child(self, name: str) -> int:
        """Return the pid of the child whose command line shows `gnomon NAME`."""
        return children_of(self)[f"gnomon {name}"]


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    it = Up(tmp_path)
    yield it
    if it.process is not None:
        if it.process.poll() is None:
            it.process.kill()
        it.process.wait(10)
        until(lambda: not children_of(it), lambda: children_of(it))


def children_of(up: Up) -> dict[str, int]:
    """Return pids by `gnomon NAME`, of all processes that name the data folder."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        name = re.search(r"gnomon (proxy|ingest|migrate|alerts|api|clickhouse) ", line)
        if name is not None and str(up.folder / "data") in line:
            found[name[0].strip()] = int(entry.name)
    return found


def until(condition: Callable[[], bool], explain: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, explain()
        time.sleep(0.1)


def ask(url: str) -> object:
    """Send one call through the proxy; None while it does not answer."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_getBalance", "params": ["0x" + "ab" * 20, "0x5"]})
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"})
    try:
        with OPENER.open(request, timeout=5) as answer:
            return json.load(answer).get("result")
    except OSError:
        return None


def stored(url: str) -> int:
    """Return how many answered calls are stored; -1 while ClickHouse does not answer."""
    from gnomon.errors import GnomonError

    try:
        with Store.connect(url) as store:
            rows = store.rows("SELECT count() FROM gnomon.requests WHERE method = 'eth_getBalance'")
    except GnomonError:
        return -1
    return int(rows[0][0])


def status_of(url: str) -> int:
    """Return the status of an answer; 0 while there is none."""
    try:
        with OPENER.open(url, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def kill_and_await(up: Up, name: str) -> None:
    """Kill a child; return when its next life has begun."""
    pid = up.child(name)
    os.kill(pid, signal.SIGKILL)
    until(lambda: children_of(up).get(f"gnomon {name}", pid) != pid, lambda: up.stderr()[-3000:])


def answered_and_stored(up: Up, rpc: str, sql: str, n: int) -> None:
    """Send a call until it is answered; return when `n` are stored."""
    until(lambda: ask(rpc) == "0x2a", lambda: up.stderr()[-3000:])
    until(lambda: stored(sql) == n, lambda: (stored(sql), n, up.stderr()[-3000:]), 60.0)


@pytest.mark.e2e
@pytest.mark.timeout(240)
def test_everything_runs_survives_kills_and_stops(up: Up, node: str) -> None:
    """Free ports are found, told and kept; what is killed comes back and goes on; SIGTERM ends all with status 0."""
    up.configure(node)
    process = up.start()
    rpc = up.address(r"(http://127\.0\.0\.1:\d+/main/evm/31337)")
    sql = up.address(r"SQL +(http://127\.0\.0\.1:\d+)")
    api = up.address(r"API +(http://127\.0\.0\.1:\d+)/v1")
    answered_and_stored(up, rpc, sql, 1)
    assert up.stderr().count("run `gnomon migrate`") <= 1  # the schema is made meanwhile, by itself
    assert "gnomon migrate: 00" not in up.stderr()
    for n, victim in enumerate(("proxy", "clickhouse", "ingest", "api"), start=2):
        kill_and_await(up, victim)
        answered_and_stored(up, rpc, sql, n)
        until(lambda: status_of(f"{api}/v1/comparisons") == 200, lambda: up.stderr()[-3000:])
    with OPENER.open(f"{api}/v1/upstreams", timeout=30) as answer:
        assert [proxy["error"] for proxy in json.load(answer)["proxies"]] == [""]
    process.terminate()

    assert process.wait(40) == 0
    assert children_of(up) == {}
    assert up.stdout().count("gnomon up: ready") == 1


@pytest.mark.e2e
@pytest.mark.timeout(120)
def test_a_hangup_has_the_proxy_read_its_configuration_again(up: Up, node: str) -> None:
    """Its port stays, a found one too; a file that cannot be used changes nothing; no process is started anew."""
    up.configure(node)
    process = up.start()
    rpc = up.address(r"(http://127\.0\.0\.1:\d+/main/evm/31337)")
    until(lambda: ask(rpc) == "0x2a", lambda: up.stderr()[-3000:])
    pid = up.child("proxy")
    text = up.config.read_text()
    for change, message in (
        (text.replace('"p1"', '"p2"'), "configuration reloaded"),
        ("{", "the old one stays in force"),
    ):
        up.config.write_text(change)
        process.send_signal(signal.SIGHUP)
        for name in ("proxy", "ingest", "alerts"):
            line = re.compile(rf"^{name} +\|.*{message}", re.MULTILINE)
            until(lambda line=line: line.search(up.stderr()), lambda: up.stderr()[-3000:])  # type: ignore[misc]
        until(lambda: ask(rpc) == "0x2a", lambda: up.stderr()[-3000:])

    with OPENER.open(rpc.partition("/main")[0] + "/healthcheck", timeout=5) as health:
        networks = json.load(health)["networks"]
    assert list(networks["main/evm:31337"]["upstreams"]) == ["p2"]
    assert up.child("proxy") == pid
    up.config.write_text(text)
    process.terminate()
    assert process.wait(40) == 0


@pytest.mark.e2e
@pytest.mark.timeout(120)
def test_one_up_for_each_data_folder(up: Up, node: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The second names the first and ends with status 1; children die with a killed first, and a third runs."""
    up.configure(node)
    first = up.start()
    up.address(r"SQL +(\S+)")
    argv = [*command("up"), "--config", str(up.config), "--data", str(up.folder / "data")]
    second = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    first.kill()
    first.wait(10)
    until(lambda: not children_of(up), lambda: children_of(up), 5.0)
    third = up.start()
    up.address(r"SQL +(\S+)")
    third.send_signal(signal.SIGINT)

    assert second.returncode == 1
    assert f"{up.folder / 'data'} is in use by pid {first.pid} (gnomon up)" in second.stderr
    assert third.wait(40) == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"clickhouse": {"url": "https://127.0.0.1:1"}}, "the embedded ClickHouse listens on http://HOST:PORT"),
        ({"events": {"kafka": {"bootstrapServers": "127.0.0.1:1"}}}, "runs everything embedded, without Kafka"),
        ({"clickhouse": {"url": "http://0.0.0.0:1"}}, "let other machines read all without credentials"),
        ({"pricing": {"books": ["/nowhere.yaml"]}}, "/nowhere.yaml"),
        ({"proxy": {"port": "many"}}, "proxy.port"),
        ({"api": {"tokens": [{"name": "a", "sha256File": "/nowhere"}]}}, "sha256File /nowhere cannot be read"),
    ],
    ids=["ClickHouse by https", "Kafka", "ClickHouse for all", "no such price book", "no number", "no such token"],
)
def test_a_bad_configuration_starts_nothing(up: Up, more: dict[str, object], message: str) -> None:
    """Status 2, the reason, and not even a data folder."""
    up.configure("http://127.0.0.1:1", **more)
    process = up.start()

    assert process.wait(30) == 2
    assert message in up.stderr()
    assert not (up.folder / "data").exists()


@pytest.mark.e2e
def test_a_taken_port_is_told(up: Up, node: str) -> None:
    """A service that can never start ends everything, with its own reason and status 1."""
    up.configure(node, proxy={"port": int(node.rpartition(":")[2])})
    process = up.start()

    assert process.wait(60) == 1
    assert "gnomon: proxy cannot start: cannot listen on 127.0.0.1:" in up.stderr()
    assert children_of(up) == {}


def test_the_command_line_shows_the_service() -> None:
    """Who looks at the process list sees `gnomon proxy`."""
    assert "gnomon proxy --data" in " ".join(command("proxy", "--data", "x"))
    assert command("proxy")[0] == sys.executable
