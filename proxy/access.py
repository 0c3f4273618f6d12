"""
Who may ask: the address of a request (project, network), its secret, its Host and Origin.

All but `identify` depends on a request's head alone, so one answer serves all requests with the same head; where a
project admits by address (`access`), it also depends on who sent it.
"""

import hashlib
import ipaddress
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from gnomon.config.model import Project
from proxy.networks import NetworkState, ProjectState

LOOPBACK_NAMES: Final = frozenset(("localhost", "127.0.0.1", "[::1]", "::1"))
_LABELS: Final = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
SECRET_HEADERS: Final = ("x-gnomon-secret", "x-erpc-secret-token")
SECRET_PARAMETERS: Final = ("secret", "token")


class Denied(Exception):
    """The request goes no further; `status` is HTTP, the message is for the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class Grant:
    """Where a request goes, and as whom."""

    __slots__ = ("network", "project", "use_upstream", "user")

    def __init__(self, project: ProjectState, network: NetworkState, user: str, use_upstream: str) -> None:
        self.project = project
        self.network = network
        self.user = user
        self.use_upstream = use_upstream


def check_host(host: str, bound_to: str, *, is_loopback: bool) -> None:
    """
    Refuse a Host that is not ours: a page in somebody's browser must not reach a loopback port by a name of its own.

    Raises:
        Denied: 403.
    """
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    if is_loopback and name.lower() not in LOOPBACK_NAMES and name != bound_to:
        raise Denied(403, f"host {name!r} is not served here; use {bound_to}")


def check_origin(origin: str, host: str, allowed: tuple[str, ...]) -> None:
    """
    Refuse a page of another origin unless the project's `cors` lists it.

    Raises:
        Denied: 403.
    """
    if not origin or origin in allowed or "*" in allowed or (host and origin.partition("://")[2] == host):
        return
    if any(is_below(origin, entry) for entry in allowed if "://*." in entry):
        return
    raise Denied(403, f"origin {origin!r} is not allowed; list it in the project's cors.allowedOrigins")


def is_below(origin: str, entry: str) -> bool:
    """Say whether an origin is of a name below the one that an entry such as `https://*.example.com` names."""
    scheme, _, rest = entry.lower().partition("*")
    found = origin.lower()
    name = found[len(scheme) : len(found) - len(rest)]
    return found.startswith(scheme) and found.endswith(rest) and _LABELS.fullmatch(name) is not None


def find_network(projects: Mapping[str, ProjectState], path: str) -> tuple[ProjectState, NetworkState]:
    """
    Return the project and network that a path names: `/{project}/evm/{chainId}`, `/{project}/{network}`, or `/` when
    there is one network.

    Raises:
        Denied: 404, naming what is known.
    """
    parts = [part for part in path.split("/") if part]
    known = [f"/{p}/{n.replace(':', '/')}" for p, state in projects.items() for n in state.networks]
    if not parts:
        if len(known) == 1:
            project = next(p for p in projects.values() if p.networks)
            return project, next(iter(project.networks.values()))
        raise Denied(404, "name a network: " + ", ".join(known))
    found = projects.get(parts[0])
    if found is not None:
        name = ":".join(parts[1:])
        if name in found.networks:
            return found, found.networks[name]
        if not name and len(found.networks) == 1:
            return found, next(iter(found.networks.values()))
        for network in found.networks.values():
            if name and name == network.config.alias:
                return found, network
    raise Denied(404, f"no network at {path!r}; known: " + ", ".join(known))


def trusted(project: Project) -> tuple[str, ...]:
    """Return the proxies that may say for whom they forward."""
    return (*project.trusted_proxies, *(proxy for access in project.access for proxy in access.trusted_proxies))


def identify(project: ProjectState, headers: Mapping[str, str], query: str, peer: str) -> str:
    """
    Return the user that a request's secret (or address) stands for; "" in an open project.

    Raises:
        Denied: 401.
    """
    config = project.config
    if not config.secrets and not config.access:
        return ""
    for secret in _secrets(headers, query):
        user = project.users.get(hashlib.sha256(secret.encode()).hexdigest())
        if user is not None:
            return user
    for access in config.access:
        address = client_address(access.trusted_proxies, headers, peer)
        if address is None:
            continue
        if access.allow_localhost and address.is_loopback:
            return access.id
        if any(address in ipaddress.ip_network(cidr, strict=False) for cidr in access.cidrs):
            return access.id
    raise Denied(401, "a valid secret is needed (Authorization: Bearer …, X-Gnomon-Secret, or ?secret=)")


def _secrets(headers: Mapping[str, str], query: str) -> list[str]:
    found = [headers[name] for name in SECRET_HEADERS if name in headers]
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value:
        found.append(value.strip())
    if query:
        found += [v for k, v in parse_qsl(query) if k in SECRET_PARAMETERS]
    return found


def client_address(
    trusted: tuple[str, ...], headers: Mapping[str, str], peer: str
) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """
    Return the address that a request comes from; None where there is none (a local socket, an unreadable header).

    Args:
        trusted: proxies that are believed what they say of whom they forward for.
        peer: who is at the other end of the connection.
    """
    try:
        address = ipaddress.ip_address(peer)
        if any(address in ipaddress.ip_network(cidr, strict=False) for cidr in trusted):
            forwarded = headers.get("x-forwarded-for", "")
            for hop in reversed(forwarded.split(",") if forwarded.strip() else ()):
                candidate = ipaddress.ip_address(hop.strip())
                if not any(candidate in ipaddress.ip_network(cidr, strict=False) for cidr in trusted):
                    return candidate
        return address
    except ValueError:
        return None


_DIRECTIVES: Final = {"retryEmpty": "retry-empty", "skipInterpolation": "skip-interpolation"}
"""Directive → its name in headers (behind `x-erpc-` or `x-gnomon-`) and in the query."""
_NO: Final = frozenset(("false", "0", "no", "off"))


def directives(headers: Mapping[str, str], query: str, defaults: Mapping[str, bool]) -> dict[str, bool | None]:
    """
    Return what a request wants of the routing: the query's word, else the headers', else the network's, else None.

    Args:
        headers: by lower-case name.
        defaults: `directiveDefaults` of the network.
    """
    asked = dict(parse_qsl(query, keep_blank_values=True))
    found: dict[str, bool | None] = {}
    for name, word in _DIRECTIVES.items():
        said = asked.get(word, headers.get(f"x-gnomon-{word}", headers.get(f"x-erpc-{word}")))
        found[name] = defaults.get(name) if said is None else said.strip().lower() not in _NO
    return found
