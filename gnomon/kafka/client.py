"""
The arguments of every Kafka client of ours, from `gnomon.events.kafka`.

`security` knows:

| key | values |
| --- | --- |
| `protocol` | `PLAINTEXT` (default), `SSL`, `SASL_PLAINTEXT`, `SASL_SSL` |
| `ca` | file with the certificates to trust; the system's without it |
| `cert`, `key` | files of our own certificate, where the cluster asks for one |
| `sasl` | `PLAIN` (default), `SCRAM-SHA-256`, `SCRAM-SHA-512` |
| `user`, `password`, `passwordFile` | who we are to SASL |
"""

import ssl
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from gnomon.config.model import KafkaSettings
from gnomon.kafka.errors import KafkaSettingsWrong

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
KEYS: Final = ("protocol", "ca", "cert", "key", "sasl", "user", "password", "passwordFile")
_AT: Final = "gnomon.events.kafka.security"


def require_client() -> None:
    """
    Make sure that the Kafka client is installed.

    Raises:
        KafkaSettingsWrong: it is not.
    """
    if any(find_spec(package) is None for package in ("aiokafka", "cramjam")):
        raise KafkaSettingsWrong("gnomon.events.kafka needs the Kafka client: pip install 'gnomon[kafka]'")


def arguments(kafka: KafkaSettings) -> dict[str, Any]:
    """
    Return keyword arguments that producer, consumer and admin client of aiokafka take alike.

    Raises:
        KafkaSettingsWrong: a key, a value or a file of `security` cannot be used.
    """
    security = kafka.security
    if unknown := sorted(set(security) - set(KEYS)):
        raise KafkaSettingsWrong(f"{_AT}.{unknown[0]} is not known; known are {', '.join(KEYS)}")
    protocol = _one_of(security, "protocol", PROTOCOLS)
    found: dict[str, Any] = {"bootstrap_servers": kafka.bootstrap_servers, "security_protocol": protocol}
    if protocol.endswith("SSL"):
        found["ssl_context"] = _tls(security)
    if protocol.startswith("SASL"):
        if not security.get("user"):
            raise KafkaSettingsWrong(f"{_AT}.user is missing, protocol {protocol} needs it")
        found |= {
            "sasl_mechanism": _one_of(security, "sasl", MECHANISMS),
            "sasl_plain_username": security["user"],
            "sasl_plain_password": _password(security),
        }
    return found


def _one_of(security: Mapping[str, str], key: str, known: tuple[str, ...]) -> str:
    value = security.get(key, known[0]).upper()
    if value not in known:
        raise KafkaSettingsWrong(f"{_AT}.{key} is {value!r}; known are {', '.join(known)}")
    return value


def _tls(security: Mapping[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=security.get("ca") or None)
        if security.get("cert"):
            context.load_cert_chain(security["cert"], security.get("key") or None)
    except (OSError, ssl.SSLError) as error:
        raise KafkaSettingsWrong(f"{_AT}: a certificate or key cannot be used: {error}") from error
    return context


def _password(security: Mapping[str, str]) -> str:
    file = security.get("passwordFile")
    if not file:
        return security.get("password", "")
    try:
        return Path(file).read_text("utf-8").strip()
    except OSError as error:
        raise KafkaSettingsWrong(f"{_AT}.passwordFile: {file} cannot be read: {error.strerror}") from error
