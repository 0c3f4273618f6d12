"""Who may call, from where, how often: `auth`, `cors`, `rateLimiters`."""

import hashlib
import ipaddress
import re
from pathlib import Path

from gnomon.config.findings import Findings
from gnomon.config.model import Cors, NetworkAccess, RateLimitRule, Secret
from gnomon.config.policies import check_pattern
from gnomon.config.scalars import parse_duration
from gnomon.config.schema import nearest
from gnomon.config.values import Values

PERIOD_SECONDS = {
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86400.0,
    "week": 7 * 86400.0,
    "month": 30 * 86400.0,
    "year": 365 * 86400.0,
}
_OTHER_TYPES = ("jwt", "siwe", "database", "x402")
_SUBDOMAINS = re.compile(r"[a-z][a-z0-9+.-]*://\*\.[^*/]+\Z", re.IGNORECASE)
"""An origin whose first label is open."""
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


def auth(
    project: Values, forwarders: tuple[str, ...], folder: Path, findings: Findings
) -> tuple[tuple[Secret, ...], tuple[NetworkAccess, ...]]:
    """
    Return the client secrets (as hashes) and the addresses let in.

    Args:
        project: its `auth.strategies` are read.
        forwarders: ranges trusted beside each strategy's own proxies.
        folder: where `valueFile` is looked up.
    """
    secrets: list[Secret] = []
    access: list[NetworkAccess] = []
    block = project.section("auth")
    if "auth" in project and not block.sections("strategies") and not block.wrong:
        findings.problem(block.path or project.at("auth"), "has no strategies: the project would be open")
    for strategy in block.sections("strategies"):
        kind = strategy.text("type") or _implied(strategy)
        if kind == "secret":
            found = _secret(strategy, len(secrets), folder, findings)
            if found is not None:
                secrets.append(found)
        elif kind == "network":
            access.append(_network(strategy, len(access), forwarders, findings))
        elif kind in _OTHER_TYPES:
            findings.guard(strategy.at("type"), f"clients are not let in by `{kind}`; known here: secret, network")
        elif "type" in strategy:
            findings.problem(strategy.at("type"), f"unknown type{nearest(kind, ['secret', 'network'])}")
        elif strategy.lacks("type"):
            findings.problem(strategy.at("type"), "is missing, and no single block beside it tells")
    seen: set[str] = set()
    for secret in secrets:
        if secret.sha256 in seen:
            findings.problem(block.at("strategies"), f"two strategies have the same secret; one is `{secret.id}`")
        seen.add(secret.sha256)
    return tuple(secrets), tuple(access)


def _implied(strategy: Values) -> str:
    """Return the type that the one block of a strategy stands for, as eRPC takes it; "" where there is no such one."""
    given = [name for name in ("secret", "network", *_OTHER_TYPES) if name in strategy]
    return given[0] if len(given) == 1 and strategy.lacks("type") else ""


def trusted(forwarders: tuple[str, ...], findings: Findings) -> tuple[str, ...]:
    """Return the ranges of `server.trustedIPForwarders`."""
    return tuple(
        found
        for position, text in enumerate(forwarders)
        for found in _range(text, f"server.trustedIPForwarders[{position}]", findings)
    )


def _secret(strategy: Values, index: int, folder: Path, findings: Findings) -> Secret | None:
    secret = strategy.section("secret")
    given = [name for name in ("value", "valueFile", "sha256") if name in secret]
    if secret.wrong:
        return None
    if len(given) != 1:
        said = " and ".join(given) if given else "none"
        findings.problem(strategy.at("secret"), f"needs one of value, valueFile, sha256; found {said}")
        return None
    if given == ["sha256"]:
        digest = secret.text("sha256").lower()
        if not _SHA256.match(digest):
            findings.problem(secret.at("sha256"), "is not a SHA-256: 64 hex digits")
            return None
    elif given == ["valueFile"]:
        file = folder / secret.text("valueFile")
        try:
            text = file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
            findings.problem(secret.at("valueFile"), f"cannot read {file}: {reason}")
            return None
        if not text:
            findings.problem(secret.at("valueFile"), f"{file} is empty")
            return None
        digest = hashlib.sha256(text.encode()).hexdigest()
    else:
        digest = hashlib.sha256(secret.text("value").encode()).hexdigest()
    budget = secret.text("rateLimitBudget") or strategy.text("rateLimitBudget")
    return Secret(id=secret.text("id", f"secret-{index}"), sha256=digest, rate_limit_budget=budget)


def _network(strategy: Values, index: int, forwarders: tuple[str, ...], findings: Findings) -> NetworkAccess:
    block = strategy.section("network")
    ranges: list[str] = []
    for name in ("allowedIPs", "allowedCIDRs"):
        for position, text in enumerate(block.texts(name)):
            ranges.extend(_range(text, f"{block.at(name)}[{position}]", findings))
    proxies: list[str] = []
    for position, text in enumerate(block.texts("trustedProxies")):
        proxies.extend(_range(text, f"{block.at('trustedProxies')}[{position}]", findings))
    proxies.extend(forwarders)
    if not ranges and not block.flag("allowLocalhost"):
        findings.problem(strategy.at("network"), "lets nobody in: name allowedIPs, allowedCIDRs or allowLocalhost")
    budget = block.text("rateLimitBudget") or strategy.text("rateLimitBudget")
    return NetworkAccess(
        id=f"network-{index}",
        cidrs=tuple(dict.fromkeys(ranges)),
        allow_localhost=block.flag("allowLocalhost"),
        trusted_proxies=tuple(dict.fromkeys(proxies)),
        rate_limit_budget=budget,
    )


def _range(text: str, path: str, findings: Findings) -> list[str]:
    try:
        return [str(ipaddress.ip_network(text, strict=False))]
    except ValueError:
        findings.problem(path, f"{text!r} is neither an address nor a range, as in 10.0.0.0/8")
        return []


def cors(project: Values, findings: Findings) -> Cors | None:
    """Return the rules for web pages, or None where there are none (no page may call)."""
    if "cors" not in project:
        return None
    block = project.section("cors")
    origins = block.texts("allowedOrigins")
    for index, origin in enumerate(origins):
        if "*" in origin and origin != "*" and not _SUBDOMAINS.match(origin):
            findings.warn(
                f"{block.at('allowedOrigins')}[{index}]",
                f"ignored: {origin!r} lets nobody in; whole origins, `https://*.example.com` and `*` match",
            )
    if block.flag("allowCredentials") and "*" in origins:
        findings.problem(block.at("allowCredentials"), "with `*` among allowedOrigins would let every page use cookies")
    return Cors(
        allowed_origins=origins,
        allowed_methods=block.texts("allowedMethods") or ("GET", "POST", "OPTIONS"),
        allowed_headers=block.texts("allowedHeaders") or ("content-type", "authorization", "x-erpc-secret-token"),
        exposed_headers=block.texts("exposedHeaders"),
        allow_credentials=block.flag("allowCredentials"),
        max_age_seconds=block.integer("maxAge", 3600),
    )


def budgets(root: Values, findings: Findings) -> dict[str, tuple[RateLimitRule, ...]]:
    """Return the rate limit budgets by id."""
    found: dict[str, tuple[RateLimitRule, ...]] = {}
    for budget in root.section("rateLimiters").sections("budgets"):
        name = budget.text("id")
        if not name:
            if budget.lacks("id"):
                findings.problem(budget.at("id"), "is missing")
            continue
        if name in found:
            findings.problem(budget.at("id"), f"two budgets are called `{name}`")
        if not budget.sections("rules"):
            findings.problem(budget.at("rules"), "is missing: a budget without rules limits nothing")
        rules = [_rule(rule, findings) for rule in budget.sections("rules")]
        found[name] = tuple(rule for rule in rules if rule is not None)
    return found


def _rule(rule: Values, findings: Findings) -> RateLimitRule | None:
    if "maxCount" not in rule:
        if rule.lacks("maxCount"):
            findings.problem(rule.at("maxCount"), "is missing")
        return None
    period = _period(rule.text("period", "second"))
    if period is None:
        known = ", ".join(PERIOD_SECONDS)
        findings.problem(
            rule.at("period"), f"{rule.text('period')!r} is no period: one of {known}, or its length as in 1m"
        )
        return None
    method = rule.text("method", "*")
    check_pattern(method, rule.at("method"), findings)
    return RateLimitRule(
        method=method,
        max_count=rule.integer("maxCount"),
        period_seconds=period,
        wait_seconds=rule.number("waitTime"),
        per_ip=rule.flag("perIP"),
        per_user=rule.flag("perUser"),
        per_network=rule.flag("perNetwork"),
    )


def _period(text: str) -> float | None:
    if text.lower() in PERIOD_SECONDS:
        return PERIOD_SECONDS[text.lower()]
    try:
        seconds = parse_duration(text)
    except ValueError:
        return None
    return seconds if seconds > 0 else None
