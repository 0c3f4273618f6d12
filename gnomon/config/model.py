"""
The effective settings: what a configuration file means after defaults, inheritance and expansion.

Every service reads these values and none reads the environment or a file. Durations are seconds (float),
sizes bytes (int). A member documented as "eRPC: x" has the name `x` in the file.
"""

from pathlib import Path
from typing import Literal

from msgspec import Struct

ANY_METHOD = "*"

Tier = Literal["primary", "fallback", "shadow"]


class Quantile(Struct, frozen=True, kw_only=True):
    """A duration learnt from a method's own latencies, held within bounds."""

    quantile: float
    """0 to 1 exclusive."""
    min_seconds: float
    max_seconds: float
    base_seconds: float = 0.0
    """Added to the quantile; also the value while there are no samples, if above `min_seconds`."""


Duration = float | Quantile


class Retry(Struct, frozen=True, kw_only=True):
    max_attempts: int = 3
    """All tries together, the first included."""
    delay_seconds: float = 0.0
    backoff_factor: float = 1.2
    backoff_max_seconds: float = 3.0
    jitter_seconds: float = 0.0
    empty_result_accept: tuple[str, ...] | None = None
    """Methods whose empty result is an answer here; None = the table of `gnomon.rpc.methods`."""
    empty_result_max_attempts: int = 2


class Hedge(Struct, frozen=True, kw_only=True):
    delay: Duration
    max_count: int = 1


class Breaker(Struct, frozen=True, kw_only=True):
    """`threshold` consecutive misses, or a ratio over a window; `threshold` 0 means the window mode."""

    threshold: int = 0
    open_for_seconds: float = 10.0
    failure_count: int = 20
    failure_capacity: int = 80
    success_count: int = 8
    success_capacity: int = 10


class Failsafe(Struct, frozen=True, kw_only=True):
    """One entry of `failsafe`; the first whose `match_method` (and finality) fits is used."""

    match_method: str = "*"
    match_finality: tuple[str, ...] = ()
    timeout: Duration | None = None
    retry: Retry | None = None
    hedge: Hedge | None = None
    breaker: Breaker | None = None


class BlockBound(Struct, frozen=True, kw_only=True):
    """Exactly one member is set."""

    exact_block: int | None = None
    latest_minus: int | None = None
    earliest_plus: int | None = None


class RelayError(Struct, frozen=True, kw_only=True):
    status: int = 502
    header: str = "x-ssr-cache"
    """Lower case."""
    value: str = "rpcerror"
    """Lower case; compared without case."""


class ShadowPolicy(Struct, frozen=True, kw_only=True):
    sample_rate: float = 1.0
    """0 to 1; 0 mirrors nothing."""
    ignore_fields: dict[str, tuple[str, ...]] = {}
    """Method → masks."""
    control: bool = False
    max_per_second: float | None = None
    monthly_budget_usd: str | None = None
    tolerate: dict[str, tuple[str, ...]] = {}
    """Method or ANY_METHOD → tolerances."""


class Upstream(Struct, frozen=True, kw_only=True):
    id: str
    network: str
    """`evm:1`, or the id of a generic network."""
    endpoint: str
    """URL with its secrets: never log it; `display_endpoint` is safe."""
    display_endpoint: str
    vendor: str = ""
    account: str = ""
    tier: Tier = "primary"
    tags: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    """Sent with each request (`jsonRpc.headers`)."""
    gzip_requests: bool = False
    chain_id: int | None = None
    poll_interval_seconds: float = 2.0
    """eRPC: evm.statePollerInterval."""
    lower: BlockBound | None = None
    upper: BlockBound | None = None
    skip_when_syncing: bool = False
    allow_methods: tuple[str, ...] = ()
    ignore_methods: tuple[str, ...] = ()
    failsafe: tuple[Failsafe, ...] = ()
    shadow: ShadowPolicy | None = None
    relay_error: RelayError | None = None
    validators: dict[str, tuple[str, ...]] = {}
    probe: bool | None = None
    """None: on for primaries, off for fallbacks."""
    probe_per_second: float = 1.0
    probe_concurrency: int = 1
    rate_limit_budget: str = ""
    credit_units: dict[str, str] = {}
    """Method (or `*`) → units of a call as a decimal; they win over the price book. eRPC: creditUnits."""
    has_archive: bool | None = None
    """None: not said. Some vendors charge more for every call to an endpoint with archive. eRPC: evm.nodeType."""


class Network(Struct, frozen=True, kw_only=True):
    id: str
    architecture: Literal["evm", "jsonrpc"]
    chain_id: int | None = None
    alias: str = ""
    selection_mode: Literal["tiered", "ordered"] = "tiered"
    failsafe: tuple[Failsafe, ...] = ()
    accept_empty_beyond_head: bool = True
    short_circuit_future_blocks: bool = False
    served_tip_enabled_for: tuple[str, ...] = ()
    empty_result_accept: tuple[str, ...] | None = None
    empty_result_confidence: Literal["blockHead", "finalizedBlock"] = "blockHead"
    fallback_finality_depth: int = 1024
    max_retry_seconds: float = 60.0
    """Deadline of a whole request."""
    rate_limit_budget: str = ""
    directive_defaults: dict[str, bool] = {}


class Secret(Struct, frozen=True, kw_only=True):
    """A client secret of a project: only its SHA-256 is kept."""

    id: str
    """The user it stands for in events."""
    sha256: str
    """Lower-case hex."""
    rate_limit_budget: str = ""


class NetworkAccess(Struct, frozen=True, kw_only=True):
    """Addresses let in without a secret."""

    id: str
    cidrs: tuple[str, ...] = ()
    allow_localhost: bool = False
    trusted_proxies: tuple[str, ...] = ()
    rate_limit_budget: str = ""


class RateLimitRule(Struct, frozen=True, kw_only=True):
    method: str = "*"
    max_count: int = 0
    period_seconds: float = 1.0
    wait_seconds: float = 0.0
    """Longest wait for room; 0 refuses at once."""
    per_ip: bool = False
    per_user: bool = False
    per_network: bool = False


class Cors(Struct, frozen=True, kw_only=True):
    allowed_origins: tuple[str, ...] = ()
    allowed_methods: tuple[str, ...] = ()
    allowed_headers: tuple[str, ...] = ()
    exposed_headers: tuple[str, ...] = ()
    allow_credentials: bool = False
    max_age_seconds: int = 0


class Project(Struct, frozen=True, kw_only=True):
    id: str
    networks: tuple[Network, ...] = ()
    upstreams: tuple[Upstream, ...] = ()
    secrets: tuple[Secret, ...] = ()
    access: tuple[NetworkAccess, ...] = ()
    """With `secrets` and `access` both empty the project is open."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses that are believed whom they forward for. eRPC: server.trustedIPForwarders"""
    rate_limit_budget: str = ""
    cors: Cors | None = None
    allow_methods: tuple[str, ...] = ()
    ignore_methods: tuple[str, ...] = ()


class Tls(Struct, frozen=True, kw_only=True):
    cert: str
    key: str


class Limits(Struct, frozen=True, kw_only=True):
    """gnomon.proxy.limits; 0 is refused, every limit is finite."""

    max_connections: int = 10_000
    max_in_flight_bytes: int = 512 << 20
    max_request_bytes: int = 10 << 20
    max_response_bytes: int = 256 << 20
    max_header_bytes: int = 64 << 10
    max_batch: int = 1000
    max_upstream_connections: int = 256
    """Per upstream; a call beyond waits for a free one until its own timeout."""
    shadow_in_flight: int = 256
    """Per shadow."""
    shadow_in_flight_bytes: int = 64 << 20
    """Answers and requests held for one shadow's pending calls."""
    header_timeout_seconds: float = 30.0
    body_timeout_seconds: float = 60.0
    idle_timeout_seconds: float = 300.0


class ProxySettings(Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: int = 4000
    workers: int = 1
    tls: Tls | None = None
    limits: Limits = Limits()
    shutdown_seconds: float = 10.0
    """Longest drain at SIGTERM."""
    control_secret_file: str = ""
    """Empty: made below the data folder (`gnomon.config.control`)."""


Role = Literal["read", "sql", "admin"]


class ApiToken(Struct, frozen=True, kw_only=True):
    name: str
    role: Role
    sha256_file: str


class ApiLimits(Struct, frozen=True, kw_only=True):
    requests_per_second: float = 50.0
    """Of one token; 0 = not limited."""
    burst: int = 200
    max_request_bytes: int = 1 << 20
    queries: int = 4
    """Asked at once; each has a connection and a thread."""
    query_timeout_seconds: float = 20.0
    streams: int = 1024
    """Open at once, of all tokens."""
    shutdown_seconds: float = 5.0


class SqlLimits(Struct, frozen=True, kw_only=True):
    """gnomon.api.sql: of statements that people write."""

    queries: int = 2
    """Of one token at once."""
    timeout_seconds: float = 30.0
    result_rows: int = 1_000_000
    result_bytes: int = 256 << 20
    read_rows: int = 1_000_000_000
    memory_bytes: int = 1_000_000_000


class ApiSettings(Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: int = 8080
    tls: Tls | None = None
    tokens: tuple[ApiToken, ...] = ()
    cors: Cors | None = None
    limits: ApiLimits = ApiLimits()
    sql: SqlLimits = SqlLimits()


class LogSettings(Struct, frozen=True, kw_only=True):
    path: str = ""
    """Empty: `events` below the data folder (`up`, `demo`), else `gnomon-data/events`."""
    max_bytes: int = 4 << 30
    segment_bytes: int = 64 << 20
    fsync: Literal["never", "interval"] = "never"


class KafkaSettings(Struct, frozen=True, kw_only=True):
    bootstrap_servers: str
    topic_prefix: str = ""
    partitions: int = 12
    """Of the topic of responses."""
    security: dict[str, str] = {}


class EventSettings(Struct, frozen=True, kw_only=True):
    bodies: Literal["all", "diverged", "none"] = "all"
    max_body_bytes: int = 1 << 20
    log: LogSettings = LogSettings()
    kafka: KafkaSettings | None = None


class ClickHouseSettings(Struct, frozen=True, kw_only=True):
    url: str = "http://127.0.0.1:8123"
    user: str = ""
    password_file: str = ""
    reader_user: str = ""
    """Who reads for people on a server; empty: the writer, with `readonly`."""
    reader_password_file: str = ""
    cluster: str = ""


class ShadowSettings(Struct, frozen=True, kw_only=True):
    tolerate: dict[str, tuple[str, ...]] = {}
    """Method or ANY_METHOD → tolerances, for every shadow."""
    keep_bodies: Literal["diverged", "all", "none"] = "diverged"
    sample_identical_bodies: float = 0.0


class Account(Struct, frozen=True, kw_only=True):
    id: str
    upstreams: tuple[str, ...] = ()
    monthly_budget_usd: str | None = None
    cycle_day: int = 1


class PricingSettings(Struct, frozen=True, kw_only=True):
    books: tuple[str, ...] = ()
    accounts: tuple[Account, ...] = ()
    folder: str = ""
    """The folder of the configuration: books are looked up there."""

    @property
    def files(self) -> tuple[str, ...]:
        """The books' paths, from where the program runs."""
        return tuple(str(Path(self.folder) / book) for book in self.books)


class AlertSettings(Struct, frozen=True, kw_only=True):
    rules: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    """Addresses whose /metrics tell of logs and shippers; without any, the logs on this machine do."""
    receivers: tuple[dict[str, object], ...] = ()
    """As the file has them, checked; `gnomon.config.receivers` reads them."""
    folder: str = ""
    """The folder of the configuration: rule files, and files that receivers name, are looked up there."""


class Retention(Struct, frozen=True, kw_only=True):
    rows_seconds: float = 90 * 86400.0
    bodies_seconds: float = 7 * 86400.0
    events_seconds: float = 7 * 86400.0
    rollups_seconds: float = 3 * 365 * 86400.0


class HealthSettings(Struct, frozen=True, kw_only=True):
    """Where the processors and the alert service show how they are."""

    host: str = "127.0.0.1"
    ingest_port: int = 0
    """0: a free one."""
    alerts_port: int = 0


class Gnomon(Struct, frozen=True, kw_only=True):
    proxy: ProxySettings = ProxySettings()
    api: ApiSettings = ApiSettings()
    events: EventSettings = EventSettings()
    clickhouse: ClickHouseSettings = ClickHouseSettings()
    shadow: ShadowSettings = ShadowSettings()
    pricing: PricingSettings = PricingSettings()
    alerts: AlertSettings = AlertSettings()
    retention: Retention = Retention()
    health: HealthSettings = HealthSettings()


class Settings(Struct, frozen=True, kw_only=True):
    projects: tuple[Project, ...] = ()
    rate_limiters: dict[str, tuple[RateLimitRule, ...]] = {}
    log_level: str = "info"
    gnomon: Gnomon = Gnomon()
    config_hash: str = ""
    """16 hex digits over the effective routing, shadow and pricing settings, secrets left out."""
    warnings: tuple[str, ...] = ()
    """What the file says that has no effect here, each with its path."""
