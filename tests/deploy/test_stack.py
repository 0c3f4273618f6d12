"""The commands of docker-compose.yml, started as processes, are a whole: calls go in, rows come out, once."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.stack import Instance, Stack, until

pytestmark = [
    pytest.mark.containers,
    pytest.mark.kafka,
    pytest.mark.clickhouse,
    pytest.mark.e2e,
    pytest.mark.timeout(400),
    pytest.mark.usefixtures("java"),
]

COUNTS = """
SELECT
    (SELECT count() FROM gnomon.requests) AS n_requests,
    (SELECT count() FROM gnomon.comparisons WHERE outcome = 'mismatch') AS n_mismatches,
    (SELECT count() FROM gnomon.attempts WHERE tier = 'fallback' AND usd > 0 AND kind = 'client') AS n_paid
"""


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with Stack(tmp_path, PARTITIONS="4", DEMO_RATE="30") as stack:
        yield stack


def test_calls_go_in_and_rows_come_out_once(stack: Stack) -> None:
    """
    In the order of the file: Kafka and ClickHouse, the schema and the topics, our services, the simulated upstreams and
    the calls. Every health check says well, two workers share the partitions, what is lost or doubled is nothing, and
    every service ends by itself within its time.
    """
    stack.start_kafka()
    stack.start_clickhouse()
    (migrate,) = stack.up("migrate")
    (proxy,) = stack.up("proxy")
    workers = stack.up("ingest", int(stack.services["ingest"]["deploy"]["replicas"]))
    (alerts,) = stack.up("alerts")
    (api,) = stack.up("api")
    (upstreams,) = stack.up("upstreams")
    (load,) = stack.up("load")
    for instance in (proxy, *workers, alerts, api, upstreams):
        until(instance.is_healthy, 90, stack.said)

    def all_kinds() -> bool:
        rows = stack.ask(COUNTS)
        return bool(rows) and all(int(n) >= 10 for n in rows[0].values())

    until(all_kinds, 120, stack.said)
    shares = [
        float(line.split()[-1])
        for worker in workers
        for line in worker.get("9464", "/metrics")[1].splitlines()
        if line.startswith("gnomon_ingest_partitions ")
    ]
    assert len(shares) == 2
    assert min(shares) > 0
    assert sum(shares) == 4 + 3 + 3 + 1  # responses, attempts, heads, breakers
    _doors(stack)
    # The alert service sees the proxy's log and shipper, which are on another machine.
    at_the_proxy = f"name = 'shipper_up' AND subject = '{stack.mapped('proxy:4000')}'"
    watched = f"SELECT countIf(value = 1) AS n FROM gnomon.gauges WHERE {at_the_proxy}"
    until(lambda: stack.ask(watched) not in ([], [{"n": "0"}], [{"n": 0}]), 60, alerts.said)
    assert load.stop() == 0
    counted = re.fullmatch(r"gnomon demo: (\d+) calls, (\d+) failed", load.said().splitlines()[-1])
    assert counted is not None, load.said()
    # The upstream that is refused on purpose has no stand-in until the fallback's chain is known.
    assert int(counted[2]) < int(counted[1]) / 50, load.said()

    def is_whole() -> bool:
        status, text, messages = stack.cli("reconcile", "--format", "json")
        rows = json.loads(text or "[]")
        return (
            status == 0
            and bool(rows)
            and "on their way" not in messages
            and all(row["accepted"] == row["stored"] == row["distinct_stored"] for row in rows)
        )

    # What lies in the log is shipped, what is shipped is stored.
    assert proxy.stop() == 0, proxy.said()
    until(is_whole, 180, lambda: f"{stack.cli('reconcile')}\n{stack.said()}")
    (stored,) = stack.ask("SELECT count() AS n FROM gnomon.events")
    assert stack.ask("SELECT sum(accepted) AS n FROM gnomon.reconciliation") == [stored]
    for instance in (*workers, alerts, api):
        assert instance.stop() == 0, instance.said()
    assert upstreams.stop() == 130  # as after Ctrl-C
    assert migrate.process.returncode == 0


def _doors(stack: Stack) -> None:
    """Who has no secret is let in neither by the proxy nor by the API."""
    proxy, api = (next(one for one in stack.instances if one.service == name) for name in ("proxy", "api"))
    token = (stack.secrets / "api_token").read_text().strip()

    assert proxy.get("4000", "/main/evm/31337")[0] in (401, 405)
    assert api.get("8080", "/v1/spend")[0] == 401
    status, text = api.get("8080", "/v1/spend", Authorization=f"Bearer {token}")
    assert status == 200, text


def test_the_schema_comes_first(stack: Stack) -> None:
    """A worker that is started by hand before `migrate` waits, says for what, and is not well until it is there."""
    stack.start_kafka()
    stack.start_clickhouse()
    worker = Instance(stack, "ingest", 99)
    stack.instances.append(worker)
    until(lambda: "run `gnomon migrate`" in worker.said(), 60, worker.said)
    stack.up("migrate")
    until(worker.is_healthy, 120, stack.said)

    assert worker.stop() == 0
