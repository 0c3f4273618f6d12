"""
Rate limits at work: which budgets a client's request and a call to an upstream draw on.

The budgets of projects and networks, those of users, and those of upstreams are counted apart, even under one name.
Within each, whoever names a budget shares it: two upstreams of one account, all networks of a project. A user's budget
counts each user apart, and who is let in by address counts by address.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from proxy.core.limits import Budget, Claim, Key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gnomon.config.model import Network, Project, RateLimitRule, Settings
    from proxy.networks import NetworkState

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
CLIENTS, USERS, UPSTREAMS = "clients", "users", "upstreams"
_IPV6_HOST_BITS: Final = 64
"""What one subscriber gets at least: its addresses count as one."""


class Limiter:
    """All budgets of one configuration."""

    def __init__(self, settings: Settings, networks: Iterable[NetworkState], before: Limiter | None = None) -> None:
        """
        Give each upstream its claim; clients' claims are made when they come.

        Args:
            before: of an earlier configuration: budgets whose rules are the same go on counting.
        """
        self._rules: Mapping[str, tuple[RateLimitRule, ...]] = settings.rate_limiters
        self._budgets: dict[tuple[str, str], Budget] = {}
        if before is not None:
            same = {name for name, rules in self._rules.items() if before._rules.get(name) == rules}
            self._budgets = {key: budget for key, budget in before._budgets.items() if key[1] in same}
        self._of_users: dict[tuple[str, str], tuple[str, ...]] = {}
        self._known = {(project.id, secret.id) for project in settings.projects for secret in project.secrets}
        for project in settings.projects:
            named = [(secret.id, secret.rate_limit_budget) for secret in project.secrets]
            named += [(access.id, access.rate_limit_budget) for access in project.access]
            for user, name in named:
                key = (project.id, user)
                self._of_users[key] = tuple(dict.fromkeys((*self._of_users.get(key, ()), name)))
        for network in networks:
            for upstream in network.upstreams:
                budget = self._budget(UPSTREAMS, upstream.config.rate_limit_budget)
                upstream.claim = Claim(budget, "upstream", network=network.id) if budget is not None else None

    def __iter__(self) -> Iterator[tuple[str, Budget]]:
        """Return each budget that is drawn on, and by whom."""
        return iter([(whose, budget) for (whose, _), budget in self._budgets.items()])

    @property
    def is_used(self) -> bool:
        """There are budgets."""
        return bool(self._rules)

    def claims(self, project: Project, network: Network, user: str, address: Address | None) -> tuple[Claim, ...]:
        """
        Return the budgets that a client's requests draw on; one that is named twice is drawn on once.

        Args:
            user: of a secret; or of a strategy that lets addresses in: then each address is a user.
        """
        place = _place(address)
        named = {project.rate_limit_budget: "project"}
        named.setdefault(network.rate_limit_budget, "network")
        own = (project.id, place if user and (project.id, user) not in self._known else user)
        found: list[tuple[str, str, str, Key]] = [(CLIENTS, whose, name, ()) for name, whose in named.items()]
        found += [(USERS, "user", name, own) for name in self._of_users.get((project.id, user), ())]
        return tuple(
            Claim(budget, whose, key, user="/".join(own), address=place, network=network.id)
            for kind, whose, name, key in found
            if (budget := self._budget(kind, name)) is not None
        )

    def counts_addresses(self, claims: Iterable[Claim]) -> bool:
        """Say whether claims depend on the client's address."""
        return any(rule.config.per_ip for claim in claims for rule in claim.budget.limits)

    def _budget(self, kind: str, name: str) -> Budget | None:
        if name not in self._rules:
            return None
        key = (kind, name)
        if key not in self._budgets:
            self._budgets[key] = Budget(name, self._rules[name])
        return self._budgets[key]


def _place(address: Address | None) -> str:
    """Return what an address counts as: itself, or its network where one client has many."""
    if address is None:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Address(int(address) >> _IPV6_HOST_BITS << _IPV6_HOST_BITS))
    return str(address)
