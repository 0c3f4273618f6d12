"""`gnomon proxy` with Kafka: its shipper lives and dies with it, and what clients were told is in Kafka."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analytics.alerting.gauges import log_samples, proxy_samples
from gnomon.config.load import load
from gnomon.events.codec import decode
from gnomon.events.contract import PrimaryResponse
from gnomon.events.log import Consumer
from gnomon.events.topics import RESPONSES
from gnomon.kafka.migrate import migrate
from tests.cli.test_proxy_signals import Running, proxy, until
from tests.proxy.scripted import PATH, Upstream, configuration
from tests.proxy.shipper.shipping import children, pid_is_alive, stored

pytestmark = pytest.mark.timeout(90)
BODY = b'{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x1","0x10"]}'


def with_kafka(config: str, kafka: dict[str, Any]) -> str:
    """Return the configuration with Kafka."""
    whole = json.loads(config)
    whole["gnomon"]["events"] = {"kafka": kafka}
    return json.dumps(whole)


async def ask(port: int, n: int, target: str = PATH, body: bytes = BODY) -> list[bytes]:
    """Return `n` answers."""
    answers = []
    for _ in range(n):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        method = b"POST" if body else b"GET"
        writer.write(
            method + f" {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
            + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )  # fmt: skip
        answers.append(await reader.read())
        writer.close()
    return answers


async def sample(port: int, name: str) -> float | None:
    """Return a metric of the proxy, None where it is not shown."""
    text = (await ask(port, 1, "/metrics", b""))[0].decode()
    return next((float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"{name} ")), None)


async def shown(port: int, name: str, condition: Callable[[float], bool]) -> None:
    """Return when the proxy shows a metric with a value as wanted."""
    async with asyncio.timeout(20):
        while True:
            value = await sample(port, name)
            if value is not None and condition(value):
                return
            await asyncio.sleep(0.1)


async def shipper_of(running: Running) -> int:
    """Return the process id of the shipper that is at work."""
    async with asyncio.timeout(20):
        while True:
            if found := children(running.process.pid, b"shipper"):
                return found[0]
            await asyncio.sleep(0.02)


async def _whole_life(folder: Path, address: str, prefix: str) -> None:
    node = await Upstream().start()
    config = with_kafka(configuration([node]), {"bootstrapServers": address, "topicPrefix": prefix})
    async with proxy(config, folder) as running:
        await migrate(load(folder / "gnomon.yaml", environment={}).gnomon, lambda line: None, wait_seconds=10)
        assert all(b"200 OK" in answer for answer in await ask(running.port, 20))
        await shown(running.port, "gnomon_shipper_events_total", lambda n: n > 0)
        assert await sample(running.port, "gnomon_shipper_up") == 1
        first = await shipper_of(running)
        os.kill(first, signal.SIGKILL)
        await ask(running.port, 20)
        await until(lambda: not pid_is_alive(first))
        second = await shipper_of(running)
        assert second != first
        await ask(running.port, 7)
        running.signal(signal.SIGTERM)
        status, messages = await running.ended()
        assert status == 0, messages
        assert "the shipper ended status=-9" in messages
        assert not pid_is_alive(second)
        n_events = len(running.events())
        consumer = Consumer(folder / "data" / "events" / "0", "shipper")
        assert consumer.get() == n_events
        consumer.close()
    await node.stop()
    found = await stored(address, prefix)
    values = [value for records in found.values() for _, value in records]
    events = {decode(value).event_id: decode(value) for value in values}
    requests = [event for event in events.values() if isinstance(event, PrimaryResponse)]

    assert len(events) == n_events
    assert len(requests) == 47
    assert {topic for topic, _ in found if any(found[t, p] for t, p in found if t == topic)} >= {RESPONSES}


@pytest.mark.kafka
def test_what_clients_were_told_is_in_kafka_when_the_proxy_has_ended(
    broker: str, topic_prefix: str, tmp_path: Path
) -> None:
    """
    The proxy starts the shipper, starts another one when it is killed, shows its metrics, and at SIGTERM ends after the
    shipper has sent the last event: every one is there.
    """
    asyncio.run(_whole_life(tmp_path, broker, topic_prefix))


async def _killed(folder: Path) -> None:
    node = await Upstream().start()
    async with proxy(with_kafka(configuration([node]), {"bootstrapServers": "127.0.0.1:1"}), folder) as running:
        pid = await shipper_of(running)
        assert all(b"200 OK" in answer for answer in await ask(running.port, 3))
        running.signal(signal.SIGKILL)
        await running.process.wait()
        await until(lambda: not pid_is_alive(pid))
    await node.stop()


def test_without_kafka_the_proxy_serves_and_a_killed_one_takes_its_shipper_along(tmp_path: Path) -> None:
    """Nothing waits for Kafka, and no shipper is left behind."""
    asyncio.run(_killed(tmp_path))


async def _stopped(folder: Path) -> tuple[int | None, str, float]:
    node = await Upstream().start()
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        async with proxy(with_kafka(configuration([node]), {"bootstrapServers": address}), folder) as running:
            await ask(running.port, 3)
            loop = asyncio.get_running_loop()
            await shipper_of(running)
            await shown(running.port, "gnomon_shipper_up", lambda up: up == 0)
            before = loop.time()
            running.signal(signal.SIGTERM)
            status, messages = await running.ended()
    await node.stop()
    return status, messages, loop.time() - before


def test_a_stop_without_kafka_is_quick_and_says_what_stays(tmp_path: Path) -> None:
    """The events stay in the log for the next start."""
    status, messages, seconds = asyncio.run(_stopped(tmp_path))

    assert status == 0, messages
    assert "Kafka takes no events, the log keeps them" in messages
    assert "not all was sent; it stays in the log" in messages
    assert seconds < 5


async def _sampled(folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    node = await Upstream().start()
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        async with proxy(with_kafka(configuration([node]), {"bootstrapServers": address}), folder) as running:
            await ask(running.port, 9)
            await shown(running.port, "gnomon_shipper_up", lambda up: up == 0)
            await shown(running.port, 'gnomon_log_lag_records{consumer="shipper"}', lambda n: n >= 9)
            text = (await ask(running.port, 1, "/metrics", b""))[0].decode()
            here = log_samples(folder / "data" / "events", 1 << 30)
    await node.stop()
    return (
        {name: value for name, _, value in proxy_samples("proxy:4000", text)},
        {name: value for name, _, value in here},
    )


def test_a_shipper_whose_kafka_is_away_reaches_the_alerts(tmp_path: Path) -> None:
    """By the proxy's metrics as by its log on this machine: down, and how many events wait."""
    far, here = asyncio.run(_sampled(tmp_path))

    assert far.keys() == here.keys()
    assert (far["shipper_up"], here["shipper_up"]) == (0, 0)
    assert far["shipper_lag_events"] >= 9
    assert here["shipper_lag_events"] >= 9
    assert far["log_written_events"] >= far["shipper_lag_events"] > far["log_consumed_events"] == 0


def test_settings_of_kafka_that_cannot_be_used_stop_the_start(tmp_path: Path) -> None:
    """Status 2 and the key, before anything listens."""

    async def run() -> tuple[int | None, str]:
        node = await Upstream().start()
        config = with_kafka(configuration([node]), {"bootstrapServers": "127.0.0.1:1", "security": {"protocol": "X"}})
        (tmp_path / "gnomon.yaml").write_text(config)
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "gnomon",
                "proxy",
                "--config",
                str(tmp_path / "gnomon.yaml"),
                "--data",
                str(tmp_path),
            ),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        _, messages = await asyncio.wait_for(process.communicate(), 30)
        await node.stop()
        return process.returncode, messages.decode()

    status, messages = asyncio.run(run())

    assert status == 2
    assert "gnomon.events.kafka.security.protocol" in messages
    assert "PLAINTEXT" in messages
