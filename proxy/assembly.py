"""
From a configuration to its state at run time: upstreams with their connections, networks, projects.

Where there was a configuration before, what has not changed goes on: a network whose every setting is the same keeps
its state; else an upstream that is the same, or at least calls the same endpoint, keeps its connections, its heads, its
breakers and what it was held for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.connections import Pool
from proxy.networks import NetworkState, ProjectState
from proxy.upstreams import UpstreamState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gnomon.config.model import Limits, Network, Project, Settings, Upstream
    from proxy.allowances import Allowances
    from proxy.emitter import Emitter
    from proxy.tasks import Tasks
    from proxy.wheel import Wheel


class Assembly:
    """Builds the state of configurations."""

    def __init__(self, tasks: Tasks, wheel: Wheel, emitter: Emitter, allowances: Allowances) -> None:
        self._tasks = tasks
        self._wheel = wheel
        self._emitter = emitter
        self._allowances = allowances

    def build(self, settings: Settings, before: Mapping[str, ProjectState] | None = None) -> dict[str, ProjectState]:
        """
        Return the run-time state of a configuration, projects by id. Opens no connection.

        Args:
            before: the state in force; its parts that go on are in the new one.
        """
        limits = settings.gnomon.proxy.limits
        old = before or {}
        projects = {p.id: ProjectState(p, self._networks(p, limits, old.get(p.id))) for p in settings.projects}
        for network in networks_of(projects):
            for upstream in network.upstreams:
                upstream.allowance = self._allowances.of(network.project.id, upstream.id)
                is_shadow = upstream.config.shadow is not None
                for pool in pools_of(upstream):
                    pool.max_response_bytes = limits.max_response_bytes
                    pool.limit = limits.shadow_in_flight if is_shadow else limits.max_upstream_connections
        return projects

    def _networks(self, project: Project, limits: Limits, before: ProjectState | None) -> list[NetworkState]:
        states = []
        for config in project.networks:
            upstreams = [u for u in project.upstreams if u.network == config.id]
            old = before.networks.get(config.id) if before is not None else None
            if old is not None and _is_unchanged(old, project, config, upstreams):
                old.project, old.config_hash = project, self._emitter.config_hash
                old.replan()
                states.append(old)
            else:
                states.append(self._network(project, config, upstreams, limits, old))
        return states

    def _network(
        self,
        project: Project,
        config: Network,
        upstreams: Sequence[Upstream],
        limits: Limits,
        before: NetworkState | None,
    ) -> NetworkState:
        known = before.by_id if before is not None else {}
        is_evm = config.architecture == "evm"
        members = [self._upstream(u, limits, known.get(u.id), is_evm=is_evm) for u in upstreams]
        for member in members:
            if member.is_control:
                old = known.get(member.id)
                kept = old.controls if old is not None else {}
                member.controls = {
                    u.id: kept[u.id] if u.id in kept and _calls_alike(known[u.id].config, u) else self._pool(u, limits)
                    for u in upstreams
                    if u.shadow is None
                }
        network = NetworkState(project, config, members, self._wheel, self._emitter)
        if before is not None:
            same = [u.id for u in upstreams if u.id in known and _calls_alike(known[u.id].config, u)]
            network.adopt(before, same)
        return network

    def _upstream(
        self, config: Upstream, limits: Limits, before: UpstreamState | None, *, is_evm: bool
    ) -> UpstreamState:
        if before is not None and before.config == config:
            return before
        if before is None or not _calls_alike(before.config, config):
            return UpstreamState(config, self._pool(config, limits), is_evm)
        upstream = UpstreamState(config, before.pool, is_evm)
        if not upstream.is_control:
            upstream.adopt(before)
        return upstream

    def _pool(self, config: Upstream, limits: Limits) -> Pool:
        """Return connections to an upstream; as many as a shadow's unless they are for clients' calls."""
        return Pool(
            config.endpoint,
            self._tasks,
            limit=limits.shadow_in_flight,
            max_response_bytes=limits.max_response_bytes,
            headers=config.headers,
            accept_gzip=config.gzip_requests,
        )


def networks_of(projects: Mapping[str, ProjectState]) -> list[NetworkState]:
    """Return the networks of all projects."""
    return [network for project in projects.values() for network in project.networks.values()]


def pools_of(upstream: UpstreamState) -> Iterator[Pool]:
    """Return all connections that an upstream has."""
    yield upstream.pool
    yield from upstream.controls.values()


def _is_unchanged(state: NetworkState, project: Project, config: Network, upstreams: Sequence[Upstream]) -> bool:
    return (
        state.config == config
        and [u.config for u in state.upstreams] == list(upstreams)
        and state.project.allow_methods == project.allow_methods
        and state.project.ignore_methods == project.ignore_methods
    )


def _calls_alike(before: Upstream, now: Upstream) -> bool:
    """Say whether two configurations of an upstream call the same endpoint in the same way."""
    return (
        before.endpoint == now.endpoint
        and before.headers == now.headers
        and before.gzip_requests == now.gzip_requests
        and before.chain_id == now.chain_id
        and (before.shadow is None) is (now.shadow is None)
    )
