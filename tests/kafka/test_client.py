"""Settings of security become the client's arguments, or a message that names the key."""

from pathlib import Path

import pytest

from gnomon.config.model import KafkaSettings
from gnomon.kafka import client
from gnomon.kafka.client import arguments
from gnomon.kafka.errors import KafkaSettingsWrong
from tests.services import ROOT

TLS = ROOT / "tests" / "tls"


def of(**security: str) -> dict[str, object]:
    return arguments(KafkaSettings(bootstrap_servers="a:1,b:2", security=security))


def test_without_security_it_is_plain_text() -> None:
    """The default of Kafka."""
    assert of() == {"bootstrap_servers": "a:1,b:2", "security_protocol": "PLAINTEXT"}


def test_a_password_comes_from_its_file(tmp_path: Path) -> None:
    """Without the line's end."""
    file = tmp_path / "password"
    file.write_text("hunter2\n")
    found = of(protocol="sasl_plaintext", sasl="scram-sha-512", user="gnomon", passwordFile=str(file))

    assert found == {
        "bootstrap_servers": "a:1,b:2",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "gnomon",
        "sasl_plain_password": "hunter2",
    }


def test_tls_trusts_the_ca_that_is_named() -> None:
    """And shows our own certificate where one is named."""
    context = of(protocol="SSL", ca=str(TLS / "cert.pem"), cert=str(TLS / "cert.pem"), key=str(TLS / "key.pem"))

    assert "ssl_context" in context


@pytest.mark.parametrize("package", ["aiokafka", "cramjam"])
def test_a_client_that_is_not_installed_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    monkeypatch.setattr(client, "find_spec", lambda name: None if name == package else object())
    with pytest.raises(KafkaSettingsWrong, match="pip install 'gnomon"):
        client.require_client()


@pytest.mark.parametrize(
    ("security", "message"),
    [
        ({"protokol": "SSL"}, "security.protokol is not known; known are protocol, ca"),
        ({"protocol": "TLS"}, "security.protocol is 'TLS'; known are PLAINTEXT, SSL"),
        ({"protocol": "SASL_SSL", "sasl": "GSSAPI", "user": "u"}, "security.sasl is 'GSSAPI'; known are PLAIN"),
        ({"protocol": "SASL_PLAINTEXT"}, "security.user is missing"),
        ({"protocol": "SASL_PLAINTEXT", "user": "u", "passwordFile": "/nonexistent"}, "/nonexistent cannot be read"),
        ({"protocol": "SSL", "ca": "/nonexistent"}, "a certificate or key cannot be used"),
        ({"protocol": "SSL", "cert": str(TLS / "cert.pem"), "key": str(TLS / "other-key.pem")}, "cannot be used"),
    ],
)
def test_what_cannot_be_used_is_named(security: dict[str, str], message: str) -> None:
    """The key, its value, and what is known."""
    with pytest.raises(KafkaSettingsWrong) as raised:
        of(**security)

    assert message in str(raised.value)
