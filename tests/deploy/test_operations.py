"""What docs/operations.md says was tried: on the stack as processes, with a real broker and the embedded ClickHouse."""

import json
import re
import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from gnomon.cli import COMMANDS, build_parser
from tests.deploy.stack import Instance, Stack, until
from tests.deploy.tools import effective
from tests.services import ROOT

PAGE = (ROOT / "docs" / "operations.md").read_text("utf-8")
LINES = [line.strip() for line in re.findall(r"(?m)^    (\S.*)$", PAGE)]
"""Every command of the page."""


def words(line: str) -> list[str]:
    """Return a command without its comment."""
    return re.sub(r"--(profile|tail) \S+|  #.*", "", line).split()


def test_every_command_of_ours_on_the_page_can_be_given() -> None:
    """By hand, and as `docker compose run --rm cli …`."""
    found = []
    for line in LINES:
        parts = words(line)
        if parts[:5] == ["docker", "compose", "run", "--rm", "cli"]:
            parts = ["gnomon", *parts[5:]]
        if parts[0] != "gnomon":
            continue
        found.append(parts[1])
        assert parts[1] in COMMANDS
        build_parser(parts[1]).parse_args(parts[1:])

    assert {"reconcile", "dead-letters", "rebuild", "query"} <= set(found)


@pytest.mark.containers
def test_every_service_on_the_page_is_one_of_the_file() -> None:
    """In commands of Docker Compose."""
    services = set(effective("demo", "tools")["services"])
    for line in LINES:
        parts = words(line)
        if parts[:2] != ["docker", "compose"]:
            continue
        named = [part for part in parts[3:] if not part.startswith("-") and not part.isupper()]
        if parts[2] == "run":
            named = named[:1]
        assert set(named) <= services, line


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[Stack]:
    """The stack with a small log, every service well."""
    with Stack(tmp_path_factory.mktemp("stack"), PARTITIONS="4", DEMO_RATE="40") as stack:
        stack.configure(('maxBytes: "${LOG_MAX_BYTES}"', "maxBytes: 3MiB, segmentBytes: 1MiB"))
        stack.start_kafka()
        stack.start_clickhouse()
        stack.up("upstreams")
        for service, n in (("migrate", 1), ("proxy", 1), ("ingest", 2), ("alerts", 1), ("api", 1)):
            stack.up(service, n)
        for instance in stack.instances:
            if instance.service != "migrate":
                until(instance.is_healthy, 120, stack.said)
        yield stack


def of(stack: Stack, service: str) -> list[Instance]:
    """Return the containers of a service that run; none has ended by itself."""
    found = [one for one in stack.instances if one.service == service and not one.is_stopped]
    for one in found:
        assert one.process.poll() is None, (
            f"{service} ended with status {one.process.returncode}:\n{one.said()[-3000:]}"
        )
    return found


@contextmanager
def calls(stack: Stack) -> Iterator[Instance]:
    """Have calls go in; at the end they were answered and every event is stored once."""
    (load,) = stack.up("load")
    (proxy,) = of(stack, "proxy")
    until(lambda: "calling" in load.said(), 90, load.said)
    until(lambda: proxy.metric("4000", "gnomon_shipper_events_total") > 0, 90, stack.said)
    yield load
    assert load.stop() == 0
    until(lambda: is_whole(stack), 120, lambda: f"{stack.cli('reconcile')}\n{stack.said()}")


def is_whole(stack: Stack) -> bool:
    """Return whether nothing is lost, doubled or on its way; what never came is another matter."""
    status, text, messages = stack.cli("reconcile", "--format", "json")
    return status in (0, 1) and text.startswith("[") and not re.search("lost:|doubled:|on their way", messages)


def failed(load: Instance) -> tuple[int, int]:
    """Return calls and failures of a load that has ended."""
    found = re.fullmatch(r"gnomon demo: (\d+) calls, (\d+) failed", load.said().splitlines()[-1])
    assert found is not None
    return int(found[1]), int(found[2])


pytestmark_deep = [
    pytest.mark.containers,
    pytest.mark.kafka,
    pytest.mark.clickhouse,
    pytest.mark.e2e,
    pytest.mark.deep,
    pytest.mark.timeout(600),
]


class TestTried:
    """In any order: each begins and ends with a stack that is well."""

    pytestmark = pytestmark_deep

    def test_a_broker_that_is_lost(self, stack: Stack) -> None:
        """Clients notice nothing; the log grows, and is empty again soon after the broker is back."""
        (proxy,) = of(stack, "proxy")
        with calls(stack) as load:
            stack.broker.kill()
            until(lambda: proxy.metric("4000", "gnomon_shipper_up") == 0, 60, stack.said)
            until(lambda: proxy.metric("4000", "gnomon_shipper_lag_events") > 100, 60, stack.said)
            assert proxy.is_healthy()
            assert "Kafka takes no events, the log keeps them" in proxy.said()
            until(lambda: "ShipperStalled" in stack.cli("alerts", "list")[1], 240, stack.said)
            stack.broker.start()
            until(lambda: proxy.metric("4000", "gnomon_shipper_up") == 1, 90, stack.said)
            until(lambda: proxy.metric("4000", "gnomon_shipper_lag_events") < 50, 90, stack.said)
        n, n_failed = failed(load)
        assert n_failed < n / 50

    def test_a_clickhouse_that_is_lost(self, stack: Stack) -> None:
        """Workers wait, Kafka keeps the events; all of it is stored when ClickHouse is back."""
        workers = of(stack, "ingest")
        with calls(stack):
            stack.stop_clickhouse(signal.SIGKILL)
            until(lambda: all(w.metric("9464", "gnomon_ingest_engine_up") == 0 for w in workers), 90, stack.said)
            assert of(stack, "proxy")[0].is_healthy()
            stack.start_clickhouse()
            until(lambda: all(w.metric("9464", "gnomon_ingest_engine_up") == 1 for w in workers), 120, stack.said)

    def test_a_clickhouse_whose_disk_is_gone(self, stack: Stack) -> None:
        """The schema again, and all that Kafka holds is stored again by the workers that are there."""
        with calls(stack):
            pass
        counted = "SELECT count() AS n, uniqExact(topic, partition, offset) AS places FROM gnomon.events"
        (before,) = stack.ask(counted)
        stack.stop_clickhouse(signal.SIGKILL)
        shutil.rmtree(stack.folder / "clickhouse" / "clickhouse")
        stack.start_clickhouse()
        (migrate,) = stack.up("migrate")
        assert migrate.process.wait(90) == 0, migrate.said()
        until(lambda: int((stack.ask(counted) or [{"n": 0}])[0]["n"]) >= int(before["n"]), 120, stack.said)
        with calls(stack):
            pass
        (after,) = stack.ask(counted)
        assert after["n"] == after["places"]

    def test_a_worker_that_is_stuck(self, stack: Stack) -> None:
        """The other one takes its partitions over; woken up again it stores nothing twice and shares them again."""
        stuck, other = of(stack, "ingest")
        with calls(stack):
            stuck.process.send_signal(signal.SIGSTOP)
            until(lambda: other.metric("9464", "gnomon_ingest_partitions") == 11, 90, stack.said)
            stuck.process.send_signal(signal.SIGCONT)
            until(lambda: stuck.metric("9464", "gnomon_ingest_partitions") > 0, 120, stack.said)

    def test_a_log_that_is_full(self, stack: Stack) -> None:
        """Clients are served on; what had no room is counted by the proxy and named by `gnomon reconcile`."""
        (proxy,) = of(stack, "proxy")
        before = proxy.metric("4000", "gnomon_log_dropped_total")
        with calls(stack) as load:
            stack.broker.kill()
            until(lambda: proxy.metric("4000", "gnomon_log_dropped_total") > before + 50, 240, stack.said)
            assert proxy.is_healthy()
            stack.broker.start()
            until(lambda: proxy.metric("4000", "gnomon_shipper_lag_events") < 50, 120, stack.said)
        n, n_failed = failed(load)
        assert n_failed < n / 50
        later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        status, _, messages = stack.cli("reconcile", "--to", later)
        assert (status, "never came" in messages) == (1, True)

    def test_a_rebuild(self, stack: Stack) -> None:
        """Not while workers are at work; then the same answers, and workers go on."""
        with calls(stack):
            pass
        count = "SELECT count() AS n, uniqExact(request_id) AS ids FROM gnomon.requests"
        status, _, messages = stack.cli("rebuild")
        assert (status, "stop every `gnomon ingest` first" in messages) == (2, True)
        for worker in of(stack, "ingest"):
            assert worker.stop() == 0, worker.said()
        before = stack.ask(count)
        status, text, messages = stack.cli("rebuild")
        assert status == 0, messages
        assert "hours are anew from the beginning on" in text
        after = stack.ask(count)
        for worker in stack.up("ingest", 2):
            until(worker.is_healthy, 120, stack.said)
        # What was in Kafka and in no table yet is there too.
        assert int(after[0]["n"]) >= int(before[0]["n"]) > 0
        assert after[0]["n"] == after[0]["ids"]
        with calls(stack):
            pass

    def test_an_upgrade(self, stack: Stack) -> None:
        """The schema first, then one service after the other while calls go in; clients notice the proxy's turn."""
        with calls(stack):
            status, text, _ = stack.cli("migrate")
            assert (status, "0 migrations run" in text) == (0, True)
            for service in ("ingest", "ingest", "alerts", "api", "proxy"):
                one = of(stack, service)[0]
                assert one.stop() == 0, one.said()
                (again,) = stack.up(service)
                until(again.is_healthy, 120, stack.said)

    def test_new_secrets(self, stack: Stack) -> None:
        """A client's and the API's by a signal, without a stop; ClickHouse's by starting its users again."""
        (proxy,) = of(stack, "proxy")
        (api,) = of(stack, "api")
        old = {name: (stack.secrets / name).read_text().strip() for name in ("proxy_client_secret", "api_token")}
        stack.make_secrets("proxy_client_secret", "api_token")
        new = {name: (stack.secrets / name).read_text().strip() for name in old}
        proxy.process.send_signal(signal.SIGHUP)
        api.process.send_signal(signal.SIGHUP)
        until(lambda: call(stack, proxy, new["proxy_client_secret"]) == 200, 30, stack.said)
        assert call(stack, proxy, old["proxy_client_secret"]) == 401
        until(lambda: spend(api, new["api_token"]) == 200, 30, stack.said)
        assert spend(api, old["api_token"]) == 401
        stack.make_secrets("clickhouse_writer_password")
        stack.stop_clickhouse()
        stack.start_clickhouse()
        for service in ("ingest", "ingest", "alerts"):
            one = of(stack, service)[0]
            assert one.stop() == 0, one.said()
            (again,) = stack.up(service)
            until(again.is_healthy, 120, stack.said)
        with calls(stack):
            pass

    def test_dead_letters(self, stack: Stack) -> None:
        """A record that is no event is listed with its place; a retry of what is still poison leaves it there."""
        import asyncio

        from aiokafka import AIOKafkaProducer

        async def send() -> int:
            async with AIOKafkaProducer(bootstrap_servers=stack.broker.address) as producer:
                sent = await producer.send_and_wait("gnomon.responses.v1", b"no event", partition=2)
                return int(sent.offset)

        offset = asyncio.run(send())

        def listed() -> list[int]:
            status, text, _ = stack.cli("dead-letters", "list", "--format", "json")
            return [row["offset"] for row in json.loads(text)] if status == 0 else []

        until(lambda: offset in listed(), 60, stack.said)
        place = ["--topic", "gnomon.responses.v1", "--partition", "2", "--offset", str(offset)]
        status, text, messages = stack.cli("dead-letters", "retry", *place, "--format", "json")
        assert (status, "0 stored, 1 stay" in messages) == (1, True), text + messages
        assert offset in listed()


def call(stack: Stack, proxy: Instance, secret: str) -> int:
    """Return the status of a client's call."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{stack.port('4000', proxy)}/main/evm/31337",
        b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}',
        {"Content-Type": "application/json", "X-Gnomon-Secret": secret},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def spend(api: Instance, token: str) -> int:
    """Return the status of a question to the API."""
    return api.get("8080", "/v1/spend", Authorization=f"Bearer {token}")[0]
