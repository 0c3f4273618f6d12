"""The keys below `gnomon`, which eRPC does not have."""

from gnomon.config.declare import TEXTS, TOLERANCES, is_off, section
from gnomon.config.schema import Anything, Integer, Key, ListOf, MapOf, Money, Number, Period, Section, Size, Text

_GNOMON = Section(
    "gnomon",
    "gnomon",
    (
        Key("proxy", section("proxy"), "The JSON-RPC listener."),
        Key("api", section("api"), "The API and dashboard."),
        Key("events", section("events"), "What is recorded, and where it goes."),
        Key("clickhouse", section("clickhouse"), "Where rows are stored."),
        Key("shadow", section("shadowSettings"), "Comparison."),
        Key("pricing", section("pricing"), "Price books and accounts."),
        Key("alerts", section("alerts"), "Rules and receivers."),
        Key("retention", section("retention"), "How long rows are kept."),
        Key("health", section("health"), "Where `gnomon ingest` and `gnomon alerts` show `/healthz` and `/metrics`."),
    ),
)

_PROXY = Section(
    "proxy",
    "gnomon.proxy",
    (
        Key("host", Text(), "Address to listen on; beyond loopback it needs `auth`.", "127.0.0.1"),
        Key("port", Integer(0, 65535), "Port to listen on.", "4000", "a free port is picked"),
        Key("workers", Integer(1), "Worker processes.", "1"),
        Key("tls", section("tls"), "TLS of the listener."),
        Key("limits", section("limits"), "Bounds on what clients and upstreams can take."),
        Key("shutdown", Period(), "Longest drain at SIGTERM.", "10s", "nothing is waited for"),
        Key(
            "controlSecretFile",
            Text(),
            "File with the secret by which the API cordons upstreams; services on other machines need the same.",
            "made below the data folder",
        ),
        Key(
            "websockets",
            Anything(),
            "WebSockets for clients come later: leave this out",
            use="later",
            is_harmless=is_off,
        ),
        Key(
            "subscriptions",
            Anything(),
            "WebSockets for clients come later: leave this out",
            use="later",
            is_harmless=is_off,
        ),
    ),
)

_TLS = Section(
    "tls",
    "gnomon.proxy.tls, gnomon.api.tls",
    (
        Key("cert", Text(), "Certificate chain, PEM. Needed."),
        Key("key", Text(), "Private key, PEM. Needed."),
    ),
)

_LIMITS = Section(
    "limits",
    "gnomon.proxy.limits",
    (
        Key("maxConnections", Integer(1), "Client connections.", "10000"),
        Key("maxInFlightBytes", Size(1), "Bytes of requests and answers held at once.", "512MiB"),
        Key("maxRequestBytes", Size(1), "Body of a request; above it, 413.", "10MiB"),
        Key("maxResponseBytes", Size(1), "Body of an upstream's answer.", "256MiB"),
        Key("maxHeaderBytes", Size(1), "Headers of a request.", "64KiB"),
        Key("maxBatch", Integer(1), "Elements of a batch.", "1000"),
        Key(
            "maxUpstreamConnections",
            Integer(1),
            "Connections to one upstream; a call beyond waits for a free one.",
            "256",
        ),
        Key("shadowInFlight", Integer(1), "Mirrored calls of one shadow at once; beyond, they are shed.", "256"),
        Key("shadowInFlightBytes", Size(1), "Bytes held for one shadow's mirrored calls.", "64MiB"),
        Key("headerTimeout", Period(False), "Time for a client to send its headers.", "30s"),
        Key("bodyTimeout", Period(False), "Time for a client to send its body.", "60s"),
        Key("idleTimeout", Period(False), "Time a silent connection is kept.", "5m"),
    ),
)

_API = Section(
    "api",
    "gnomon.api",
    (
        Key("host", Text(), "Address to listen on; beyond loopback it needs `tokens`.", "127.0.0.1"),
        Key("port", Integer(0, 65535), "Port to listen on.", "8080", "a free port is picked"),
        Key("tls", section("tls"), "TLS of the listener."),
        Key("tokens", ListOf(section("token")), "Who may call; without any, this machine only, as role `sql`."),
        Key("cors", section("cors"), "Web pages of other origins that may call."),
        Key("limits", section("apiLimits"), "Bounds on what callers can take."),
        Key("sql", section("sqlLimits"), "Bounds on statements of people (`POST /v1/sql`)."),
    ),
)

_API_LIMITS = Section(
    "apiLimits",
    "gnomon.api.limits",
    (
        Key("requestsPerSecond", Number(0.0), "Of one token, on average; beyond, 429.", "50", "not limited"),
        Key("burst", Integer(1), "Requests of one token at once, before the average counts.", "200"),
        Key("maxRequestBytes", Size(1), "Body of a request; above it, 413.", "1MiB"),
        Key("queries", Integer(1, 64), "Questions that ClickHouse is asked at once; others wait.", "4"),
        Key("queryTimeout", Period(False), "Longest time of one question; at most 30s.", "20s"),
        Key("streams", Integer(1, 3072), "Live streams (`/v1/stream`) open at once; one more is answered 503.", "1024"),
        Key("shutdown", Period(), "Longest wait for answers under way at SIGTERM.", "5s", "nothing is waited for"),
    ),
)

_SQL_LIMITS = Section(
    "sqlLimits",
    "gnomon.api.sql",
    (
        Key("queries", Integer(1, 64), "Statements of one token at once; beyond, 429.", "2"),
        Key(
            "timeout", Period(False), "Longest time of one statement, reading its result included; at most 30s.", "30s"
        ),
        Key("resultRows", Integer(1, 5_000_000), "Most rows of a result.", "1000000"),
        Key("resultBytes", Size(1), "Largest result, in ClickHouse's memory; at most 1000000000.", "256MiB"),
        Key("readRows", Integer(1, 1_000_000_000), "Most rows that a statement may read.", "1000000000"),
        Key("memoryBytes", Size(1), "Most memory of a statement in ClickHouse; at most 1000000000.", "1000000000"),
    ),
)

_TOKEN = Section(
    "token",
    "gnomon.api.tokens[]",
    (
        Key("name", Text(), "Name. Needed."),
        Key("role", Text(("read", "sql", "admin")), "What it may do.", "read"),
        Key("sha256File", Text(), "File with the token's SHA-256, hex (`sha256sum` writes it). Needed."),
    ),
)

_EVENTS = Section(
    "events",
    "gnomon.events",
    (
        Key("bodies", Text(("all", "diverged", "none")), "Which bodies travel.", "all"),
        Key("maxBodyBytes", Size(1), "A body above it travels as digest, size and head of the text.", "1MiB"),
        Key("log", section("log"), "The log on disk."),
        Key("kafka", section("kafka"), "Kafka; without it the log is read directly."),
    ),
)

_LOG = Section(
    "log",
    "gnomon.events.log",
    (
        Key("path", Text(), "Folder.", "events below the data folder"),
        Key("maxBytes", Size(1), "Most it may take on disk; then new events are dropped and counted.", "4GiB"),
        Key("segmentBytes", Size(1 << 16), "Size of one file.", "64MiB"),
        Key(
            "fsync",
            Text(("never", "interval")),
            "`never` survives any process; `interval` also loss of power, up to a second.",
            "never",
        ),
    ),
)

_KAFKA = Section(
    "kafka",
    "gnomon.events.kafka",
    (
        Key("bootstrapServers", Text(), "Brokers, `host:port` separated by commas. Needed."),
        Key("topicPrefix", Text(), "Put before each topic's name."),
        Key("partitions", Integer(1, 10_000), "Of the topic of responses: so many workers can share it.", "12"),
        Key("security", section("kafkaSecurity"), "Encryption, and who we are."),
    ),
)

_KAFKA_SECURITY = Section(
    "kafkaSecurity",
    "gnomon.events.kafka.security",
    (
        Key(
            "protocol", Text(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")), "As the listener has it.", "PLAINTEXT"
        ),
        Key("ca", Text(), "File with the certificates to trust.", "the system's"),
        Key("cert", Text(), "File with our own certificate, where the cluster asks for one."),
        Key("key", Text(), "File with its key."),
        Key("sasl", Text(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")), "Mechanism of SASL.", "PLAIN"),
        Key("user", Text(), "Who we are to SASL. Needed for `SASL_…`."),
        Key("password", Text(is_secret=True), "Its password."),
        Key("passwordFile", Text(), "File with its password, read again at each connection."),
    ),
)

_CLICKHOUSE = Section(
    "clickhouse",
    "gnomon.clickhouse",
    (
        Key(
            "url",
            Text(is_secret=True),
            "HTTP address; `up` and `demo` start the embedded engine there.",
            "http://127.0.0.1:8123",
        ),
        Key("user", Text(), "Writer's name.", "generated for the embedded engine"),
        Key("passwordFile", Text(), "File with the writer's password."),
        Key("readerUser", Text(), "Who reads for people, on a server.", "the writer, read-only"),
        Key("readerPasswordFile", Text(), "File with the reader's password."),
        Key("cluster", Text(), "Cluster of replicated and distributed tables."),
    ),
)

_SHADOW_SETTINGS = Section(
    "shadowSettings",
    "gnomon.shadow",
    (
        Key("tolerate", TOLERANCES, "The same for every shadow. docs/comparison.md lists the classes."),
        Key(
            "keepBodies",
            Text(("diverged", "all", "none")),
            "Which bodies are stored; `diverged`: those whose bytes differ.",
            "diverged",
        ),
        Key(
            "sampleIdenticalBodies",
            Number(0.0, 1.0),
            "Share of identical pairs whose bodies are stored too.",
            "0",
            "none",
        ),
    ),
)

_PRICING = Section(
    "pricing",
    "gnomon.pricing",
    (
        Key(
            "books",
            TEXTS,
            "Price book files, looked up beside this file; one replaces the shipped book of the same vendor.",
        ),
        Key("accounts", MapOf(section("account")), "Accounts by name; an upstream's `account` need not be here."),
    ),
)

_ACCOUNT = Section(
    "account",
    "gnomon.pricing.accounts.*",
    (
        Key("upstreams", TEXTS, "Upstreams billed to it, beside those that name it."),
        Key("monthlyBudgetUsd", Money(), "Budget of a month.", "none", "anything spent is above it"),
        Key("cycleDay", Integer(1, 28), "Day on which its month begins, UTC.", "1"),
    ),
)

_ALERTS = Section(
    "alerts",
    "gnomon.alerts",
    (
        Key("rules", TEXTS, "Rule files, beside this one; they add to the default rules, change or replace them."),
        Key(
            "proxies",
            TEXTS,
            "Addresses of the proxies, `http://HOST:PORT`, where they are not on this machine: their `/metrics` "
            "tell of logs and shippers, and the API cordons upstreams there.",
        ),
        Key(
            "receivers",
            ListOf(MapOf(Anything())),
            "Where alerts go: webhook, slack, pagerduty, alertmanager (docs/alerts.md).",
        ),
    ),
)

_RETENTION = Section(
    "retention",
    "gnomon.retention",
    (
        Key("rows", Period(False), "Rows of requests, attempts, comparisons, heads.", "90d"),
        Key("bodies", Period(False), "Bodies.", "7d"),
        Key(
            "events", Period(False), "Events: retention of the Kafka topics; a log is recycled as it is consumed.", "7d"
        ),
        Key("rollups", Period(False), "Rollups.", "3y"),
    ),
)

_HEALTH = Section(
    "health",
    "gnomon.health",
    (
        Key(
            "host",
            Text(),
            "Address of both. Beyond loopback everybody who reaches them may read: keep them in a network of your own.",
            "127.0.0.1",
        ),
        Key("ingestPort", Integer(0, 65535), "Port of `gnomon ingest`.", "0", "a free port is picked"),
        Key("alertsPort", Integer(0, 65535), "Port of `gnomon alerts`.", "0", "a free port is picked"),
    ),
)

OWN_SECTIONS: tuple[Section, ...] = (
    _GNOMON,
    _PROXY,
    _TLS,
    _LIMITS,
    _API,
    _API_LIMITS,
    _SQL_LIMITS,
    _TOKEN,
    _EVENTS,
    _LOG,
    _KAFKA,
    _KAFKA_SECURITY,
    _CLICKHOUSE,
    _SHADOW_SETTINGS,
    _PRICING,
    _ACCOUNT,
    _ALERTS,
    _RETENTION,
    _HEALTH,
)
"""In the order of the documentation."""
