"""`gnomon alerts`: by hand over an engine, and as a child of `gnomon up` from the call to the webhook."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from analytics.store import Store
from gnomon.supervisor import command
from tests.analytics.alerting.fakes import FakeReceiver, serving
from tests.analytics.alerting.schemas import check_webhook
from tests.analytics.conftest import clickhouse  # noqa: F401 - a fixture
from tests.analytics.server import ClickHouse
from tests.cli.test_up import CHAIN_ID, Up, ask, children_of, node, until, up  # noqa: F401 - fixtures

SQL = (
    "SELECT account AS subject, sum(usd) AS value FROM gnomon.attempts WHERE tier = 'fallback' AND kind = 'client' "
    "AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)} GROUP BY account"
)


def gnomon(*arguments: str, config: Path) -> subprocess.CompletedProcess[str]:
    line = [*command("alerts", *arguments), "--config", str(config), "--data", str(config.parent)]
    return subprocess.run(line, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def config(clickhouse: ClickHouse) -> Path:  # noqa: F811
    """A configuration that names a running engine, with a rule of its own and rows that it is about."""
    file = clickhouse.data_dir / "alerts.yaml"
    file.write_text(
        clickhouse.config.read_text().rstrip().removesuffix("}")
        + ", alerts: {rules: [rules.yaml], receivers: [{name: ops, webhook: {url: 'http://127.0.0.1:1'}}]}}\n"
    )
    rule = {"name": "Mine", "sql": SQL, "window": "10m", "above": 5.0, "for": "30s", "receivers": ["ops"]}
    (clickhouse.data_dir / "rules.yaml").write_text(json.dumps({"rules": [rule]}))
    at = datetime(2071, 1, 1, 10, tzinfo=UTC)
    with clickhouse.store() as store:
        rows = [(at + timedelta(seconds=s), "acme", "fallback", "client", Decimal(3)) for s in (0, 60)]
        store.insert("gnomon_core.attempts", ("at", "account", "tier", "kind", "usd"), rows)
    return file


@pytest.mark.clickhouse
@pytest.mark.parametrize(
    ("when", "state", "value"),
    [
        ("2071-01-01T10:00:30Z", "inactive", 3.0),
        ("2071-01-01T10:01:15Z", "pending", 6.0),
        ("2071-01-01T10:02:00Z", "firing", 6.0),
        ("2071-01-01T10:10:30Z", "inactive", 3.0),
    ],
)
def test_a_dry_run_says_what_would_have_been(config: Path, when: str, state: str, value: float) -> None:
    """Through the rule's `for`; nobody is told and nothing is written."""
    ran = gnomon("test", "Mine", "--at", when, "--format", "json", config=config)
    (row,) = json.loads(ran.stdout)

    assert (ran.returncode, row["state"], row["subject"], row["value"], row["threshold"]) == (
        0,
        state,
        "acme",
        value,
        5,
    )
    assert row["query"] == f"gnomon alerts test Mine --at {row['at']}"


@pytest.mark.clickhouse
def test_a_rule_that_is_not_there_is_told(config: Path) -> None:
    """With what comes near."""
    ran = gnomon("test", "FallbackSpent", config=config)

    assert ran.returncode == 2
    assert "did you mean FallbackSpend" in ran.stderr


@pytest.mark.clickhouse
def test_a_silence_is_made_shown_and_taken_back(config: Path) -> None:
    """By the id that was printed."""
    made = gnomon("silence", "HeadLag", "--subject", "evm:1/*", "--for", "2h", "--comment", "why", config=config)
    name = made.stdout.partition(":")[0]
    listed = {row["id"]: row for row in json.loads(gnomon("silences", "--format", "json", config=config).stdout)}
    assert (listed[name]["rule"], listed[name]["subject"], listed[name]["comment"]) == ("HeadLag", "evm:1/*", "why")
    starts_at, ends_at = listed[name]["starts_at"], listed[name]["ends_at"]
    assert (len(starts_at), starts_at[-1], ends_at[-1]) == (len("2026-01-31T00:00:00Z"), "Z", "Z")
    assert datetime.fromisoformat(ends_at) - datetime.fromisoformat(starts_at) == timedelta(hours=2)
    assert gnomon("unsilence", name, config=config).returncode == 0

    assert gnomon("silences", config=config).stdout.endswith("(no rows)\n")
    assert gnomon("unsilence", name, config=config).returncode == 1
    assert gnomon("silence", "HeadLagg", config=config).returncode == 2


@pytest.mark.clickhouse
def test_rules_are_listed_and_exported(config: Path) -> None:
    """The user's beside the default ones."""
    rules = {row["rule"]: row for row in json.loads(gnomon("list", "--format", "json", config=config).stdout)}

    assert (rules["Mine"]["receivers"], rules["Mine"]["default"]) == ("ops", False)
    assert rules["FallbackSpend"]["default"] is True
    assert "alert: Mine" in gnomon("export", config=config).stdout


@pytest.mark.clickhouse
def test_one_service_for_each_data_folder(config: Path) -> None:
    """The second says who has it; both would tell everything twice. SIGTERM ends it with status 0."""
    line = [*command("alerts"), "--config", str(config), "--data", str(config.parent)]
    first = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert first.stdout is not None
        assert first.stdout.readline().startswith("gnomon alerts: ready at http://127.0.0.1:")
        second = gnomon(config=config)
        assert second.returncode == 1
        assert f"pid {first.pid} (gnomon alerts)" in second.stderr
    finally:
        first.terminate()
        status = first.wait(20)
        assert first.stdout is not None
        first.stdout.close()
    assert status == 0


def test_a_rule_file_with_a_slip_starts_nothing(up: Up) -> None:  # noqa: F811
    """Status 2 and the place, before any service runs."""
    (up.folder / "rules.yaml").write_text("rules: [{name: A, sql: S}]")
    up.configure("http://127.0.0.1:1", alerts={"rules": ["rules.yaml"]})

    assert up.start().wait(30) == 2
    assert "rules[0] (A): one of `above` and `below` is needed" in up.stderr()


@pytest.fixture
def hook() -> Iterator[FakeReceiver]:
    with serving(FakeReceiver(check_webhook)) as it:
        yield it


def configure(it: Up, primary: str, fallback: str, hook: FakeReceiver, window: str) -> None:
    """A primary that refuses connections, a paid fallback, a rule with the contract's `every`, a dead receiver."""
    rule: dict[str, Any] = {
        "name": "Spend", "sql": SQL, "window": window, "every": "15s", "above": 0.00002, "for": "0s",
        "severity": "page", "receivers": ["dead", "ops"], "runbook": "look",
    }  # fmt: skip
    (it.folder / "rules.yaml").write_text(json.dumps({"rules": [rule]}))
    evm = {"chainId": CHAIN_ID}
    upstreams = [
        {"id": "p1", "endpoint": primary, "evm": evm},
        {
            "id": "f1",
            "endpoint": fallback,
            "evm": evm,
            "vendor": "alchemy",
            "account": "acme",
            "tags": ["tier:fallback"],
        },
    ]
    own = {
        "proxy": {"port": 0}, "api": {"port": 0}, "clickhouse": {"url": "http://127.0.0.1:0"},
        "alerts": {"rules": ["rules.yaml"], "receivers": [
            {"name": "ops", "webhook": {"url": f"{hook.url}/alerts"}}, {"name": "dead", "webhook": {"url": primary}},
        ]},
    }  # fmt: skip
    it.config.write_text(json.dumps({"projects": [{"id": "main", "upstreams": upstreams}], "gnomon": own}))


def spoken(hook: FakeReceiver) -> list[str]:
    """Return the changes of the rule; one that was told again, by a service killed before it wrote that down, once."""
    return [state for state, _ in dict.fromkeys((b["state"], b["at"]) for b in hook.bodies if b["rule"] == "Spend")]


@pytest.mark.e2e
@pytest.mark.timeout(240)
def test_spend_reaches_a_webhook_in_time_and_once(up: Up, node: str, hook: FakeReceiver) -> None:  # noqa: F811
    """
    Within 15 s of the crossing, beside a dead receiver; a killed service does not fire again; it resolves.

    `history` says what became of it: the dead receiver keeps `delivered` false.
    """
    configure(up, "http://127.0.0.1:1", node, hook, "25s")
    process = up.start()
    rpc = up.address(r"(http://127\.0\.0\.1:\d+/main/evm/31337)")
    sql = up.address(r"SQL +(http://127\.0\.0\.1:\d+)")
    until(lambda: ask(rpc) == "0x2a", lambda: up.stderr()[-3000:])
    for _ in range(3):
        ask(rpc)
    crossed_at = time.time()
    until(lambda: spoken(hook) == ["firing"], lambda: (hook.bodies, up.stderr()[-3000:]), 15.0)
    told_at = next(at for at, _, _, body in hook.taken if body["rule"] == "Spend")
    os.kill(children_of(up)["gnomon alerts"], signal.SIGKILL)
    until(lambda: spoken(hook) == ["firing", "resolved"], lambda: (hook.bodies, up.stderr()[-3000:]), 60.0)
    with Store.connect(sql) as store:
        rows = store.rows("SELECT state, subject, delivered FROM gnomon.alerts WHERE rule = 'Spend' ORDER BY at")
    process.terminate()

    assert told_at - crossed_at < 15
    assert rows == [("firing", "acme", False), ("resolved", "acme", False)]
    assert hook.refusals == []
    assert process.wait(40) == 0


# --- a change while it runs -------------------------------------------------------------------------------------------

GAUGE = (
    "SELECT subject, max(value) AS value FROM gnomon.gauges WHERE name = '{name}' "
    "AND at >= {{from:DateTime64(3)}} AND at < {{to:DateTime64(3)}} GROUP BY subject"
)


class Alerts:
    """`gnomon alerts` processes over one engine, each with a data folder of its own, and what they say."""

    def __init__(self, engine: ClickHouse, folder: Path, hook: FakeReceiver, name: str) -> None:
        self._engine = engine
        self._folder = folder
        self._hook = hook
        self.gauge = name
        self._processes: list[subprocess.Popen[str]] = []
        self.config = folder / "gnomon.yaml"
        (folder / "password").write_text(engine.writer.password)

    def configure(self, above: float = 5.0, *, text: str = "", path: str = "/alerts") -> None:
        """Write a rule over a gauge of its own, and a configuration that names the engine and the webhook."""
        rule = {"name": "Mine", "sql": GAUGE.format(name=self.gauge), "window": "10m", "every": "1s", "above": above,
                "receivers": ["ops"]}  # fmt: skip
        (self._folder / "rules.yaml").write_text(text or json.dumps({"rules": [rule]}))
        upstream = {"id": "p1", "endpoint": "http://127.0.0.1:1", "evm": {"chainId": 31337}}
        own = {
            "clickhouse": {"url": self._engine.url, "user": self._engine.writer.user,
                           "passwordFile": str(self._folder / "password")},
            "alerts": {"rules": ["rules.yaml"],
                       "receivers": [{"name": "ops", "webhook": {"url": f"{self._hook.url}{path}"}}]},
        }  # fmt: skip
        self.config.write_text(json.dumps({"projects": [{"id": "main", "upstreams": [upstream]}], "gnomon": own}))

    def start(self, name: str) -> "subprocess.Popen[str]":
        """Start one over a data folder; return when it is ready."""
        data = self._folder / name
        data.mkdir(exist_ok=True)
        line = [sys.executable, "-m", "tests.analytics.alerting.impatient", "alerts", "--config", str(self.config),
                "--data", str(data)]  # fmt: skip
        with (self._folder / f"{name}.log").open("ab") as output:
            process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=output, text=True)
        self._processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("gnomon alerts: ready at"), self.said(name)
        return process

    def said(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def spend(self, subject: str, value: float) -> None:
        """Have the rule see a value from now on."""
        with self._engine.store() as store:
            store.insert("gnomon_core.gauges", ("at", "name", "subject", "value"),
                         [(datetime.now(UTC), self.gauge, subject, value)])  # fmt: skip

    def n_running(self, word: str) -> int:
        """Return how many statements with this word run in the engine."""
        asked = f"SELECT count() FROM system.processes WHERE query LIKE '%{word}%' AND query NOT LIKE '%processes%'"
        with self._engine.store() as store:
            return int(store.rows(asked)[0][0])

    def told(self) -> list[tuple[str, str]]:
        """Return subject and state of everything that the webhook took, in order."""
        return [(body["subject"], body["state"]) for body in self._hook.bodies if body["rule"] == "Mine"]

    def stop(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait(20)
            if process.stdout is not None:
                process.stdout.close()


@pytest.fixture
def alerts(
    clickhouse: ClickHouse,  # noqa: F811
    tmp_path: Path,
    hook: FakeReceiver,
    request: pytest.FixtureRequest,
) -> Iterator[Alerts]:
    with clickhouse.store() as store:
        for table in ("alert_leases", "alerts", "alert_deliveries"):
            store.command(f"TRUNCATE TABLE gnomon_core.{table}")
    it = Alerts(clickhouse, tmp_path, hook, request.node.name)
    it.configure()
    try:
        yield it
    finally:
        it.stop()


@pytest.mark.clickhouse
@pytest.mark.timeout(240)
def test_rules_are_read_again_at_sighup(alerts: Alerts) -> None:
    """Other thresholds and addresses; what fires is not told again; a bad file is told and changes nothing."""
    process = alerts.start("a")
    alerts.spend("x", 6.0)
    until(lambda: alerts.told() == [("x", "firing")], lambda: alerts.said("a"), 60.0)

    alerts.configure(3.0, path="/elsewhere")
    process.send_signal(signal.SIGHUP)
    until(lambda: "configuration reloaded" in alerts.said("a"), lambda: alerts.said("a"), 60.0)
    alerts.spend("y", 4.0)
    until(lambda: len(alerts.told()) == 2, lambda: alerts.said("a"), 60.0)

    alerts.configure(text="rules: [{name: Mine, sql: S}]")
    process.send_signal(signal.SIGHUP)
    until(lambda: "the old one stays in force" in alerts.said("a"), lambda: alerts.said("a"), 60.0)
    assert "rules[0] (Mine): one of `above` and `below` is needed" in alerts.said("a")
    alerts.spend("z", 4.0)
    until(lambda: len(alerts.told()) == 3, lambda: alerts.said("a"), 60.0)

    alerts.configure(5.0)
    process.send_signal(signal.SIGHUP)
    until(lambda: len(alerts.told()) == 5, lambda: alerts.said("a"), 60.0)
    process.terminate()
    assert process.wait(30) == 0
    assert alerts.told()[:3] == [("x", "firing"), ("y", "firing"), ("z", "firing")]
    assert sorted(alerts.told()[3:]) == [("y", "resolved"), ("z", "resolved")]
    paths = [path for _, path, _, body in alerts._hook.taken if body["rule"] == "Mine"]
    assert paths == ["/alerts", "/elsewhere", "/elsewhere", "/alerts", "/alerts"]


@pytest.mark.clickhouse
@pytest.mark.timeout(240)
def test_a_slow_statement_does_not_hold_up_the_end(alerts: Alerts) -> None:
    """A rule over too much must not make whoever stops the service kill it."""
    slow = (
        "SELECT 'a' AS subject, count() AS value FROM numbers(900000000) WHERE sipHash64(repeat(hex(number), 99)) = 1"
    )
    rule = {"name": "Mine", "sql": slow, "window": "10m", "every": "1s", "above": 5, "receivers": ["ops"]}
    alerts.configure(text=json.dumps({"rules": [rule]}))
    process = alerts.start("a")
    until(lambda: alerts.n_running("sipHash64") == 1, lambda: alerts.said("a"), 60.0)

    process.terminate()
    assert process.wait(10) == 0
    assert "stopped with a rule's statement running" in alerts.said("a")
    until(lambda: alerts.n_running("sipHash64") == 0, lambda: "still running in ClickHouse", 30.0)


@pytest.mark.clickhouse
@pytest.mark.timeout(240)
def test_of_two_services_one_tells(alerts: Alerts, hook: FakeReceiver) -> None:
    """When it is killed the other goes on: with what was not delivered, and with what fires, told by the first."""
    first = alerts.start("a")
    until(lambda: "this service tells of alerts" in alerts.said("a"), lambda: alerts.said("a"), 60.0)
    alerts.start("b")
    until(lambda: "standing by" in alerts.said("b"), lambda: alerts.said("b"), 60.0)
    alerts.spend("x", 6.0)
    until(lambda: alerts.told() == [("x", "firing")], lambda: alerts.said("a"), 60.0)
    until(lambda: "delivered receiver=ops" in alerts.said("a"), lambda: alerts.said("a"), 60.0)
    hook.status = 503
    alerts.spend("y", 6.0)
    until(lambda: hook.n_refused > 0, lambda: alerts.said("a"), 60.0)

    first.kill()
    hook.status = 200
    until(lambda: alerts.told() == [("x", "firing"), ("y", "firing")], lambda: alerts.said("b"), 90.0)
    alerts.spend("z", 6.0)
    until(lambda: len(alerts.told()) == 3, lambda: alerts.said("b"), 60.0)

    assert "this service tells of alerts" in alerts.said("b")
    assert alerts.told() == [("x", "firing"), ("y", "firing"), ("z", "firing")]


@pytest.mark.clickhouse
@pytest.mark.timeout(240)
def test_a_service_that_was_asleep_stands_by(alerts: Alerts) -> None:
    """It wakes up in the midst of its work, and tells nothing that the other has told."""
    first = alerts.start("a")
    until(lambda: "this service tells of alerts" in alerts.said("a"), lambda: alerts.said("a"), 60.0)
    second = alerts.start("b")
    until(lambda: "standing by" in alerts.said("b"), lambda: alerts.said("b"), 60.0)
    first.send_signal(signal.SIGSTOP)
    alerts.spend("x", 6.0)
    until(lambda: alerts.told() == [("x", "firing")], lambda: alerts.said("b"), 90.0)
    first.send_signal(signal.SIGCONT)
    until(lambda: "standing by" in alerts.said("a"), lambda: alerts.said("a"), 60.0)
    alerts.spend("y", 6.0)
    until(lambda: len(alerts.told()) == 2, lambda: alerts.said("b"), 60.0)

    second.terminate()
    assert second.wait(30) == 0
    alerts.spend("z", 6.0)
    until(lambda: len(alerts.told()) == 3, lambda: alerts.said("a"), 60.0)
    assert alerts.told() == [("x", "firing"), ("y", "firing"), ("z", "firing")]
