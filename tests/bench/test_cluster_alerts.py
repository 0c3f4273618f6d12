"""Kafka away from a cluster under load, from the broker's death to the webhook and back."""

import time
from pathlib import Path

import pytest

from bench.cluster_chaos import upstreams
from bench.cluster_chaos.clients import Clients
from bench.cluster_chaos.cluster import Cluster, wait_for
from bench.cluster_chaos.traffic import Traffic
from tests.analytics.alerting.fakes import FakeReceiver, serving
from tests.analytics.alerting.schemas import check_webhook


@pytest.mark.deep
@pytest.mark.kafka
@pytest.mark.clickhouse
@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_a_broker_that_is_away_reaches_a_webhook_and_its_return_too(java: None, tmp_path: Path) -> None:
    """The alert service knows of it by the proxy's metrics alone; nothing else about logs fires."""
    hook = FakeReceiver(check_webhook)
    with serving(hook), Traffic() as traffic, Cluster(tmp_path) as cluster:
        (tmp_path / "rules.yaml").write_text("defaults: {receivers: [ops]}\n")
        own = {
            "alerts": {
                "proxies": [f"http://127.0.0.1:{cluster.proxy_port}"],
                "rules": ["rules.yaml"],
                "receivers": [{"name": "ops", "webhook": {"url": hook.url}}],
            }
        }
        endpoints = traffic.enter(upstreams.listening(upstreams.Calls()))
        cluster.begin(endpoints, cluster.clickhouse_port, 1, own)
        clients = Clients(cluster.proxy_port, 20.0)
        asking = traffic.start(clients.run())
        alerts = cluster.alerts()
        alerts.start()

        def told() -> list[tuple[str, str, str]]:
            return [
                (b["rule"], b["state"], b["subject"])
                for b in hook.bodies
                if b["rule"].startswith(("Ship", "Log", "Ev"))
            ]

        try:
            time.sleep(30)
            assert told() == []
            subject = f"127.0.0.1:{cluster.proxy_port}"
            went_at = time.monotonic()
            cluster.broker.kill()
            firing = ("ShipperStalled", "firing", subject)
            wait_for(lambda: firing in told(), 180, lambda: str((told(), alerts.said()[-2000:])))
            fired_seconds = time.monotonic() - went_at
            cluster.broker.start()
            back_at = time.monotonic()
            wait_for(
                lambda: ("ShipperStalled", "resolved", subject) in told(),
                180,
                lambda: str((told(), alerts.said()[-2000:])),
            )
            print(f"fired after {fired_seconds:.0f} s, resolved {time.monotonic() - back_at:.0f} s after its return")
        finally:
            clients.stop()
            asking.result()
            alerts.stop()
