"""The reference of settings is made from the list that the reader uses, and its defaults are those in force."""

from collections.abc import Callable

import pytest

from gnomon.compare.classes import CLASSES
from gnomon.config import model
from gnomon.config.keys import SECTIONS
from gnomon.config.reference import render
from gnomon.config.scalars import parse_duration, parse_size
from gnomon.config.schema import Key, Period, SectionOf, Size, walk_keys
from gnomon.kafka.client import arguments
from tests.config.test_load import ONE, with_upstreams
from tests.services import ROOT


def test_the_page_is_the_list() -> None:
    """`docs/configuration.md` is what `make docs` writes."""
    assert (ROOT / "docs" / "configuration.md").read_text("utf-8") == render()


def test_each_key_is_told_once_and_whole() -> None:
    """No key stands twice in a section, and each has a sentence."""
    for section in SECTIONS.values():
        names = [key.name for key in section.keys]

        assert len(names) == len(set(names)), section.name
    for section, key in walk_keys(SECTIONS):
        assert key.text, f"{section.name}.{key.name}"
        assert key.text.endswith((".", "`")) or key.use != "used", f"{section.name}.{key.name}"


def test_every_section_is_reachable() -> None:
    """A section that no key leads to would document what cannot be written."""
    named = {"root"}
    text = repr([key.kind for _, key in walk_keys(SECTIONS)])
    named |= {name for name in SECTIONS if f"SectionOf(name='{name}'" in text}

    assert named == set(SECTIONS)


def _limit(name: str) -> Callable[[model.Settings], object]:
    return lambda settings: getattr(settings.gnomon.proxy.limits, name)


def _with_kafka(security: str = "") -> model.KafkaSettings:
    """Return what is in force where only the address is given, and these members of `security`."""
    more = f"gnomon: {{events: {{kafka: {{bootstrapServers: 'h:9092', security: {{{security}}}}}}}}}"
    kafka = with_upstreams(ONE, more=more).gnomon.events.kafka
    assert kafka is not None
    return kafka


def _with_cors() -> model.Cors:
    cors = with_upstreams(ONE, more="gnomon: {api: {cors: {}}}").gnomon.api.cors
    assert cors is not None
    return cors


DEFAULTS: dict[tuple[str, str], Callable[[model.Settings], object]] = {
    ("proxy", "host"): lambda s: s.gnomon.proxy.host,
    ("proxy", "port"): lambda s: s.gnomon.proxy.port,
    ("proxy", "workers"): lambda s: s.gnomon.proxy.workers,
    ("proxy", "shutdown"): lambda s: s.gnomon.proxy.shutdown_seconds,
    ("limits", "maxConnections"): _limit("max_connections"),
    ("limits", "maxInFlightBytes"): _limit("max_in_flight_bytes"),
    ("limits", "maxRequestBytes"): _limit("max_request_bytes"),
    ("limits", "maxResponseBytes"): _limit("max_response_bytes"),
    ("limits", "maxHeaderBytes"): _limit("max_header_bytes"),
    ("limits", "maxBatch"): _limit("max_batch"),
    ("limits", "maxUpstreamConnections"): _limit("max_upstream_connections"),
    ("limits", "shadowInFlight"): _limit("shadow_in_flight"),
    ("limits", "shadowInFlightBytes"): _limit("shadow_in_flight_bytes"),
    ("limits", "headerTimeout"): _limit("header_timeout_seconds"),
    ("limits", "bodyTimeout"): _limit("body_timeout_seconds"),
    ("limits", "idleTimeout"): _limit("idle_timeout_seconds"),
    ("api", "host"): lambda s: s.gnomon.api.host,
    ("api", "port"): lambda s: s.gnomon.api.port,
    ("apiLimits", "requestsPerSecond"): lambda s: s.gnomon.api.limits.requests_per_second,
    ("apiLimits", "burst"): lambda s: s.gnomon.api.limits.burst,
    ("apiLimits", "maxRequestBytes"): lambda s: s.gnomon.api.limits.max_request_bytes,
    ("apiLimits", "queries"): lambda s: s.gnomon.api.limits.queries,
    ("apiLimits", "queryTimeout"): lambda s: s.gnomon.api.limits.query_timeout_seconds,
    ("apiLimits", "streams"): lambda s: s.gnomon.api.limits.streams,
    ("apiLimits", "shutdown"): lambda s: s.gnomon.api.limits.shutdown_seconds,
    ("sqlLimits", "queries"): lambda s: s.gnomon.api.sql.queries,
    ("sqlLimits", "timeout"): lambda s: s.gnomon.api.sql.timeout_seconds,
    ("sqlLimits", "resultRows"): lambda s: s.gnomon.api.sql.result_rows,
    ("sqlLimits", "resultBytes"): lambda s: s.gnomon.api.sql.result_bytes,
    ("sqlLimits", "readRows"): lambda s: s.gnomon.api.sql.read_rows,
    ("sqlLimits", "memoryBytes"): lambda s: s.gnomon.api.sql.memory_bytes,
    ("cors", "allowedMethods"): lambda _: ", ".join(_with_cors().allowed_methods),
    ("cors", "allowedHeaders"): lambda _: ", ".join(_with_cors().allowed_headers),
    ("cors", "allowCredentials"): lambda _: _with_cors().allow_credentials,
    ("cors", "maxAge"): lambda _: _with_cors().max_age_seconds,
    ("events", "bodies"): lambda s: s.gnomon.events.bodies,
    ("events", "maxBodyBytes"): lambda s: s.gnomon.events.max_body_bytes,
    ("log", "maxBytes"): lambda s: s.gnomon.events.log.max_bytes,
    ("log", "segmentBytes"): lambda s: s.gnomon.events.log.segment_bytes,
    ("log", "fsync"): lambda s: s.gnomon.events.log.fsync,
    ("kafka", "partitions"): lambda _: _with_kafka().partitions,
    ("kafkaSecurity", "protocol"): lambda _: arguments(_with_kafka())["security_protocol"],
    ("kafkaSecurity", "sasl"): lambda _: arguments(_with_kafka("protocol: SASL_PLAINTEXT, user: u"))["sasl_mechanism"],
    ("clickhouse", "url"): lambda s: s.gnomon.clickhouse.url,
    ("shadowSettings", "keepBodies"): lambda s: s.gnomon.shadow.keep_bodies,
    ("shadowSettings", "sampleIdenticalBodies"): lambda s: s.gnomon.shadow.sample_identical_bodies,
    ("retention", "rows"): lambda s: s.gnomon.retention.rows_seconds,
    ("retention", "bodies"): lambda s: s.gnomon.retention.bodies_seconds,
    ("retention", "events"): lambda s: s.gnomon.retention.events_seconds,
    ("retention", "rollups"): lambda s: s.gnomon.retention.rollups_seconds,
    ("health", "host"): lambda s: s.gnomon.health.host,
    ("health", "ingestPort"): lambda s: s.gnomon.health.ingest_port,
    ("health", "alertsPort"): lambda s: s.gnomon.health.alerts_port,
    ("root", "logLevel"): lambda s: s.log_level,
    ("networkEvm", "acceptEmptyBeyondHead"): lambda s: s.projects[0].networks[0].accept_empty_beyond_head,
    ("networkEvm", "shortCircuitFutureBlocks"): lambda s: s.projects[0].networks[0].short_circuit_future_blocks,
    ("networkEvm", "emptyResultConfidence"): lambda s: s.projects[0].networks[0].empty_result_confidence,
    ("networkEvm", "fallbackFinalityDepth"): lambda s: s.projects[0].networks[0].fallback_finality_depth,
    ("selectionPolicy", "mode"): lambda s: s.projects[0].networks[0].selection_mode,
    ("server", "maxTimeout"): lambda s: s.projects[0].networks[0].max_retry_seconds,
}
"""(section, key) → the value in force when the file says nothing."""


@pytest.mark.parametrize(("section", "name"), DEFAULTS, ids=[f"{s}.{n}" for s, n in DEFAULTS])
def test_a_stated_default_is_in_force(section: str, name: str) -> None:
    """What the page says of a key that is left out is what the services read."""
    key = SECTIONS[section].key(name)
    assert isinstance(key, Key)
    value = DEFAULTS[section, name](with_upstreams(ONE))
    stated: object = key.default
    if isinstance(key.kind, Period):
        stated, value = parse_duration(key.default), float(str(value))
    elif isinstance(key.kind, Size):
        stated = parse_size(key.default)
    elif isinstance(value, bool | float):
        stated, value = key.default, format(value, "g") if not isinstance(value, bool) else str(value).lower()
    else:
        value = str(value)

    assert stated == value


def test_gnomons_defaults_are_all_checked() -> None:
    """Each key below `gnomon` that states a default which a file can hold is in the table above."""
    below: set[str] = set()
    queue = ["gnomon"]
    while queue:
        name = queue.pop()
        below.add(name)
        queue += [key.kind.name for key in SECTIONS[name].keys if isinstance(key.kind, SectionOf)]
    stated = {(section.name, key.name) for section, key in walk_keys(SECTIONS) if section.name in below and key.default}
    in_words = {
        ("proxy", "controlSecretFile"),
        ("log", "path"),
        ("clickhouse", "user"),
        ("clickhouse", "readerUser"),
        ("kafkaSecurity", "ca"),
    }

    assert stated - in_words <= set(DEFAULTS)


def test_every_class_that_may_be_tolerated_is_on_the_page() -> None:
    """The closed list of classes can be read where tolerances are explained."""
    page = (ROOT / "docs" / "comparison.md").read_text("utf-8")

    assert all(f"`{name}`" in page for name in CLASSES)
