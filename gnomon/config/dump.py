"""
The effective settings as a file: defaults spelled out, inheritance and vendors resolved, secrets masked.

The file loads again and means the same, but for its secrets: `load(dump(s))` has the hash and, printed again, the text
of `s`. Every member of the settings has its place in a table here; a test fails for one that has none.
"""

from collections.abc import Callable, Mapping
from typing import Final

import yaml
from msgspec import Struct

from gnomon.config import model
from gnomon.config.endpoints import MASK
from gnomon.config.model import Failsafe, Quantile, Settings
from gnomon.config.scalars import format_duration

Plain = dict[str, object]

_ELSEWHERE: Final = ""
"""Made from other members, or printed by a function of its own."""

PLACES: Final[Mapping[type[Struct], Mapping[str, str]]] = {
    model.Settings: {
        "log_level": "logLevel", "rate_limiters": _ELSEWHERE, "projects": "projects", "gnomon": "gnomon",
        "config_hash": _ELSEWHERE, "warnings": _ELSEWHERE,
    },
    model.Project: {
        "id": "id", "secrets": _ELSEWHERE, "access": _ELSEWHERE, "trusted_proxies": _ELSEWHERE,
        "rate_limit_budget": "rateLimitBudget", "cors": "cors", "allow_methods": "allowMethods",
        "ignore_methods": "ignoreMethods", "networks": "networks", "upstreams": "upstreams",
    },
    model.Network: {
        "architecture": "architecture", "id": _ELSEWHERE, "alias": "alias", "chain_id": "evm.chainId",
        "selection_mode": "selectionPolicy.mode", "failsafe": "failsafe",
        "accept_empty_beyond_head": "evm.acceptEmptyBeyondHead",
        "short_circuit_future_blocks": "evm.shortCircuitFutureBlocks",
        "served_tip_enabled_for": "evm.servedTip.enabledFor", "empty_result_accept": "evm.emptyResultAccept",
        "empty_result_confidence": "evm.emptyResultConfidence",
        "fallback_finality_depth": "evm.fallbackFinalityDepth", "max_retry_seconds": _ELSEWHERE,
        "rate_limit_budget": "rateLimitBudget", "directive_defaults": "directiveDefaults",
    },
    model.Upstream: {
        "id": "id", "endpoint": _ELSEWHERE, "display_endpoint": "endpoint", "network": _ELSEWHERE,
        "vendor": "vendor", "account": "account", "tier": _ELSEWHERE, "tags": "tags", "headers": _ELSEWHERE,
        "gzip_requests": "jsonRpc.enableGzip", "chain_id": "evm.chainId",
        "poll_interval_seconds": "evm.statePollerInterval", "lower": "evm.blockAvailability.lower",
        "upper": "evm.blockAvailability.upper", "skip_when_syncing": "evm.skipWhenSyncing",
        "allow_methods": "allowMethods", "ignore_methods": "ignoreMethods", "failsafe": _ELSEWHERE,
        "shadow": "shadow", "relay_error": "relayError", "validators": "validators", "probe": "routing.probe",
        "probe_per_second": "routing.probePerSecond", "probe_concurrency": "routing.probeConcurrency",
        "rate_limit_budget": "rateLimitBudget", "credit_units": "creditUnits", "has_archive": _ELSEWHERE,
    },
    model.BlockBound: {
        "exact_block": "exactBlock", "latest_minus": "latestBlockMinus", "earliest_plus": "earliestBlockPlus",
    },
    model.RelayError: {"status": "status", "header": "header", "value": "value"},
    model.ShadowPolicy: {
        "sample_rate": "sampleRate", "ignore_fields": "ignoreFields", "control": "control",
        "max_per_second": "maxPerSecond", "monthly_budget_usd": "monthlyBudgetUsd", "tolerate": "tolerate",
    },
    model.Failsafe: {
        "match_method": "matchMethod", "match_finality": "matchFinality", "timeout": "timeout.duration",
        "retry": "retry", "hedge": "hedge", "breaker": "circuitBreaker",
    },
    model.Quantile: {
        "base_seconds": "base", "quantile": "quantile", "min_seconds": "min", "max_seconds": "max",
    },
    model.Retry: {
        "max_attempts": "maxAttempts", "delay_seconds": "delay", "backoff_factor": "backoffFactor",
        "backoff_max_seconds": "backoffMaxDelay", "jitter_seconds": "jitter",
        "empty_result_accept": "emptyResultAccept", "empty_result_max_attempts": "emptyResultMaxAttempts",
    },
    model.Hedge: {"delay": "delay", "max_count": "maxCount"},
    model.Breaker: {
        "threshold": _ELSEWHERE, "open_for_seconds": "halfOpenAfter", "failure_count": "failureThresholdCount",
        "failure_capacity": "failureThresholdCapacity", "success_count": "successThresholdCount",
        "success_capacity": "successThresholdCapacity",
    },
    model.Secret: {"id": "secret.id", "sha256": _ELSEWHERE, "rate_limit_budget": "secret.rateLimitBudget"},
    model.NetworkAccess: {
        "id": _ELSEWHERE, "cidrs": "network.allowedCIDRs", "allow_localhost": "network.allowLocalhost",
        "trusted_proxies": "network.trustedProxies", "rate_limit_budget": "network.rateLimitBudget",
    },
    model.RateLimitRule: {
        "method": "method", "max_count": "maxCount", "period_seconds": "period", "wait_seconds": "waitTime",
        "per_ip": "perIP", "per_user": "perUser", "per_network": "perNetwork",
    },
    model.Cors: {
        "allowed_origins": "allowedOrigins", "allowed_methods": "allowedMethods", "allowed_headers": "allowedHeaders",
        "exposed_headers": "exposedHeaders", "allow_credentials": "allowCredentials", "max_age_seconds": _ELSEWHERE,
    },
    model.KafkaSettings: {
        "bootstrap_servers": "bootstrapServers", "topic_prefix": "topicPrefix", "partitions": "partitions",
        "security": _ELSEWHERE,
    },
    model.PricingSettings: {"books": "books", "accounts": _ELSEWHERE, "folder": _ELSEWHERE},
    model.Account: {
        "id": _ELSEWHERE, "upstreams": "upstreams", "monthly_budget_usd": "monthlyBudgetUsd", "cycle_day": "cycleDay",
    },
    model.AlertSettings: {"rules": "rules", "proxies": "proxies", "receivers": _ELSEWHERE, "folder": _ELSEWHERE},
}  # fmt: skip
"""Where a member stands in the file. Structs that are not here print each member under its name in camel case."""

_KEPT_EMPTY: Final = frozenset({"empty_result_accept"})
"""Members whose empty list says something."""


def dump(settings: Settings) -> str:
    """Return YAML of everything in force."""
    text = yaml.dump(_settings(settings), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return f"# What is in force; secrets are masked. Configuration {settings.config_hash}.\n{text}"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


def masked(value: object) -> object:
    """Return a value of the same shape with every text but names and types masked."""
    if isinstance(value, dict):
        return {k: (v if k == "name" else masked(v)) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item) for item in value]
    return MASK if value not in (None, "") else value


def _settings(settings: Settings) -> Plain:
    plain = _placed(settings)
    deadlines = [network.max_retry_seconds for project in settings.projects for network in project.networks]
    forwarders = dict.fromkeys(proxy for project in settings.projects for proxy in project.trusted_proxies)
    server: Plain = {"maxTimeout": format_duration(deadlines[0])} if deadlines else {}
    if forwarders:
        server["trustedIPForwarders"] = list(forwarders)
    budgets = [{"id": name, "rules": _plain("rules", rules)} for name, rules in settings.rate_limiters.items()]
    own = plain.pop("gnomon")
    return {
        "logLevel": plain.pop("logLevel"),
        **({"server": server} if server else {}),
        **({"rateLimiters": {"budgets": budgets}} if budgets else {}),
        **plain,
        "gnomon": own,
    }


def _placed(struct: Struct) -> Plain:
    """Return a struct's members in their places, those that say nothing left out."""
    places = PLACES.get(type(struct))
    out: Plain = {}
    for name in struct.__struct_fields__:
        place = _camel(name) if places is None else places[name]
        value = getattr(struct, name)
        if place != _ELSEWHERE and (value not in (None, "", (), {}) or (value == () and name in _KEPT_EMPTY)):
            _put(out, place, _plain(name, value))
    add = _ADDED.get(type(struct))
    if add is not None:
        add(struct, out)
    return out


def _plain(name: str, value: object) -> object:
    if isinstance(value, Struct):
        return _placed(value)
    if isinstance(value, dict):
        return {key: _plain("", inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain("", item) for item in value]
    is_period = name.endswith("_seconds") or name in ("timeout", "delay")
    return format_duration(float(value)) if is_period and isinstance(value, int | float) else value


def _put(out: Plain, place: str, value: object) -> None:
    *sections, last = place.split(".")
    for section in sections:
        inner = out.setdefault(section, {})
        assert isinstance(inner, dict)
        out = inner
    out[last] = value


def _camel(name: str) -> str:
    head, *rest = name.removesuffix("_seconds").split("_")
    return head + "".join(part.capitalize() for part in rest)


def _add_to_project(project: Struct, out: Plain) -> None:
    assert isinstance(project, model.Project)
    strategies: list[object] = []
    for secret in project.secrets:
        entry: Plain = {"type": "secret", **_placed(secret)}
        _put(entry, "secret.value", f"{MASK} {secret.id}")  # apart from the others: two of a kind are refused
        strategies.append(entry)
    strategies += [{"type": "network", **_placed(access)} for access in project.access]
    if strategies:
        out["auth"] = {"strategies": strategies}


def _add_to_network(network: Struct, out: Plain) -> None:
    assert isinstance(network, model.Network)
    if network.architecture != "evm":
        out["id"] = network.id
        out.pop("evm", None)


def _add_to_upstream(upstream: Struct, out: Plain) -> None:
    assert isinstance(upstream, model.Upstream)
    if not upstream.endpoint:
        out.pop("endpoint", None)
    if upstream.chain_id is None:
        out["network"] = upstream.network
    # the user of an endpoint became a header: it stands in the endpoint's mask
    is_in_endpoint = f"//{MASK}@" in upstream.display_endpoint
    if upstream.has_archive is not None:
        _put(out, "evm.nodeType", "archive" if upstream.has_archive else "full")
    headers = {n: MASK for n in upstream.headers if not (is_in_endpoint and n.lower() == "authorization")}
    if headers:
        _put(out, "jsonRpc.headers", headers)
    breakers = [policy.breaker for policy in upstream.failsafe if policy.breaker and policy.breaker.threshold]
    if breakers:
        period = format_duration(breakers[0].open_for_seconds)
        out["breaker"] = {"threshold": breakers[0].threshold, "openFor": period}
    if upstream.failsafe:
        out["failsafe"] = [_placed(policy) for policy in upstream.failsafe]


def _add_to_failsafe(policy: Struct, out: Plain) -> None:
    assert isinstance(policy, Failsafe)
    if policy.breaker is not None and policy.breaker.threshold:
        out.pop("circuitBreaker")  # printed once, as the upstream's own


def _add_to_shadow(shadow: Struct, out: Plain) -> None:
    rest = dict(out)
    out.clear()
    out.update({"enabled": True, **rest})


def _add_to_quantile(quantile: Struct, out: Plain) -> None:
    assert isinstance(quantile, Quantile)
    if not quantile.base_seconds:
        out.pop("base")


def _add_to_cors(cors: Struct, out: Plain) -> None:
    assert isinstance(cors, model.Cors)
    out["maxAge"] = cors.max_age_seconds


def _add_to_kafka(kafka: Struct, out: Plain) -> None:
    assert isinstance(kafka, model.KafkaSettings)
    if kafka.security:
        out["security"] = {key: MASK if key == "password" else value for key, value in kafka.security.items()}


def _add_to_pricing(pricing: Struct, out: Plain) -> None:
    assert isinstance(pricing, model.PricingSettings)
    if pricing.accounts:
        out["accounts"] = {account.id: _placed(account) for account in pricing.accounts}


def _add_to_alerts(alerts: Struct, out: Plain) -> None:
    assert isinstance(alerts, model.AlertSettings)
    if alerts.receivers:
        out["receivers"] = masked(alerts.receivers)


_ADDED: Final[Mapping[type[Struct], Callable[[Struct, Plain], None]]] = {
    model.Project: _add_to_project,
    model.Network: _add_to_network,
    model.Upstream: _add_to_upstream,
    model.ShadowPolicy: _add_to_shadow,
    model.Quantile: _add_to_quantile,
    model.Cors: _add_to_cors,
    model.KafkaSettings: _add_to_kafka,
    model.PricingSettings: _add_to_pricing,
    model.AlertSettings: _add_to_alerts,
    Failsafe: _add_to_failsafe,
}
"""What the tables cannot say, added after them."""
