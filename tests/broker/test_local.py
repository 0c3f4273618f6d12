"""The broker for tests is a real one, keeps what it was given over a kill, and leaves nothing behind."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from tests.broker import choice
from tests.broker.local import BrokerFailed, LocalBroker
from tests.broker.topics import make_topic
from tests.services import ROOT


@pytest.mark.kafka
@pytest.mark.deep
def test_what_a_broker_was_given_outlives_its_kill(own_broker: LocalBroker, topic_prefix: str) -> None:
    """A record that was acknowledged is there after kill -9 and a start, at the same address."""

    async def run() -> list[bytes | None]:
        topic = f"{topic_prefix}kept"
        await make_topic(own_broker.address, topic)
        for text in (b"before", b"after"):
            async with AIOKafkaProducer(bootstrap_servers=own_broker.address, acks="all") as producer:
                await producer.send_and_wait(topic, text)
            own_broker.kill()
            assert not own_broker.is_listening()
            own_broker.start()
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=own_broker.address, auto_offset_reset="earliest")
        async with consumer:
            return [(await consumer.getone()).value for _ in range(2)]

    assert asyncio.run(run()) == [b"before", b"after"]


@pytest.mark.kafka
@pytest.mark.usefixtures("java")
def test_a_connection_to_ourselves_is_no_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody listens, the kernel may choose the port that is asked for as the asking end's own."""

    def reach(address: tuple[str, int], timeout: float) -> socket.socket:
        one = socket.socket()
        one.bind(address)
        one.connect(address)
        return one

    monkeypatch.setattr(socket, "create_connection", reach)

    assert not LocalBroker(tmp_path / "broker").is_listening()


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    """The message of the failure has what the broker said; a port that is taken is named."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BrokerFailed, match=f"somebody listens on 127.0.0.1:{port}"):
            LocalBroker(tmp_path / "taken", port=port).start()
    with pytest.raises(BrokerFailed, match="Invalid value none"):
        LocalBroker(tmp_path / "broken", extra="node.id=none\n").start()


@pytest.mark.kafka
@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.deep)])
def test_the_broker_in_the_foreground_ends_with_its_command(tmp_path: Path, number: signal.Signals) -> None:
    """`make kafka` prints the address, and after SIGTERM or a kill no JVM is left."""
    command = subprocess.Popen(
        [sys.executable, "-m", "tests.broker", "--port", "0"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert command.stdout is not None
    with command.stdout:
        line = command.stdout.readline()
        assert line.startswith("kafka: ready at 127.0.0.1:")
        port = int(line.rpartition(":")[2])
        command.send_signal(number)
        command.wait(20)
    if number is signal.SIGTERM:
        assert command.returncode == 0
        assert list(tmp_path.iterdir()) == []
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) != 0:
                return
        time.sleep(0.05)
    pytest.fail("the broker outlived its command")


def test_a_named_broker_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address in GNOMON_TEST_KAFKA is used, and one where nobody listens is named."""
    monkeypatch.setenv(choice.VARIABLE, "127.0.0.1:1")

    assert choice.kind() == "named"
    assert "no broker at 127.0.0.1:1 (GNOMON_TEST_KAFKA)" in (choice.missing() or "")


def test_without_java_the_reason_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Java or without the jars is told the command."""
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    monkeypatch.setattr(choice, "has_docker", lambda: False)
    monkeypatch.setenv("PATH", "/nonexistent")

    assert choice.missing() == (
        "no broker: no Java 17 or newer: apt-get install openjdk-17-jre-headless; or set GNOMON_TEST_KAFKA=host:port"
    )
