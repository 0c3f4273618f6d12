"""
Which broker a run of the tests uses: the first of these that is there.

1. the one at `GNOMON_TEST_KAFKA` (`host:port`): somebody else's, only topics with our prefix are made there;
2. a container, where a Docker engine answers;
3. a JVM on this machine (`tests.broker.local`).
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from tests.broker import jars
from tests.broker.local import LocalBroker
from tests.ports import free_port

VARIABLE: Final = "GNOMON_TEST_KAFKA"
IMAGE: Final = "apache/kafka:4.1.0"
CONTAINER_SECONDS: Final = 120.0
Kind = Literal["named", "container", "local"]


def kind() -> Kind:
    """Return which one a run would use, whether or not it works."""
    if os.environ.get(VARIABLE):
        return "named"
    return "container" if has_docker() else "local"


def missing() -> str | None:
    """Return why there is no broker and how to get one, or None."""
    match kind():
        case "named":
            return _unreachable(os.environ[VARIABLE])
        case "container":
            return None
        case "local":
            why = jars.missing()
            return f"no broker: {why}; or set {VARIABLE}=host:port" if why else None


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Give the address of the broker that `kind` names, started if it is ours, and stop that at the end."""
    match kind():
        case "named":
            yield os.environ[VARIABLE]
        case "container":
            with _container() as address:
                yield address
        case "local":
            with LocalBroker(folder) as broker:
                yield broker.address


def has_docker() -> bool:
    """
    Return whether a Docker engine answers at `DOCKER_HOST`; the client alone is none.

    By hand: the package `docker` leaves its socket open where there is no engine, which is an error in this suite.
    """
    url = urlsplit(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"))
    is_path = url.scheme == "unix"
    try:
        with socket.socket(socket.AF_UNIX if is_path else socket.AF_INET) as one:
            one.settimeout(5)
            one.connect(url.path if is_path else (url.hostname, url.port))
            one.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b" 200 " in one.recv(4096).partition(b"\r\n")[0]
    except OSError:
        return False


@contextmanager
def _container() -> Iterator[str]:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.wait_strategies import LogMessageWaitStrategy

    port = free_port()
    container = (
        DockerContainer(IMAGE)
        .with_bind_ports(9092, port)
        .with_env("KAFKA_NODE_ID", "1")
        .with_env("KAFKA_PROCESS_ROLES", "broker,controller")
        .with_env("KAFKA_CONTROLLER_QUORUM_VOTERS", "1@localhost:9093")
        .with_env("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER")
        .with_env("KAFKA_LISTENERS", "PLAINTEXT://:9092,CONTROLLER://:9093")
        .with_env("KAFKA_ADVERTISED_LISTENERS", f"PLAINTEXT://127.0.0.1:{port}")
        .with_env("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT")
        .with_env("KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR", "1")
        .with_env("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
        .with_env("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1")
        .with_env("KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "0")
        .with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false")
        .with_env("KAFKA_HEAP_OPTS", "-Xms128m -Xmx512m")
        .waiting_for(LogMessageWaitStrategy("Kafka Server started").with_startup_timeout(int(CONTAINER_SECONDS)))
    )
    with container:
        yield f"127.0.0.1:{port}"


def _unreachable(address: str) -> str | None:
    host, _, port = address.split(",")[0].rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=3):
            return None
    except (OSError, ValueError) as error:
        return f"no broker at {address} ({VARIABLE}): {error}"
