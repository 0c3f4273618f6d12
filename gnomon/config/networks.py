"""Networks: those that the file lists, those that upstreams imply, and whether each can serve anybody."""

from collections.abc import Iterable, Sequence

from gnomon.config.findings import Findings
from gnomon.config.model import Failsafe, Network, Upstream
from gnomon.config.policies import failsafe
from gnomon.config.values import Values

DEADLINE_SECONDS = 60.0


def ids(project: Values, findings: Findings) -> list[tuple[str, Values]]:
    """Return the listed networks with their ids (`evm:1`, or the id of a generic one), merged with the defaults."""
    found: list[tuple[str, Values]] = []
    for own in project.sections("networks"):
        values = own.over(project.section("networkDefaults"))
        if _is_evm(values):
            if "id" in own:
                findings.problem(own.at("id"), "an EVM network is named by evm.chainId; `alias` gives it another name")
            if "chainId" not in own.section("evm"):
                if "evm" not in own.wrong and own.section("evm").lacks("chainId"):
                    findings.problem(own.at("evm.chainId"), "is missing")
                continue
            name = f"evm:{own.section('evm').integer('chainId')}"
        else:
            name = own.text("id")
            if not name:
                if own.lacks("id"):
                    findings.problem(own.at("id"), "is missing: a generic network needs a name")
                continue
            if ":" in name or "/" in name or name == "evm":
                findings.problem(
                    own.at("id"), f"{name!r} cannot be a path: leave out `:` and `/`, and do not call it evm"
                )
            if "evm" in own:
                findings.problem(own.at("evm"), "belongs to networks of architecture evm")
        if any(name == other for other, _ in found):
            findings.problem(own.path, f"network {name} is listed twice")
            continue
        found.append((name, values))
    if "chainId" in project.section("networkDefaults").section("evm"):
        findings.problem(project.at("networkDefaults.evm.chainId"), "belongs to one network, not to the defaults")
    _check_aliases(found, findings)
    return found


def _is_evm(values: Values) -> bool:
    return values.text("architecture", "evm") == "evm"


def _check_aliases(found: Sequence[tuple[str, Values]], findings: Findings) -> None:
    taken = {name for name, _ in found}
    for _, values in found:
        alias = values.text("alias")
        if not alias:
            continue
        if alias in taken:
            findings.problem(values.at("alias"), f"`{alias}` already names a network of this project")
        if "/" in alias or ":" in alias:
            findings.problem(values.at("alias"), f"{alias!r} cannot be a path: leave out `:` and `/`")
        taken.add(alias)


def implied(
    project: Values, known: Iterable[str], upstreams: Sequence[Upstream], findings: Findings
) -> list[tuple[str, Values]]:
    """
    Return the EVM networks that only upstreams name, with the defaults, as eRPC makes them.

    Where the file lists networks, one more is worth a warning: it may be a slip in a chain id.
    """
    listed = set(known)
    found: dict[str, Values] = {}
    for upstream in upstreams:
        if upstream.network in listed or upstream.network in found:
            continue
        if listed:
            findings.warn(
                project.at("networks"), f"{upstream.network} is not listed; made from upstream `{upstream.id}`"
            )
        found[upstream.network] = Values(project.at("networks"), {}).over(project.section("networkDefaults"))
    return list(found.items())


def build(name: str, values: Values, deadline_seconds: float, findings: Findings) -> Network:
    """Return the effective network."""
    evm = values.section("evm")
    policies = failsafe(values.sections("failsafe"), "network", findings)
    is_evm = _is_evm(values)
    return Network(
        id=name,
        architecture="evm" if is_evm else "jsonrpc",
        chain_id=int(name.removeprefix("evm:")) if is_evm else None,
        alias=values.text("alias"),
        selection_mode="ordered" if values.section("selectionPolicy").text("mode") == "ordered" else "tiered",
        failsafe=policies,
        accept_empty_beyond_head=is_evm and evm.flag("acceptEmptyBeyondHead", True),
        short_circuit_future_blocks=is_evm and evm.flag("shortCircuitFutureBlocks"),
        served_tip_enabled_for=_served_tip(evm.section("servedTip"), findings) if is_evm else (),
        empty_result_accept=_accept(evm, policies),
        empty_result_confidence="finalizedBlock" if _confidence(values) == "finalizedBlock" else "blockHead",
        fallback_finality_depth=evm.integer("fallbackFinalityDepth", 1024),
        max_retry_seconds=deadline_seconds,
        rate_limit_budget=values.text("rateLimitBudget"),
        directive_defaults={
            key: values.section("directiveDefaults").flag(key)
            for key in ("retryEmpty", "skipInterpolation")
            if key in values.section("directiveDefaults")
        },
    )


def _served_tip(served_tip: Values, findings: Findings) -> tuple[str, ...]:
    tags = served_tip.texts("enabledFor")
    for index, tag in enumerate(tags):
        if tag != "latest":
            findings.warn(f"{served_tip.at('enabledFor')}[{index}]", f"ignored: `{tag}` is passed on as it is")
    return tuple(tag for tag in tags if tag == "latest")


def _accept(evm: Values, policies: Sequence[Failsafe]) -> tuple[str, ...] | None:
    if "emptyResultAccept" in evm:
        return evm.texts("emptyResultAccept")
    for policy in policies:
        if policy.match_method == "*" and policy.retry is not None and policy.retry.empty_result_accept is not None:
            return policy.retry.empty_result_accept
    return None


def _confidence(values: Values) -> str:
    evm = values.section("evm")
    if "emptyResultConfidence" in evm:
        return evm.text("emptyResultConfidence")
    for entry in values.sections("failsafe"):
        retry = entry.section("retry")
        if "emptyResultConfidence" in retry:
            return retry.text("emptyResultConfidence")
    return "blockHead"


def check_policies(listed: Sequence[tuple[str, Values]], upstreams: Sequence[Upstream], findings: Findings) -> None:
    """
    Note each policy in JavaScript. It may be what keeps calls from upstreams that cost money: where a network has
    both such and others among its primaries, and the file does not say `mode`, the policy guards money.
    """
    for network, values in listed:
        policy = values.section("selectionPolicy")
        for name in ("evalFunc", "evalFunction", "eval"):
            if name not in policy:
                continue
            primaries = [u for u in upstreams if u.network == network and u.tier == "primary"]
            costly = [u.id for u in primaries if _may_cost(u)]
            if 0 < len(costly) < len(primaries) and "mode" not in policy:
                findings.guard(
                    policy.at(name),
                    f"policies in JavaScript are not run, and this one may keep calls from {', '.join(costly)}:"
                    " tag them tier:fallback, or say selectionPolicy.mode",
                )
            else:
                findings.warn(policy.at(name), "ignored: policies in JavaScript are not run; `mode` chooses")


def _may_cost(upstream: Upstream) -> bool:
    """Say whether a primary is a vendor's, or is of a tier of its own that has no meaning here."""
    tiers = {tag.removeprefix("tier:") for tag in upstream.tags if tag.startswith("tier:")}
    return bool(upstream.vendor or tiers - {"default", "primary", "main"})


def is_listener(upstream: Upstream) -> bool:
    """Say whether an upstream gives heads by subscription and is never called."""
    return upstream.endpoint.startswith(("ws://", "wss://"))


def check_served(
    project: Values, networks: Sequence[Network], upstreams: Sequence[Upstream], findings: Findings
) -> None:
    """Note each network that nobody can be served from, and each WebSocket endpoint that gives no heads either."""
    for network in networks:
        members = [upstream for upstream in upstreams if upstream.network == network.id]
        listeners = [upstream for upstream in members if is_listener(upstream)]
        tiers = [upstream.tier for upstream in members if upstream not in listeners]
        path = project.at("networks")
        for upstream in listeners:
            if upstream.tier == "shadow":
                findings.problem(
                    project.at("upstreams"), f"`{upstream.id}`: a shadow is called: give its http endpoint, not ws"
                )
            elif network.architecture != "evm":
                findings.problem(
                    project.at("upstreams"), f"`{upstream.id}`: ws endpoints give heads, and {network.id} has none"
                )
        if listeners and not tiers:
            findings.problem(
                path, f"network {network.id} has no upstream to call: ws endpoints give heads only, add the http one"
            )
        elif not tiers:
            findings.problem(path, f"network {network.id} has no upstream")
        elif set(tiers) == {"shadow"}:
            findings.problem(path, f"network {network.id} has no primary: a shadow is never served from")
        elif "primary" not in tiers and network.selection_mode == "tiered":
            findings.problem(
                path,
                f"network {network.id} has no primary, only fallbacks; or set selectionPolicy.mode: ordered",
            )
