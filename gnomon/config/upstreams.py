"""
Upstreams: defaults, vendors and providers expanded, one effective `Upstream` for each endpoint and network.

A vendor's scheme (`alchemy://KEY`) or a provider stands for one upstream on each chain of the project that the vendor
serves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gnomon.config import endpoints, vendors
from gnomon.config.comparison import check_masks, check_tolerances
from gnomon.config.findings import Findings
from gnomon.config.model import BlockBound, RelayError, ShadowPolicy, Tier, Upstream
from gnomon.config.policies import check_pattern, failsafe, with_breaker
from gnomon.config.schema import nearest
from gnomon.config.values import Values

POLL_SECONDS, FALLBACK_POLL_SECONDS = 2.0, 60.0
FULL_NODE_BLOCKS = 128
"""What a node that prunes still has, as eRPC takes it."""
TEMPLATE = "<PROVIDER>-<NETWORK>"


@dataclass(frozen=True, slots=True)
class Draft:
    """One endpoint on one network, its values merged but not yet read."""

    values: Values
    id: str
    network: str
    chain_id: int | None
    url: str
    headers: dict[str, str]
    vendor: str
    display: str


def drafts(project: Values, declared: Sequence[str], generic: Sequence[str], findings: Findings) -> list[Draft]:
    """
    Return the project's endpoints in the order of the file, those of providers last.

    Args:
        project: one project.
        declared: EVM networks that the file lists, as `evm:1`.
        generic: ids of its generic networks.
    """
    defaults = project.section("upstreamDefaults")
    for name in ("id", "endpoint"):
        if name in defaults:
            findings.problem(defaults.at(name), "belongs to one upstream, not to the defaults")
    found: list[Draft] = []
    names: set[str] = set()
    listed = [own.over(defaults) for own in project.sections("upstreams")]
    chains = _chains(listed, declared)
    for values in listed:
        for draft in _drafts(values, chains, generic, findings):
            name = draft.id if "id" in values else _free(draft.id, names)
            names.add(name)
            found.append(replace(draft, id=name))
    for provider in project.sections("providers"):
        found.extend(_provided(provider, defaults, chains, findings))
    return found


def _free(name: str, taken: set[str]) -> str:
    """Return the name, or with `-2`, `-3`… behind it the first that is free."""
    candidates = (name if number == 1 else f"{name}-{number}" for number in range(1, len(taken) + 2))
    return next(candidate for candidate in candidates if candidate not in taken)


def _chains(listed: Sequence[Values], declared: Sequence[str]) -> list[int]:
    """Return the project's chains: those it lists, and those that its upstreams name."""
    chains = [int(network.removeprefix("evm:")) for network in declared]
    for values in listed:
        chain = _named_chain(values)
        if chain is not None:
            chains.append(chain)
    return list(dict.fromkeys(chains))


def _named_chain(values: Values) -> int | None:
    """Return the chain that an upstream names itself: by `evm.chainId`, by `network`, or by its vendor's host."""
    evm = values.section("evm")
    if "chainId" in evm:
        return evm.integer("chainId")
    network = values.text("network")
    if network.startswith("evm:") and network[4:].isdigit():
        return int(network[4:])
    if "network" in values or "endpoint" not in values:
        return None
    url = values.text("endpoint")
    return None if endpoints.check(url) else vendors.chain_by_url(url)


def _drafts(values: Values, chains: list[int], generic: Sequence[str], findings: Findings) -> list[Draft]:
    endpoint = values.text("endpoint")
    is_control = values.section("shadow").flag("enabled") and values.section("shadow").flag("control")
    if is_control and endpoint:
        findings.warn(values.at("endpoint"), "is not called: a control asks the upstream that served")
    if not endpoint and is_control:
        return _control(values, chains, generic, findings)
    if not endpoint:
        if values.lacks("endpoint"):
            findings.problem(values.at("endpoint"), "is missing")
        return []
    scheme, key = vendors.split_scheme(endpoint) or ("", "")
    if scheme and not vendors.is_transport(scheme):
        return _from_scheme(values, scheme, key, chains, findings)
    wrong = endpoints.check(endpoint)
    if wrong:
        findings.problem(values.at("endpoint"), wrong)
        return []
    network = values.text("network")
    chain = _named_chain(values)
    if chain is not None and network and network != f"evm:{chain}":
        findings.problem(values.at("network"), f"`{network}` is not evm:{chain}, the chain of evm.chainId")
        return []
    if network and chain is None and network not in generic:
        findings.problem(values.at("network"), f"no network is called `{network}`{nearest(network, list(generic))}")
        return []
    if chain is None and not network:
        if len(chains) == 1:
            chain = chains[0]
        elif not chains and len(generic) == 1:
            network = generic[0]
        elif values.section("evm").lacks("chainId"):
            findings.problem(values.at("evm.chainId"), "is missing: the endpoint is not asked which chain it serves")
            return []
        else:
            return []
    named = values.text("vendor") or values.text("vendorName")
    owner = vendors.by_host(endpoint)
    bare, headers = endpoints.without_user(endpoint)
    return [
        Draft(
            values=values,
            id=values.text("id") or endpoints.host_of(endpoint),
            network=f"evm:{chain}" if chain is not None else network,
            chain_id=chain,
            url=bare,
            headers=headers,
            vendor=_vendor_name(named) if named else (owner.name if owner else ""),
            display=endpoints.display(endpoint),
        )
    ]


def _control(values: Values, chains: list[int], generic: Sequence[str], findings: Findings) -> list[Draft]:
    """Return a shadow without an endpoint, for it asks the upstream that served."""
    network, chain = values.text("network"), _named_chain(values)
    if chain is None and not network:
        known = [*(f"evm:{one}" for one in chains), *generic]
        if len(known) != 1:
            findings.problem(values.at("network"), "is missing: the control has no endpoint that tells its chain")
            return []
        network = known[0]
        chain = chains[0] if chains else None
    elif chain is None and network not in generic:
        findings.problem(values.at("network"), f"no network is called `{network}`{nearest(network, list(generic))}")
        return []
    return [
        Draft(
            values=values,
            id=values.text("id") or "control",
            network=f"evm:{chain}" if chain is not None else network,
            chain_id=chain,
            url="",
            headers={},
            vendor="",
            display="the upstream that served",
        )
    ]


def _vendor_name(name: str) -> str:
    """Return a shipped vendor's own name for any of its names, else the name as it is."""
    known = vendors.find(name)
    return known.name if known else name


def _vendor(name: str, path: str, what: str, findings: Findings) -> vendors.Vendor | None:
    vendor = vendors.find(name)
    if vendor is None:
        names = [known.name for known in vendors.VENDORS.values() if known.endpoint]
        hint = nearest(name, names) or f"; known: {', '.join(names)}"
        findings.problem(path, f"`{name}` is no shipped vendor{hint}; give the full URL and `vendor: {name}`")
        return None
    if vendor.endpoint is None:
        findings.problem(
            path, f"{vendor.name} has no {what}: {vendor.note}; give the full URL and `vendor: {vendor.name}`"
        )
        return None
    return vendor


def _from_scheme(values: Values, scheme: str, key: str, chains: list[int], findings: Findings) -> list[Draft]:
    vendor = _vendor(scheme, values.at("endpoint"), "endpoints that a key alone leads to", findings)
    if vendor is None:
        return []
    if not key.strip("/"):
        findings.problem(values.at("endpoint"), f"the key is missing: {scheme}://KEY")
        return []
    chain = _named_chain(values)
    wanted = [chain] if chain is not None else chains
    served = [one for one in wanted if one in vendor.chains()]
    if not served:
        chains_text = ", ".join(str(one) for one in wanted) or "none is named; give evm.chainId"
        findings.problem(
            values.at("endpoint"),
            f"{vendor.name} is not known to serve this project's chains ({chains_text}); give the full URL",
        )
        return []
    base = values.text("id") or vendor.name
    return [
        _expanded(values, vendor, key.strip("/"), one, base if len(served) == 1 else f"{base}-evm-{one}")
        for one in served
    ]


def _expanded(values: Values, vendor: vendors.Vendor, key: str, chain: int, name: str) -> Draft:
    assert vendor.endpoint is not None
    endpoint = vendor.endpoint(vendor.chains()[chain], key)
    return Draft(
        values=values,
        id=name,
        network=f"evm:{chain}",
        chain_id=chain,
        url=endpoint.url,
        headers=dict(endpoint.headers),
        vendor=_vendor_name(values.text("vendor") or values.text("vendorName") or vendor.name),
        display=endpoints.display(endpoint.url, key),
    )


def _provided(provider: Values, defaults: Values, chains: list[int], findings: Findings) -> list[Draft]:
    if "vendor" not in provider:
        if provider.lacks("vendor"):
            findings.problem(provider.at("vendor"), "is missing")
        return []
    vendor = _vendor(provider.text("vendor"), provider.at("vendor"), "endpoints that a key alone leads to", findings)
    if vendor is None:
        return []
    settings = provider.items.get("settings", {})
    assert isinstance(settings, dict)
    known = ("apiKey", "creditUnits")
    for name in settings:
        if name not in known:
            findings.warn(f"{provider.at('settings')}.{name}", "ignored: only apiKey and creditUnits are read")
    key = str(settings.get("apiKey") or "")
    if not key:
        findings.problem(provider.at("settings.apiKey"), "is missing")
        return []
    only = _networks(provider, "onlyNetworks", findings)
    left_out = set(_networks(provider, "ignoreNetworks", findings))
    wanted = [chain for chain in (only or chains) if chain not in left_out]
    served = [chain for chain in wanted if chain in vendor.chains()]
    for chain in only:
        if chain not in vendor.chains():
            findings.problem(
                provider.at("onlyNetworks"), f"{vendor.name} is not known to serve evm:{chain}; give the full URL"
            )
    if not served:
        findings.problem(
            provider.path,
            f"stands for no upstream: {vendor.name} serves none of the project's chains; name onlyNetworks",
        )
    template = provider.text("upstreamIdTemplate", TEMPLATE)
    units = settings.get("creditUnits")
    found = []
    for chain in served:
        network = f"evm:{chain}"
        own = _override(provider.section_map("overrides"), network)
        values = Values(provider.path, dict(own.items)).over(defaults)
        if "creditUnits" not in values and isinstance(units, dict):
            values.items["creditUnits"] = {str(name): str(value) for name, value in units.items()}
        name = (
            template.replace("<PROVIDER>", provider.text("id") or vendor.name)
            .replace("<VENDOR>", vendor.name)
            .replace("<NETWORK>", network)
            .replace("<EVM_CHAIN_ID>", str(chain))
        )
        found.append(_expanded(values, vendor, key, chain, values.text("id") or name))
    return found


def _override(overrides: dict[str, Values], network: str) -> Values:
    """Return the settings for a network: those under its own name over `evm:*` over `*`."""
    merged = Values("", {})
    for name in ("*", "evm:*", network):
        if name in overrides:
            merged = overrides[name].over(merged)
    return merged


def _networks(provider: Values, name: str, findings: Findings) -> list[int]:
    chains = []
    for index, text in enumerate(provider.texts(name)):
        if text.startswith("evm:") and text[4:].isdigit():
            chains.append(int(text[4:]))
        else:
            findings.problem(f"{provider.at(name)}[{index}]", f"{text!r} is not a network of the form evm:1")
    return chains


def build(draft: Draft, findings: Findings) -> Upstream:
    """Return the effective upstream."""
    values = draft.values
    evm = values.section("evm")
    tier, tags = _tier(values, findings)
    check_patterns(values, findings)
    policies = failsafe(values.sections("failsafe"), "upstream", findings)
    if "breaker" in values:
        policies = with_breaker(policies, values.section("breaker"), findings)
    interval = evm.number("statePollerInterval") or (FALLBACK_POLL_SECONDS if tier == "fallback" else POLL_SECONDS)
    lower, upper = (_bound(evm.section("blockAvailability"), name, findings) for name in ("lower", "upper"))
    if lower is None and evm.integer("maxAvailableRecentBlocks"):
        lower = BlockBound(latest_minus=evm.integer("maxAvailableRecentBlocks"))
    elif lower is None and evm.text("nodeType") == "full" and "blockAvailability" not in evm:
        lower = BlockBound(latest_minus=FULL_NODE_BLOCKS)
    routing = values.section("routing")
    return Upstream(
        id=draft.id,
        network=draft.network,
        endpoint=draft.url,
        display_endpoint=draft.display,
        vendor=draft.vendor,
        account=values.text("account"),
        tier=tier,
        tags=tags,
        headers=_headers(draft, findings),
        gzip_requests=values.section("jsonRpc").flag("enableGzip"),
        chain_id=draft.chain_id,
        poll_interval_seconds=interval,
        lower=lower,
        upper=upper,
        skip_when_syncing=evm.flag("skipWhenSyncing"),
        allow_methods=values.texts("allowMethods"),
        ignore_methods=values.texts("ignoreMethods"),
        failsafe=policies,
        shadow=_shadow(values.section("shadow"), findings) if tier == "shadow" else None,
        relay_error=_relay(values.section("relayError")) if "relayError" in values else None,
        validators=values.texts_map("validators"),
        probe=routing.flag("probe") if "probe" in routing else None,
        probe_per_second=routing.number("probePerSecond", 1.0),
        probe_concurrency=routing.integer("probeConcurrency", 1),
        rate_limit_budget=values.text("rateLimitBudget"),
        credit_units=values.text_map("creditUnits"),
        has_archive={"archive": True, "full": False}.get(evm.text("nodeType")),
    )


def check_patterns(values: Values, findings: Findings) -> None:
    """Note each entry of `allowMethods` and `ignoreMethods` that is no pattern."""
    for name in ("allowMethods", "ignoreMethods"):
        for index, pattern in enumerate(values.texts(name)):
            check_pattern(pattern, f"{values.at(name)}[{index}]", findings)


def _tier(values: Values, findings: Findings) -> tuple[Tier, tuple[str, ...]]:
    tags = list(values.texts("tags"))
    group = values.text("group")
    if group and f"tier:{group}" not in tags:
        tags.append(f"tier:{group}")
    shadow = values.section("shadow")
    if shadow.flag("enabled"):
        return "shadow", tuple(tags)
    if "shadow" in values and "enabled" not in shadow:
        findings.warn(shadow.path, "enabled is not true: this upstream serves clients")
    return ("fallback" if "tier:fallback" in tags else "primary"), tuple(tags)


def _headers(draft: Draft, findings: Findings) -> dict[str, str]:
    own = draft.values.section("jsonRpc").text_map("headers")
    path = draft.values.at("jsonRpc.headers")
    for name, value in own.items():
        if not name or not all(c.isalnum() or c in "!#$%&'*+-.^_`|~" for c in name) or not name.isascii():
            findings.problem(path, f"{name!r} is not the name of a header")
        if any(ord(c) < 32 or ord(c) == 127 for c in value):
            findings.problem(f"{path}.{name}", "has control characters")
    present = {name.lower() for name in own}
    if "authorization" in present and any(name.lower() == "authorization" for name in draft.headers):
        findings.problem(f"{path}.Authorization", "stands beside a user or key in the endpoint: only one can be sent")
    return {**{name: value for name, value in draft.headers.items() if name.lower() not in present}, **own}


def _bound(availability: Values, name: str, findings: Findings) -> BlockBound | None:
    if name not in availability:
        return None
    bound = availability.section(name)
    given = [key for key in ("exactBlock", "latestBlockMinus", "earliestBlockPlus") if key in bound]
    if len(given) != 1:
        said = ", ".join(given) if given else "none"
        findings.problem(
            bound.path, f"needs exactly one of exactBlock, latestBlockMinus, earliestBlockPlus; found {said}"
        )
        return None
    return BlockBound(
        exact_block=bound.integer("exactBlock") if given == ["exactBlock"] else None,
        latest_minus=bound.integer("latestBlockMinus") if given == ["latestBlockMinus"] else None,
        earliest_plus=bound.integer("earliestBlockPlus") if given == ["earliestBlockPlus"] else None,
    )


def _shadow(shadow: Values, findings: Findings) -> ShadowPolicy:
    masks = shadow.texts_map("ignoreFields")
    check_masks(masks, shadow.at("ignoreFields"), findings)
    tolerate = shadow.by_method("tolerate")
    check_tolerances(tolerate, shadow.at("tolerate"), findings)
    return ShadowPolicy(
        sample_rate=shadow.number("sampleRate", 1.0),
        ignore_fields=masks,
        control=shadow.flag("control"),
        max_per_second=shadow.number("maxPerSecond") if "maxPerSecond" in shadow else None,
        monthly_budget_usd=shadow.text("monthlyBudgetUsd") if "monthlyBudgetUsd" in shadow else None,
        tolerate=tolerate,
    )


def _relay(relay: Values) -> RelayError:
    return RelayError(
        status=relay.integer("status", 502),
        header=relay.text("header", "X-Ssr-Cache").lower(),
        value=relay.text("value", "RPCERROR").lower(),
    )
