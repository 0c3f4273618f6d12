"""The settings under `gnomon:` and eRPC's `server:`, for each service."""

import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast
from urllib.parse import urlsplit

from gnomon.config import access, model, receivers
from gnomon.config.comparison import check_tolerances
from gnomon.config.endpoints import check as check_url
from gnomon.config.errors import TlsError
from gnomon.config.findings import Findings
from gnomon.config.listeners import server_context
from gnomon.config.model import Gnomon, Tls
from gnomon.config.values import Values

Bodies = Literal["all", "diverged", "none"]
_LIMITS = {
    "maxConnections": "max_connections",
    "maxInFlightBytes": "max_in_flight_bytes",
    "maxRequestBytes": "max_request_bytes",
    "maxResponseBytes": "max_response_bytes",
    "maxHeaderBytes": "max_header_bytes",
    "maxBatch": "max_batch",
    "maxUpstreamConnections": "max_upstream_connections",
    "shadowInFlight": "shadow_in_flight",
    "shadowInFlightBytes": "shadow_in_flight_bytes",
    "headerTimeout": "header_timeout_seconds",
    "bodyTimeout": "body_timeout_seconds",
    "idleTimeout": "idle_timeout_seconds",
}


def build(root: Values, upstream_ids: Sequence[str], folder: Path, findings: Findings) -> Gnomon:
    """Return the settings of all services; `folder` is where files that they name are looked up."""
    gnomon = root.section("gnomon")
    return Gnomon(
        proxy=_proxy(gnomon.section("proxy"), root.section("server"), folder, findings),
        api=_api(gnomon.section("api"), folder, findings),
        events=_events(gnomon.section("events"), findings),
        clickhouse=_clickhouse(gnomon.section("clickhouse"), findings),
        shadow=_shadow(gnomon.section("shadow"), findings),
        pricing=_pricing(gnomon.section("pricing"), upstream_ids, folder, findings),
        alerts=_alerts(gnomon.section("alerts"), folder, findings),
        retention=_retention(gnomon.section("retention")),
        health=_health(gnomon.section("health")),
    )


def _proxy(proxy: Values, server: Values, folder: Path, findings: Findings) -> model.ProxySettings:
    if proxy.integer("workers", 1) > 1:
        findings.problem(proxy.at("workers"), "several workers come later: leave it at 1")
    limits = proxy.section("limits")
    given = {_LIMITS[name]: limits.items[name] for name in limits.items}
    port = server.integer("httpPortV4", server.integer("httpPort", 4000))
    return model.ProxySettings(
        host=proxy.text("host", server.text("httpHostV4", "127.0.0.1")),
        port=proxy.integer("port", port),
        workers=1,
        tls=_checked(_tls(proxy, findings), proxy.section("tls"), ("cert", "key"), folder, findings)
        or _checked(_server_tls(server, findings), server.section("tls"), ("certFile", "keyFile"), folder, findings),
        limits=model.Limits(**given),  # type: ignore[arg-type]
        shutdown_seconds=proxy.number("shutdown", 10.0),
        control_secret_file=str(folder / proxy.text("controlSecretFile")) if "controlSecretFile" in proxy else "",
    )


def _tls(listener: Values, findings: Findings) -> Tls | None:
    if "tls" not in listener:
        return None
    tls = listener.section("tls")
    for name in ("cert", "key"):
        if tls.lacks(name):
            findings.problem(tls.at(name), "is missing")
    return Tls(cert=tls.text("cert"), key=tls.text("key"))


def _checked(tls: Tls | None, section: Values, names: tuple[str, str], folder: Path, findings: Findings) -> Tls | None:
    """Return TLS with its files as they are found from here, after a look at them."""
    if tls is None or not tls.cert or not tls.key:
        return tls
    tls = Tls(cert=str(folder / tls.cert), key=str(folder / tls.key))
    try:
        server_context(tls)
    except TlsError as error:
        findings.problem(section.at(names[error.member == "key"]), str(error))
    return tls


def _server_tls(server: Values, findings: Findings) -> Tls | None:
    tls = server.section("tls")
    if not tls.flag("enabled"):
        return None
    for name in ("certFile", "keyFile"):
        if tls.lacks(name):
            findings.problem(tls.at(name), "is missing")
    return Tls(cert=tls.text("certFile"), key=tls.text("keyFile"))


MAX_QUERY_SECONDS = 30.0
MAX_STATEMENT_BYTES = 1_000_000_000
"""What the embedded ClickHouse lets a reader have."""


def _api(api: Values, folder: Path, findings: Findings) -> model.ApiSettings:
    tokens: list[model.ApiToken] = []
    for token in api.sections("tokens"):
        for name in ("name", "sha256File"):
            if token.lacks(name):
                findings.problem(token.at(name), "is missing")
        name, file = token.text("name"), token.text("sha256File")
        if any(name == other.name for other in tokens):
            findings.problem(token.at("name"), f"two tokens are called `{name}`")
        role = cast(model.Role, token.text("role", "read"))
        tokens.append(model.ApiToken(name=name, role=role, sha256_file=str(folder / file) if file else ""))
    host = api.text("host", "127.0.0.1")
    if not is_loopback(host) and not tokens:
        findings.guard(api.at("host"), f"{host} lets other machines in and there are no api.tokens")
    given = api.section("limits")
    limits = model.ApiLimits(
        requests_per_second=given.number("requestsPerSecond", 50.0),
        burst=given.integer("burst", 200),
        max_request_bytes=given.integer("maxRequestBytes", 1 << 20),
        queries=given.integer("queries", 4),
        query_timeout_seconds=given.number("queryTimeout", 20.0),
        streams=given.integer("streams", 1024),
        shutdown_seconds=given.number("shutdown", 5.0),
    )
    if not 1.0 <= limits.query_timeout_seconds <= MAX_QUERY_SECONDS:
        findings.problem(given.at("queryTimeout"), f"must be 1s to {MAX_QUERY_SECONDS:g}s")
    return model.ApiSettings(
        host=host,
        port=api.integer("port", 8080),
        tls=_checked(_tls(api, findings), api.section("tls"), ("cert", "key"), folder, findings),
        tokens=tuple(tokens),
        cors=access.cors(api, findings),
        limits=limits,
        sql=_sql_limits(api.section("sql"), findings),
    )


def _sql_limits(given: Values, findings: Findings) -> model.SqlLimits:
    limits = model.SqlLimits(
        queries=given.integer("queries", 2),
        timeout_seconds=given.number("timeout", 30.0),
        result_rows=given.integer("resultRows", 1_000_000),
        result_bytes=given.integer("resultBytes", 256 << 20),
        read_rows=given.integer("readRows", 1_000_000_000),
        memory_bytes=given.integer("memoryBytes", 1_000_000_000),
    )
    if not 1.0 <= limits.timeout_seconds <= MAX_QUERY_SECONDS:
        findings.problem(given.at("timeout"), f"must be 1s to {MAX_QUERY_SECONDS:g}s")
    for name, n_bytes in (("resultBytes", limits.result_bytes), ("memoryBytes", limits.memory_bytes)):
        if n_bytes > MAX_STATEMENT_BYTES:
            findings.problem(given.at(name), f"must be at most {MAX_STATEMENT_BYTES} bytes")
    return limits


def _events(events: Values, findings: Findings) -> model.EventSettings:
    log, kafka = events.section("log"), events.section("kafka")
    settings = model.LogSettings(
        path=log.text("path"),
        max_bytes=log.integer("maxBytes", 4 << 30),
        segment_bytes=log.integer("segmentBytes", 64 << 20),
        fsync=cast(Literal["never", "interval"], log.text("fsync", "never")),
    )
    if settings.max_bytes < 2 * settings.segment_bytes:
        findings.problem(
            log.at("maxBytes"),
            f"{settings.max_bytes} bytes hold less than two segments of {settings.segment_bytes} (segmentBytes)",
        )
    if "kafka" in events and kafka.lacks("bootstrapServers"):
        findings.problem(kafka.at("bootstrapServers"), "is missing")
    return model.EventSettings(
        bodies=cast(Bodies, events.text("bodies", "all")),
        max_body_bytes=events.integer("maxBodyBytes", 1 << 20),
        log=settings,
        kafka=model.KafkaSettings(
            bootstrap_servers=kafka.text("bootstrapServers"),
            topic_prefix=kafka.text("topicPrefix"),
            partitions=kafka.integer("partitions", 12),
            security=_kafka_security(kafka.section("security"), findings),
        )
        if "kafka" in events
        else None,
    )


def _kafka_security(security: Values, findings: Findings) -> dict[str, str]:
    if security.text("protocol").startswith("SASL") and security.lacks("user"):
        findings.problem(security.at("user"), f"is missing, protocol {security.text('protocol')} needs it")
    if "password" in security and "passwordFile" in security:
        findings.problem(security.at("password"), "is given beside passwordFile: which one?")
    return {name: security.text(name) for name in security.items}


def _clickhouse(clickhouse: Values, findings: Findings) -> model.ClickHouseSettings:
    url = clickhouse.text("url", "http://127.0.0.1:8123")
    wrong = check_url(url)
    if wrong or not url.startswith("http"):
        # port 0 asks for a free one: that is a value here, not a slip
        if wrong != "names port 0":
            findings.problem(clickhouse.at("url"), wrong or "is not a URL of scheme http or https")
    elif "@" in url.partition("://")[2].partition("/")[0]:
        findings.problem(clickhouse.at("url"), "holds a user or password: use `user` and `passwordFile`")
    for user, file in (("user", "passwordFile"), ("readerUser", "readerPasswordFile")):
        if (user in clickhouse) != (file in clickhouse):
            findings.problem(clickhouse.path, f"`{user}` and `{file}` belong together")
    return model.ClickHouseSettings(
        url=url.rstrip("/"),
        user=clickhouse.text("user"),
        password_file=clickhouse.text("passwordFile"),
        reader_user=clickhouse.text("readerUser"),
        reader_password_file=clickhouse.text("readerPasswordFile"),
        cluster=clickhouse.text("cluster"),
    )


def _shadow(shadow: Values, findings: Findings) -> model.ShadowSettings:
    tolerate = shadow.by_method("tolerate")
    check_tolerances(tolerate, shadow.at("tolerate"), findings)
    return model.ShadowSettings(
        tolerate=tolerate,
        keep_bodies=cast(Bodies, shadow.text("keepBodies", "diverged")),
        sample_identical_bodies=shadow.number("sampleIdenticalBodies"),
    )


def _pricing(pricing: Values, upstream_ids: Sequence[str], folder: Path, findings: Findings) -> model.PricingSettings:
    accounts = []
    owner: dict[str, str] = {}
    for name, account in pricing.section_map("accounts").items():
        for index, upstream in enumerate(account.texts("upstreams")):
            here = f"{account.at('upstreams')}[{index}]"
            if upstream not in upstream_ids:
                findings.problem(here, f"no upstream is called `{upstream}`")
            if owner.setdefault(upstream, name) != name:
                findings.problem(here, f"`{upstream}` is billed to `{owner[upstream]}` already")
        accounts.append(
            model.Account(
                id=name,
                upstreams=account.texts("upstreams"),
                monthly_budget_usd=account.text("monthlyBudgetUsd") if "monthlyBudgetUsd" in account else None,
                cycle_day=account.integer("cycleDay", 1),
            )
        )
    return model.PricingSettings(books=pricing.texts("books"), accounts=tuple(accounts), folder=str(folder))


def _alerts(alerts: Values, folder: Path, findings: Findings) -> model.AlertSettings:
    given = alerts.items.get("receivers", [])
    assert isinstance(given, list)

    def report(index: int, member: str, message: str) -> None:
        findings.problem(f"{alerts.at('receivers')}[{index}]{'.' + member if member else ''}", message)

    receivers.parse(given, report)
    proxies = alerts.texts("proxies")
    for index, address in enumerate(proxies):
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            findings.problem(f"{alerts.at('proxies')}[{index}]", "expected http://HOST:PORT or https://HOST:PORT")
    return model.AlertSettings(rules=alerts.texts("rules"), proxies=proxies, receivers=tuple(given), folder=str(folder))


def _retention(retention: Values) -> model.Retention:
    default = model.Retention()
    return model.Retention(
        rows_seconds=retention.number("rows", default.rows_seconds),
        bodies_seconds=retention.number("bodies", default.bodies_seconds),
        events_seconds=retention.number("events", default.events_seconds),
        rollups_seconds=retention.number("rollups", default.rollups_seconds),
    )


def _health(health: Values) -> model.HealthSettings:
    return model.HealthSettings(
        host=health.text("host", "127.0.0.1"),
        ingest_port=health.integer("ingestPort", 0),
        alerts_port=health.integer("alertsPort", 0),
    )


def is_loopback(host: str) -> bool:
    """Return whether an address or name is surely this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
