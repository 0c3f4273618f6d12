"""
One proxy worker: listens, resolves heads, hands requests to exchanges, polls heads, drains.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import signal
import ssl
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec
import uvloop

from gnomon.config.listeners import server_context
from gnomon.config.model import Cors, Settings
from gnomon.cost.charge import Charger
from gnomon.errors import GnomonError
from gnomon.events.contract import VERSION, PrimaryResponse
from gnomon.events.log import Upkeep, Writer
from proxy import access, cordoning, metrics, refusals, templates
from proxy.allowances import Allowances
from proxy.asked import Asked
from proxy.assembly import Assembly, networks_of, pools_of
from proxy.batches import Batch
from proxy.clients import Client, RequestHead
from proxy.connections import Call
from proxy.cordoning import Cordoning
from proxy.core import limits, requests
from proxy.core.requests import INVALID_REQUEST, Refusal, error_body
from proxy.dispatch import Exchange
from proxy.emitter import Emitter
from proxy.emitter import now_ns as wall_ns
from proxy.errors import CannotListen
from proxy.limiter import Limiter
from proxy.mirrors import Mirror
from proxy.networks import NetworkState
from proxy.polling import Ask, poll, publish
from proxy.probes import Probe
from proxy.reloading import Reloader
from proxy.subscriptions import listen
from proxy.tasks import Tasks
from proxy.timers import Timer
from proxy.upstreams import UpstreamState
from proxy.wheel import Wheel

log = logging.getLogger("gnomon.proxy")

SWEEP_SECONDS: Final = 1.0
SYNC_SECONDS: Final = 1.0
HEADS_SECONDS: Final = 10
"""How long after the start heads may be unknown without a word in the log."""
REPORT_SECONDS: Final = 60
"""How often breakers that have something to tell do so in the log."""
BACKLOG: Final = 1024
_RETIRED_LIMIT: Final = 256
_IDLE_GRACE_SECONDS: Final = 0.25
"""How long connections on which nothing goes on are left open once the proxy stops."""
_WATCHER_SECONDS: Final = 3.0
"""How long a reload waits for the end of polls and subscriptions before it begins new ones."""
NOTIFICATION_ID: Final = b'"gnomon"'
"""What a request without an id gets on its way: upstreams answer only those that have one."""
_AGENT_CHARACTERS: Final = 64
_JSON_TYPES: Final = ("application/json", "application/json-rpc", "application/jsonrequest", "")


class Service:
    """See the module's text. Everything runs on one event loop."""

    def __init__(
        self, settings: Settings, writer: Writer, control: Callable[[Settings], str] = lambda settings: ""
    ) -> None:
        """
        Needs a running event loop.

        Args:
            settings: in force until the first reload.
            writer: the worker's log; what else the worker keeps lies in its folder.
            control: reads the control secret that settings name, at start and at each reload.
        """
        loop = asyncio.get_running_loop()
        proxy = settings.gnomon.proxy
        self.settings = settings
        self.limits = proxy.limits
        self.writer = writer
        self.wheel = Wheel(loop)
        self.tasks = Tasks(self.unexpected)
        events = settings.gnomon.events
        self.emitter = Emitter(
            writer, config_hash=settings.config_hash, bodies=events.bodies, max_body_bytes=events.max_body_bytes
        )
        self.allowances = Allowances(settings, Path(writer.path))
        self._assembly = Assembly(self.tasks, self.wheel, self.emitter, self.allowances)
        self.projects = self._assembly.build(settings)
        self.networks = networks_of(self.projects)
        self.limiter = Limiter(settings, self.networks)
        self.heads: dict[bytes, RequestHead] = {}
        self.clients: set[Client] = set()
        self.mirrors: set[Mirror] = set()
        self.probes: set[Probe] = set()
        self.asks: dict[Call, Ask] = {}
        self.tick = 0
        self._report_at = 0
        self._started_at = int(loop.time())
        self.in_flight_bytes = 0
        self.is_draining = False
        self._is_hurried = False
        self.n_pollers = 0
        self._watchers: dict[NetworkState, list[asyncio.Task[None]]] = {}
        self._retired: deque[NetworkState] = deque(maxlen=_RETIRED_LIMIT)
        self.reloads: Counter[str] = Counter()
        self.requests: Counter[tuple[str, str]] = Counter()
        self.refusals: Counter[str] = Counter()
        self.hedges: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.port = proxy.port
        self._server: asyncio.Server | None = None
        self.tls: ssl.SSLContext | None = None
        self._is_loopback = proxy.host in access.LOOPBACK_NAMES
        self._sweeper: asyncio.TimerHandle | None = None
        self._control = control
        self.cordoning = Cordoning(self, Path(writer.path), control(settings))
        self.cordoning.apply()

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """
        Listen, and begin to poll.

        Raises:
            CannotListen: the address is taken or not ours.
            TlsError: the certificate or its key cannot be used.
        """
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._unhandled)
        proxy = self.settings.gnomon.proxy
        self.tls = server_context(proxy.tls) if proxy.tls is not None else None
        try:
            self._server = await loop.create_server(
                lambda: Client(self),
                proxy.host,
                proxy.port,
                backlog=BACKLOG,
                ssl=self.tls,
                ssl_handshake_timeout=proxy.limits.header_timeout_seconds if self.tls is not None else None,
            )
        except OSError as error:
            raise CannotListen(
                f"cannot listen on {proxy.host}:{proxy.port} ({error.strerror or error}); set gnomon.proxy.port"
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]
        for network in self.networks:
            self._watch(network)
        self._sweep()

    def _watch(self, network: NetworkState) -> None:
        """Begin to follow the heads of a network's upstreams."""
        watchers = self._watchers[network] = []
        for upstream in network.upstreams:
            config = upstream.config
            log.info(
                "upstream %s of %s tier=%s endpoint=%s", upstream.id, network.id, upstream.tier, config.display_endpoint
            )
            if upstream.is_listener:
                watchers.append(self.tasks.start(f"subscription:{upstream.id}", listen(self, network, upstream)))
            elif network.is_evm and not upstream.is_control:
                self.n_pollers += 1
                task = self.tasks.start(f"poll:{upstream.id}", poll(self, network, upstream))
                task.add_done_callback(self._poller_ended)
                watchers.append(task)

    def _poller_ended(self, _: asyncio.Task[None]) -> None:
        self.n_pollers -= 1

    async def apply(self, settings: Settings, charger: Charger | None) -> None:
        """
        Put a new configuration in force: for requests that come from now on.

        Args:
            settings: with the values in force of what cannot change at run time (`reloading.settle`).
            charger: `allowances.charger_for` the settings.
        """
        before, old_networks = self.projects, self.networks
        events, tls = settings.gnomon.events, settings.gnomon.proxy.tls
        self.emitter.config_hash = settings.config_hash
        self.emitter.bodies, self.emitter.max_body_bytes = events.bodies, events.max_body_bytes
        self.allowances.apply(settings, charger)
        self.projects = self._assembly.build(settings, before)
        self.networks = networks_of(self.projects)
        self.limiter = Limiter(settings, self.networks, self.limiter)
        self.settings, self.limits = settings, settings.gnomon.proxy.limits
        self.cordoning.apply()
        try:
            self.cordoning.secret = self._control(settings)
        except GnomonError as error:
            log.error("the old control secret stays in force: %s", error)
        self.heads.clear()
        if self.tls is not None and tls is not None:
            self.tls.load_cert_chain(tls.cert, tls.key)
        gone = [network for network in old_networks if network not in self.networks]
        self._retired.extend(gone)
        for network in gone:
            self._move_waiting(network)
        in_use = {pool for network in self.networks for upstream in network.upstreams for pool in pools_of(upstream)}
        for network in gone:
            for upstream in network.upstreams:
                for pool in pools_of(upstream):
                    if pool not in in_use:
                        pool.close()  # after the calls that are under way
        watchers = [task for network in gone for task in self._watchers.pop(network, ())]
        for task in watchers:
            task.cancel()
        if watchers:
            await asyncio.wait(watchers, timeout=_WATCHER_SECONDS)
        for network in self.networks:
            if network not in self._watchers and not self.is_draining:
                self._watch(network)

    @staticmethod
    def _move_waiting(network: NetworkState) -> None:
        """Let requests that wait for a first chain id begin in the network's new state, or without it."""
        waiting, network.waiting = network.waiting, []
        successor = network.successor
        for start in waiting:
            asked = getattr(start, "__self__", None)
            if successor is not None and isinstance(asked, Asked):
                asked.network = successor
            if successor is not None and not successor.is_checked:
                successor.waiting.append(start)
            else:
                start()

    def hurry(self) -> None:
        """Wait for nothing any more: what is under way is cut."""
        self._is_hurried = True

    async def drain(self) -> None:
        """
        Take no more connections, finish what is under way, then cut what is left: within `shutdown_seconds`.

        Answers say from now on that their connection ends. Connections on which nothing goes on are left open for a
        moment: a request may be on its way, and would be lost without its client knowing whether it was carried out.
        """
        assert self._server is not None
        self._server.close()
        await asyncio.sleep(0)  # connections that were accepted already are made
        self.is_draining = True
        for head in self.heads.values():
            head.keep = False
        started = time.monotonic()
        deadline = started + self.settings.gnomon.proxy.shutdown_seconds
        while not self._is_hurried and (now := time.monotonic()) < deadline:
            is_fresh = now < started + _IDLE_GRACE_SECONDS
            if not is_fresh:
                for client in list(self.clients):
                    client.drain()
            if not (any(c.is_owed for c in self.clients) or self.mirrors or (is_fresh and self.clients)):
                break
            await asyncio.sleep(0.02)
        n_clients, n_mirrors = sum(c.is_owed for c in self.clients), len(self.mirrors)
        for mirror in list(self.mirrors):
            mirror.cut()
        for probe in list(self.probes):
            probe.cut()
        for call, question in list(self.asks.items()):
            question.cut(call)
        for client in list(self.clients):
            client.cut()
        for entry in self.wheel.armed():  # every request under way waits for a time: its first call's, or its own
            timed = entry.action if isinstance(entry, Timer) else entry
            owner = getattr(timed, "__self__" if isinstance(entry, Timer) else "owner", None)
            if isinstance(owner, (Asked, Exchange)):
                owner.cut()
        if n_clients or n_mirrors:
            log.warning("cut at shutdown clients=%d mirrored_calls=%d", n_clients, n_mirrors)
        await self.tasks.cancel()
        for network in self.networks:
            for upstream in network.upstreams:
                for pool in pools_of(upstream):
                    pool.close()
        self.allowances.close()
        self.wheel.stop()
        if self._sweeper is not None:
            self._sweeper.cancel()

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self.tick = int(loop.time())
        for client in list(self.clients):
            client.sweep(self.tick)
        for network in self._retired:  # requests that were under way at a reload
            self.requests[network.id, "result"] += network.n_results
            network.n_results = 0
        for network in self.networks:
            network.release(time.monotonic())
            network.weigh(time.monotonic())
            if self.tick >= self._started_at + HEADS_SECONDS:
                network.look_for_unknown_heads()
        self.cordoning.release(time.time())
        if self.tick >= self._report_at:
            self._report_at = self.tick + REPORT_SECONDS
            self._report()
        self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep)

    def _report(self) -> None:
        """Log a line for each breaker that has seen calls since the last time."""
        for network in self.networks:
            for upstream in network.routed:
                for gate in upstream.gates.values():
                    line = gate.report()
                    if line:
                        log.info(line)

    # --- what connections and exchanges need --------------------------------------------------------------------------

    def count(self, what: str) -> None:
        """Count a refusal by its reason."""
        self.refusals[what] += 1

    def count_hedge(self, network: NetworkState) -> None:
        """Count a hedge that was fired."""
        self.hedges[network.id] += 1

    def unexpected(self, scope: str, error: BaseException) -> None:
        """Count and log an error that nobody expected; the request at hand goes on without it."""
        self.errors[scope] += 1
        log.error("unexpected error scope=%s", scope, exc_info=error)

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take what a callback of the loop has raised: the connection at hand is lost, nobody else's."""
        error = context.get("exception") or RuntimeError(context["message"])
        if not isinstance(error, OSError):
            self.unexpected("loop", error)

    def exchange(self, asked: Asked) -> Exchange:
        """Return the whole way for a request."""
        return Exchange(self, asked)

    def learn(self, network: NetworkState, upstream: UpstreamState, number: int | None, params: bytes) -> None:
        """Take the number of a block that an answer speaks of as the upstream's head, unless it is ahead already."""
        if number is None or not network.is_evm:
            return
        known = network.book.positions[upstream.id].latest
        if (known is None or number >= known) and b'"pending"' not in params:  # a pending block is none yet
            publish(self, network, upstream, "latest", number, source="response")

    def resolve(self, method: str, target: str, headers: dict[str, str], keep: bool, peer: str) -> RequestHead:
        """Return what a head means: where the request goes, as whom, or why it goes nowhere."""
        url = urlsplit(target)
        head = RequestHead(method, url.path, 0, keep and not self.is_draining)
        head.accepts_gzip = _takes_gzip(headers.get("accept-encoding", ""))
        head.coding = headers.get("content-encoding", "").strip().lower()
        if head.coding == "identity":
            head.coding = ""
        head.agent = headers.get("user-agent", "")[:_AGENT_CHARACTERS]
        try:
            host = headers.get("host", "")
            access.check_host(host, self.settings.gnomon.proxy.host, is_loopback=self._is_loopback)
            if method in ("GET", "HEAD") and url.path in ("/healthcheck", "/metrics"):
                return head
            if url.path == cordoning.PATH and method in cordoning.METHODS:
                self.cordoning.check(headers)
                return head
            project, network = access.find_network(self.projects, url.path)
            cors = project.config.cors
            origin = headers.get("origin", "")
            access.check_origin(origin, host, cors.allowed_origins if cors is not None else ())
            if origin and cors is not None:
                head.cors = _cors_lines(origin, cors)
            if method == "OPTIONS":
                return head
            if method != "POST":
                raise access.Denied(405, "send JSON-RPC requests by POST; GET serves /healthcheck and /metrics")
            content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
            if content_type not in _JSON_TYPES:
                raise access.Denied(415, f"content type {content_type!r} is not served; send application/json")
            head.is_by_address = bool(project.config.access)
            user = access.identify(project, headers, url.query, peer)
            wanted = headers.get("x-erpc-use-upstream", headers.get("x-gnomon-use-upstream", ""))
            wanted = dict(parse_qsl(url.query)).get("use-upstream", wanted)
            if wanted and not any(u.id == wanted for u in network.routed):
                raise access.Denied(404, f"no upstream {wanted!r} to choose in {network.id}")
            directives = access.directives(headers, url.query, network.config.directive_defaults)
            head.skips_interpolation = directives["skipInterpolation"] is True
            head.accepts_empty = directives["retryEmpty"] is False
            head.insists = directives["retryEmpty"] is True
            head.grant = access.Grant(project, network, user, wanted)
            head.is_choosy = bool(wanted)
            if self.limiter.is_used:
                address = access.client_address(access.trusted(project.config), headers, peer)
                head.claims = self.limiter.claims(project.config, network.config, user, address)
                head.is_by_address |= self.limiter.counts_addresses(head.claims)
            whose = {
                "network": network.id,
                "config_hash": self.settings.config_hash,
                "project": project.config.id,
                "user": user,
            }
            head.whose_plain = templates.closed(templates.members(**whose))
            head.whose = templates.closed(templates.members(**whose, agent=head.agent))
        except access.Denied as denied:
            head.denied = denied
        return head

    def handle(self, client: Client, head: RequestHead, body: bytes) -> None:
        """Carry one HTTP request out; the client gets exactly one answer."""
        grant = head.grant
        if grant is None:
            self._handle_other(client, head, body)
            return
        if body[:1] != b"{" and requests.is_batch(body):
            self._handle_batch(client, head, grant, body)
            return
        try:
            method, rpc_id, params = requests.parse(body)
        except Refusal as refusal:
            self._refuse(head, grant, refusal, len(body))
            status = 400 if refusal.code == requests.PARSE_ERROR else 200
            client.answer(head, b"", error_body(refusal.code, refusal.message, refusal.rpc_id), status)
            return
        network = grant.network
        asked = Asked(self, client, head, network, method, rpc_id, params, body)
        if network.is_checked and rpc_id and not head.claims:
            asked.start()
        else:
            self._start(asked)

    def _start(self, asked: Asked) -> None:
        network = asked.network
        if not asked.rpc_id:
            asked.body = requests.with_id(asked.body, NOTIFICATION_ID)
            asked.sent_id = NOTIFICATION_ID
        if asked.head.claims and not self._admit(asked):
            return
        if network.is_checked:
            asked.start()
        else:
            network.waiting.append(asked.start_late)

    def _admit(self, asked: Asked) -> bool:
        """Hold a request to its budgets: return whether it may start now; else it is refused, or starts later."""
        verdict = limits.admit(asked.head.claims, asked.plan.method.name, time.monotonic())
        if isinstance(verdict, limits.Refused):
            refusals.over_limit(asked, verdict)
            return False
        if verdict:
            self.exchange(asked).hold_back(verdict)
        return not verdict

    def _handle_batch(self, client: Client, head: RequestHead, grant: access.Grant, body: bytes) -> None:
        try:
            elements = requests.split_batch(body, self.limits.max_batch)
        except Refusal as refusal:
            self._refuse(head, grant, refusal, len(body))
            status = 400 if refusal.code == requests.PARSE_ERROR else 200
            client.answer(head, b"", error_body(refusal.code, refusal.message), status)
            return
        batch = Batch(self.emitter.next_request_id(), client, head, len(elements))
        waiting: list[Asked] = []
        refused: list[tuple[int, bytes]] = []
        for place, element in enumerate(elements):
            try:
                method, rpc_id, params = requests.parse(element)
            except Refusal as refusal:
                self._refuse(head, grant, refusal, len(element), batch.id.decode())
                refused.append((place, error_body(refusal.code, refusal.message, refusal.rpc_id)))
                continue
            asked = Asked(self, client, head, grant.network, method, rpc_id, params, element, batch)
            batch.add(asked, place)
            waiting.append(asked)
        for place, answer in refused:
            batch.fill(place, answer)
        for asked in waiting:
            self._start(asked)

    def _refuse(self, head: RequestHead, grant: access.Grant, refusal: Refusal, n: int, batch_id: str = "") -> None:
        """Write the event of a request that no upstream saw."""
        emitter = self.emitter
        self.requests[grant.network.id, "invalid"] += 1
        emitter.append(
            PrimaryResponse(
                v=VERSION,
                event_id=emitter.next_event_id(),
                at=wall_ns(),
                network=grant.network.id,
                config_hash=grant.network.config_hash,
                request_id=emitter.next_request_id().decode(),
                batch_id=batch_id,
                project=grant.project.config.id,
                user=grant.user,
                agent=head.agent,
                request_bytes=n,
                outcome="invalid",
                error_class="parse" if refusal.code == requests.PARSE_ERROR else "invalid_params",
                heads=grant.network.heads(None),
                reject_reason=refusal.message.partition(":")[0],
            )
        )

    def _handle_other(self, client: Client, head: RequestHead, body: bytes) -> None:
        denied = head.denied
        if denied is not None:
            self.count(f"denied_{denied.status}")
            text = error_body(INVALID_REQUEST, denied.message) if head.method != "HEAD" else b""
            client.answer(head, b"", text, denied.status)
        elif head.method == "OPTIONS":
            client.answer(head, b"", b"", 204)
        elif head.method == "HEAD":
            client.send_plain(head, 200, b"text/plain", b"")
        elif head.path == cordoning.PATH:
            self.cordoning.handle(client, head, body)
        elif head.path == "/metrics":
            client.send_plain(head, 200, b"text/plain; version=0.0.4", metrics.render(self))
        else:
            client.send_plain(head, 200, b"application/json", self.health())

    def health(self) -> bytes:
        """Return the state of each network as JSON."""
        networks = {
            f"{n.project.id}/{n.id}": {
                "latest": n.book.latest,
                "finalized": n.book.finalized,
                "upstreams": {
                    u.id: {
                        "tier": u.tier,
                        "verified": u.is_verified,
                        "latest": n.book.positions[u.id].latest,
                        **({"cordoned": True} if u.is_cordoned else {}),
                        **({"trouble": u.chain_error} if u.chain_error else {}),
                    }
                    for u in n.upstreams
                },
            }
            for n in self.networks
        }
        return msgspec.json.encode({"status": "draining" if self.is_draining else "ok", "networks": networks})


def _takes_gzip(accepted: str) -> bool:
    """Read an Accept-Encoding: `gzip;q=0` says no."""
    for item in accepted.lower().split(","):
        coding, _, weight = item.replace(" ", "").partition(";")
        if coding == "gzip":
            return not re.fullmatch(r"q=0(\.0*)?", weight)
    return False


def _cors_lines(origin: str, cors: Cors) -> bytes:
    lines = [f"Access-Control-Allow-Origin: {origin}", "Vary: Origin"]
    if cors.allowed_methods:
        lines.append("Access-Control-Allow-Methods: " + ", ".join(cors.allowed_methods))
    if cors.allowed_headers:
        lines.append("Access-Control-Allow-Headers: " + ", ".join(cors.allowed_headers))
    if cors.exposed_headers:
        lines.append("Access-Control-Expose-Headers: " + ", ".join(cors.exposed_headers))
    if cors.allow_credentials:
        lines.append("Access-Control-Allow-Credentials: true")
    if cors.max_age_seconds:
        lines.append(f"Access-Control-Max-Age: {cors.max_age_seconds}")
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1")


def serve(
    settings: Settings,
    log_folder: Path,
    *,
    announce: Callable[[int], None],
    load: Callable[[], Settings],
    control: Callable[[Settings], str],
) -> None:
    """
    Run one worker until SIGTERM or SIGINT, then drain; a second one cuts what is under way.

    Args:
        log_folder: the worker's own folder of the event log.
        announce: called with the port once it listens.
        load: reads the configuration again, for SIGHUP.
        control: reads the control secret that settings name.

    Raises:
        CannotListen, LogError: it cannot start.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # until there is something to reload
    events = settings.gnomon.events.log
    writer = Writer(str(log_folder), segment_bytes=events.segment_bytes, max_bytes=events.max_bytes)
    upkeep = Upkeep(writer, None if events.fsync == "never" else SYNC_SECONDS)
    upkeep.start()
    try:
        uvloop.run(_serve(settings, writer, announce, load, control))
    finally:
        upkeep.stop()
        writer.close()


async def _serve(
    settings: Settings,
    writer: Writer,
    announce: Callable[[int], None],
    load: Callable[[], Settings],
    control: Callable[[Settings], str],
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    service = Service(settings, writer, control)

    def on_signal() -> None:
        if stop.is_set():
            service.hurry()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    await service.start()
    loop.add_signal_handler(signal.SIGHUP, Reloader(service, load).request)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    announce(service.port)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    await stop.wait()
    await service.drain()
