"""TLS and SASL as configured reach a real broker; a wrong password or an unknown certificate is named."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from gnomon.config.model import EventSettings, Gnomon, KafkaSettings
from gnomon.kafka.errors import KafkaError
from gnomon.kafka.migrate import plan
from tests.broker.local import LocalBroker
from tests.proxy.shipper.shipping import Shipping
from tests.services import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]

deep = pytest.mark.deep
TLS = ROOT / "tests" / "tls"
SECURE = """
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller_port,SECURE://127.0.0.1:$second_port
advertised.listeners=PLAINTEXT://127.0.0.1:$port,SECURE://127.0.0.1:$second_port
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL
inter.broker.listener.name=PLAINTEXT
listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  user_gnomon="hunter2";
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location=$folder/keystore.pem
"""


@pytest.fixture(scope="module")
def secure(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker that has a second listener, with TLS and SASL."""
    folder = tmp_path_factory.mktemp("secure") / "broker"
    folder.mkdir()
    (folder / "keystore.pem").write_text((TLS / "key.pem").read_text() + (TLS / "cert.pem").read_text())
    with LocalBroker(folder, extra=SECURE, scram="SCRAM-SHA-512=[name=gnomon,password=hunter2]") as broker:
        yield broker


def security(**other: str) -> dict[str, str]:
    return {"protocol": "SASL_SSL", "ca": str(TLS / "cert.pem"), "user": "gnomon", "password": "hunter2", **other}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", pytest.param("PLAIN", marks=deep)])
def test_topics_are_made_and_events_shipped(
    secure: LocalBroker, tmp_path: Path, topic_prefix: str, mechanism: str
) -> None:
    """By `gnomon migrate` and by the shipper, with the password from a file."""
    password = tmp_path / "password"
    password.write_text("hunter2\n")
    members = security(sasl=mechanism, passwordFile=str(password))
    del members["password"]
    text = ", ".join(f"{key}: '{value}'" for key, value in members.items())
    address = f"127.0.0.1:{secure.second_port}"
    one = Shipping(tmp_path / "shipping", address, topic_prefix, more=f", security: {{{text}}}")
    try:
        one.migrate()
        one.append(300)
        one.start()
        one.wait_shipped()
        one.stop()
        one.address = secure.address

        assert one.check() == {}
    finally:
        one.close()


@pytest.mark.parametrize(
    ("members", "message"),
    [
        pytest.param(security(password="wrong"), "Authentication failed", id="wrong password"),
        pytest.param({**security(), "ca": ""}, "certificate", id="unknown certificate"),
        pytest.param(
            security(user="nobody", sasl="SCRAM-SHA-512"), "Authentication failed", id="unknown user", marks=deep
        ),
        pytest.param(security(sasl="SCRAM-SHA-256"), "UnsupportedSasl", id="another mechanism", marks=deep),
        pytest.param({"protocol": "PLAINTEXT"}, "", id="no security at all", marks=deep),
    ],
)
def test_what_the_broker_does_not_accept_is_an_error(
    secure: LocalBroker, members: dict[str, str], message: str
) -> None:
    """Within the time, and with what there is to say."""
    address = f"127.0.0.1:{secure.second_port}"
    kafka = KafkaSettings(bootstrap_servers=address, security={k: v for k, v in members.items() if v})

    with pytest.raises(KafkaError) as raised:
        asyncio.run(plan(Gnomon(events=EventSettings(kafka=kafka)), wait_seconds=0))

    assert address in str(raised.value)
    assert message in str(raised.value)
    assert "hunter2" not in str(raised.value)
