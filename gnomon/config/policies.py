"""Failsafe policies: from the keys of `failsafe[]` and `breaker` to the effective settings."""

from typing import Literal

from msgspec import structs

from gnomon.config.findings import Findings
from gnomon.config.model import Breaker, Duration, Failsafe, Hedge, Quantile, Retry
from gnomon.config.patterns import PatternError, alternatives, compiled
from gnomon.config.values import Values

Scope = Literal["network", "upstream"]

TIMEOUT_MIN_SECONDS, TIMEOUT_MAX_SECONDS = 0.5, 30.0
HEDGE_MIN_SECONDS, HEDGE_MAX_SECONDS = 0.1, 999.0


def failsafe(entries: list[Values], scope: Scope, findings: Findings) -> tuple[Failsafe, ...]:
    """Return the entries in order, one for each pattern of `a|b`; the first that fits a request is used."""
    return tuple(
        built
        for entry in entries
        for policy in [_entry(entry, scope, findings)]
        for built in _by_pattern(policy, entry, findings)
    )


def _by_pattern(policy: Failsafe, entry: Values, findings: Findings) -> list[Failsafe]:
    patterns = alternatives(policy.match_method)
    for pattern in patterns:
        check_pattern(pattern, entry.at("matchMethod"), findings)
    return [structs.replace(policy, match_method=pattern) for pattern in patterns]


def check_pattern(pattern: str, path: str, findings: Findings) -> None:
    """Note a pattern of methods that cannot be understood."""
    try:
        if not pattern:
            raise PatternError("a name is missing")
        compiled(pattern)
    except PatternError as error:
        findings.problem(
            path, f"{pattern!r} is not a pattern of methods ({error}): names with `*`, joined by `|`, `&`, `!`, `( )`"
        )


def _entry(entry: Values, scope: Scope, findings: Findings) -> Failsafe:
    if scope == "network" and "circuitBreaker" in entry:
        findings.problem(
            entry.at("circuitBreaker"), "a breaker belongs to an upstream: move it to upstreams[].failsafe"
        )
    return Failsafe(
        match_method=entry.text("matchMethod", "*"),
        match_finality=entry.texts("matchFinality"),
        timeout=_timeout(entry.section("timeout"), findings) if "timeout" in entry else None,
        retry=_retry(entry.section("retry")) if "retry" in entry else None,
        hedge=_hedge(entry.section("hedge"), findings) if "hedge" in entry else None,
        breaker=_window(entry.section("circuitBreaker"), findings) if "circuitBreaker" in entry else None,
    )


def with_breaker(entries: tuple[Failsafe, ...], breaker: Values, findings: Findings) -> tuple[Failsafe, ...]:
    """
    Return the entries with the upstream's own `breaker` in each, and one for all other methods after them.

    `breaker` and `circuitBreaker` together are a problem.
    """
    own = Breaker(threshold=breaker.integer("threshold", 3), open_for_seconds=breaker.number("openFor", 10.0))
    if any(entry.breaker is not None for entry in entries):
        findings.problem(breaker.path, "`breaker` and `failsafe[].circuitBreaker` exclude each other")
    out = tuple(structs.replace(entry, breaker=own) for entry in entries)
    covers_all = any(entry.match_method == "*" and not entry.match_finality for entry in entries)
    return out if covers_all else (*out, Failsafe(breaker=own))


def _timeout(timeout: Values, findings: Findings) -> Duration | None:
    spec = _adaptive(timeout, "duration", ("quantile", "minDuration", "maxDuration"))
    if spec is None:
        if not timeout.wrong:
            findings.problem(timeout.at("duration"), "is missing")
        return None
    base, quantile, least, most = spec
    if not quantile:
        if base is None or base == 0:
            findings.problem(timeout.at("duration"), "needs a base above 0, or a quantile")
            return None
        return base
    floor = least if least is not None else (base / 2 if base else TIMEOUT_MIN_SECONDS)
    return _quantile(timeout.at("duration"), quantile, floor, most, TIMEOUT_MAX_SECONDS, base or 0.0, findings)


def _hedge(hedge: Values, findings: Findings) -> Hedge | None:
    spec = _adaptive(hedge, "delay", ("quantile", "minDelay", "maxDelay"))
    count = hedge.integer("maxCount", 1)
    if spec is None:
        if not hedge.wrong:
            findings.problem(hedge.at("delay"), "is missing")
        return None
    base, quantile, least, most = spec
    if count == 0:
        return None
    if not quantile:
        return Hedge(delay=base or 0.0, max_count=count)
    floor = least if least is not None else HEDGE_MIN_SECONDS
    delay = _quantile(hedge.at("delay"), quantile, floor, most, HEDGE_MAX_SECONDS, base or 0.0, findings)
    return Hedge(delay=delay, max_count=count) if delay is not None else None


Spec = tuple[float | None, float, float | None, float | None]
"""Base, quantile (0: none), least, most; seconds."""


def _adaptive(policy: Values, name: str, legacy: tuple[str, str, str]) -> Spec | None:
    """Return the parts of a duration in its new form or with eRPC's older siblings; None where nothing is given."""
    quantile_key, least_key, most_key = legacy
    if name not in policy and quantile_key not in policy:
        return None
    value = policy.items.get(name)
    parts = value if isinstance(value, Values) else Values(policy.at(name), {})
    if isinstance(value, int | float):
        parts.items["base"] = float(value)

    def either(new: str, old: str) -> float | None:
        if new in parts:
            return parts.number(new)
        return policy.number(old) if old in policy else None

    return (
        parts.number("base") if "base" in parts else None,
        either("quantile", quantile_key) or 0.0,
        either("min", least_key),
        either("max", most_key),
    )


def _quantile(
    path: str, quantile: float, least: float, most: float | None, default_most: float, base: float, findings: Findings
) -> Quantile | None:
    top = most if most else max(default_most, least)
    if quantile >= 1:
        findings.problem(path, f"the quantile {quantile:g} must lie between 0 and 1, exclusive")
        return None
    if least > top:
        findings.problem(path, f"the least ({least:g} s) is above the most ({top:g} s)")
        return None
    return Quantile(quantile=quantile, min_seconds=least, max_seconds=top, base_seconds=base)


def _retry(retry: Values) -> Retry:
    accept = "emptyResultAccept" if "emptyResultAccept" in retry else "emptyResultIgnore"
    return Retry(
        max_attempts=retry.integer("maxAttempts", 3),
        delay_seconds=retry.number("delay"),
        backoff_factor=retry.number("backoffFactor", 1.2),
        backoff_max_seconds=retry.number("backoffMaxDelay", 3.0),
        jitter_seconds=retry.number("jitter"),
        empty_result_accept=retry.texts(accept) if accept in retry else None,
        empty_result_max_attempts=retry.integer("emptyResultMaxAttempts", 2),
    )


def _window(breaker: Values, findings: Findings) -> Breaker:
    built = Breaker(
        open_for_seconds=breaker.number("halfOpenAfter", 300.0),
        failure_count=breaker.integer("failureThresholdCount", 20),
        failure_capacity=breaker.integer("failureThresholdCapacity", 80),
        success_count=breaker.integer("successThresholdCount", 8),
        success_capacity=breaker.integer("successThresholdCapacity", 10),
    )
    for count, capacity, name in (
        (built.failure_count, built.failure_capacity, "failureThreshold"),
        (built.success_count, built.success_capacity, "successThreshold"),
    ):
        if count > capacity:
            findings.problem(breaker.path, f"{name}Count ({count}) is above {name}Capacity ({capacity}): never reached")
    return built
