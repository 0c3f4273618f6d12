"""
Cordons by hand, over HTTP: `GET /cordons` says how each upstream stands, `PUT /cordons` keeps one out or lets it in.

Only who has the control secret is answered; without one there is no such address. Neither method is one of JSON-RPC, so
no project's address is taken. What is in force lies in a file beside the log: it is written before the answer goes out.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from proxy.access import Denied
from proxy.core import cordons
from proxy.core.cordons import MAX_CHARACTERS, MAX_CORDONS, Candidate, Cordon, Cordons, Remaining

if TYPE_CHECKING:
    from proxy.clients import Client, RequestHead
    from proxy.networks import NetworkState
    from proxy.service import Service
    from proxy.upstreams import UpstreamState

log = logging.getLogger("gnomon.proxy")

PATH: Final = "/cordons"
METHODS: Final = ("GET", "PUT")
FILE: Final = "cordons.json"
CAUSE: Final = "cordoned"


class Wanted(Struct, forbid_unknown_fields=True):
    """What a PUT asks for."""

    upstream: str
    project: str
    is_cordoned: bool
    comment: str = ""
    author: str = ""
    until: float | None = None
    """UTC seconds."""
    force: bool = False
    only_check: bool = False
    """Say what would come of it, and change nothing."""


class _Wrong(Exception):
    """The request is answered with a status and a reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Cordoning:
    """The cordons of one worker: kept in a file, put on the upstreams, asked for and changed over HTTP."""

    def __init__(self, service: Service, folder: Path, secret: str) -> None:
        """
        Args:
            service: whose upstreams they are.
            folder: where they are kept.
            secret: who has it may ask; empty: nobody.
        """
        self._service = service
        self._file = folder / FILE
        self.secret = secret
        self._cordons = self._read()
        self._is_writing = asyncio.Lock()

    def _read(self) -> Cordons:
        try:
            return cordons.decode(self._file.read_bytes())
        except FileNotFoundError:
            return Cordons()
        except (OSError, ValueError) as error:
            aside = self._file.with_suffix(".unreadable")
            log.error("cordons cannot be read, none is in force: %s (kept as %s)", error, aside)
            if self._file.is_file():
                os.replace(self._file, aside)
            return Cordons()

    def apply(self) -> None:
        """Put what is in force on the upstreams that there are now."""
        for network in self._service.networks:
            for upstream in network.routed:
                is_cordoned = self._cordons.find(network.project.id, upstream.id) is not None
                if upstream.is_cordoned != is_cordoned:
                    upstream.is_cordoned = is_cordoned
                    network.replan()

    def release(self, now: float) -> None:
        """Let upstreams in whose cordon has ended; `now` in UTC seconds."""
        due = self._cordons.due(now)
        for cordon in due:
            self._take(cordon.key)
        if due:
            self._service.tasks.start("cordons", self._write())

    # --- over HTTP ----------------------------------------------------------------------------------------------------

    def check(self, headers: Mapping[str, str]) -> None:
        """
        Make sure that a request comes from who has the secret.

        Raises:
            Denied: 404 without a secret here, 401 without the right one there.
        """
        if not self.secret:
            raise Denied(404, f"{PATH} is not served: there is no control secret")
        scheme, _, given = headers.get("authorization", "").partition(" ")
        is_right = hmac.compare_digest(given.strip().encode("latin-1", "replace"), self.secret.encode())
        if scheme.lower() != "bearer" or not is_right:
            raise Denied(401, "the control secret is needed (Authorization: Bearer …)")

    def handle(self, client: Client, head: RequestHead, body: bytes) -> None:
        """Answer a request that was checked."""
        self._service.tasks.start("cordons", self._handle(client, head, body))

    async def _handle(self, client: Client, head: RequestHead, body: bytes) -> None:
        status, said = 200, {}
        try:
            said = self.report() if head.method == "GET" else await self._change(body)
        except _Wrong as wrong:
            status, said = wrong.status, {"reason": wrong.reason}
        except OSError as error:
            log.error("cordons cannot be kept: %s", error)
            status, said = 500, {"reason": f"the change cannot be kept: {error.strerror}"}
        client.send_plain(head, status, b"application/json", msgspec.json.encode(said))

    async def _change(self, body: bytes) -> dict[str, Any]:
        try:
            wanted = msgspec.json.decode(body, type=Wanted)
        except msgspec.MsgspecError as error:
            raise _Wrong(400, str(error)) from error
        if any(len(text) > MAX_CHARACTERS for text in (wanted.comment, wanted.author)):
            raise _Wrong(400, f"comment and author may have {MAX_CHARACTERS} characters")
        network, upstream = self._find(wanted.project, wanted.upstream)
        left = cordons.remaining(upstream.id, [_candidate(one) for one in network.routed])
        key = (network.project.id, upstream.id)
        if not wanted.is_cordoned:
            if self._cordons.find(*key) is None:
                raise _Wrong(404, f"{wanted.upstream!r} is not cordoned")
            if not wanted.only_check:
                self._take(key)
                await self._write()
            return self._said(network, upstream, left)
        if left.objection and not wanted.force:
            raise _Wrong(409, left.objection)
        now = time.time()
        if wanted.until is not None and wanted.until <= now:
            raise _Wrong(400, "it must end after now")
        if len(self._cordons) >= MAX_CORDONS:
            raise _Wrong(409, f"{MAX_CORDONS} upstreams are cordoned already")
        if not wanted.only_check:
            self._put(
                network,
                upstream,
                Cordon(project=key[0], upstream=key[1], at=round(now, 3), until=wanted.until, comment=wanted.comment,
                       author=wanted.author),
            )  # fmt: skip
            await self._write()
        return self._said(network, upstream, left)

    def _find(self, project: str, name: str) -> tuple[NetworkState, UpstreamState]:
        for network in self._service.networks:
            upstream = network.by_id.get(name) if network.project.id == project else None
            if upstream is not None and upstream not in network.routed:
                raise _Wrong(409, f"{name!r} is never routed to: it is a shadow, or gives heads only")
            if upstream is not None:
                return network, upstream
        raise _Wrong(404, f"project {project!r} has no upstream {name!r}")

    def _said(self, network: NetworkState, upstream: UpstreamState, left: Remaining) -> dict[str, Any]:
        return {
            "upstream": self._state(network, upstream),
            "remaining": {"primaries": left.n_primaries, "fallbacks": left.n_fallbacks},
        }

    def _put(self, network: NetworkState, upstream: UpstreamState, cordon: Cordon) -> None:
        self._cordons.put(cordon)
        if upstream.is_cordoned:
            return
        upstream.is_cordoned = True
        network.replan()
        network.tell_hold(upstream, "closed", "open", CAUSE)
        log.warning(
            "upstream cordoned project=%s network=%s upstream=%s author=%s comment=%s",
            cordon.project, network.id, cordon.upstream, cordon.author, cordon.comment,
        )  # fmt: skip

    def _take(self, key: cordons.Key) -> None:
        cordon = self._cordons.take(key)
        for network in self._service.networks:
            upstream = network.by_id.get(key[1]) if network.project.id == key[0] else None
            if cordon is not None and upstream is not None and upstream.is_cordoned:
                upstream.is_cordoned = False
                network.replan()
                network.tell_hold(upstream, "open", "closed", CAUSE)
                log.warning("upstream let in again project=%s network=%s upstream=%s", key[0], network.id, key[1])

    async def _write(self) -> None:
        async with self._is_writing:  # the last one writes what holds then
            await asyncio.to_thread(_replace, self._file, cordons.encode(self._cordons))

    # --- how each stands ----------------------------------------------------------------------------------------------

    def report(self) -> dict[str, Any]:
        """Return how every upstream stands, and cordons of upstreams that are not configured."""
        upstreams = [
            self._state(network, upstream) for network in self._service.networks for upstream in network.upstreams
        ]
        known = {(said["project"], said["upstream"]) for said in upstreams}
        return {
            "upstreams": upstreams,
            "unknown": [_shown(cordon) for cordon in self._cordons.all if cordon.key not in known],
        }

    def _state(self, network: NetworkState, upstream: UpstreamState) -> dict[str, Any]:
        latest, own = network.book.latest, network.book.positions[upstream.id].latest
        cordon = self._cordons.find(network.project.id, upstream.id)
        return {
            "project": network.project.id,
            "network": network.id,
            "upstream": upstream.id,
            "tier": upstream.tier,
            "is_verified": upstream.is_verified,
            "is_syncing": upstream.is_syncing,
            "latest": own,
            "lag_blocks": None if latest is None or own is None else max(0, latest - own),
            "trouble": upstream.chain_error or _trouble(network, upstream),
            "held": upstream.held_cause,
            "breakers": {scope: gate.breaker.state for scope, gate in upstream.gates.items()},
            "cordon": None if cordon is None else _shown(cordon),
        }


def _trouble(network: NetworkState, upstream: UpstreamState) -> str:
    trouble = network.trouble(upstream) if upstream in network.routed else None
    return str(trouble) if trouble is not None and trouble.weight else ""


def _shown(cordon: Cordon) -> dict[str, Any]:
    return {"until": None, "comment": "", "author": "", **msgspec.to_builtins(cordon)}


def _candidate(upstream: UpstreamState) -> Candidate:
    is_held = bool(upstream.held_cause) or any(not gate.is_closed for gate in upstream.gates.values())
    return Candidate(
        upstream.id, upstream.is_fallback, upstream.is_verified and not upstream.is_cordoned and not is_held
    )


def _replace(file: Path, text: bytes) -> None:
    temporary = file.with_suffix(".new")
    with temporary.open("wb") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    os.replace(temporary, file)
