"""
The listener and its life: bind, say where, serve, read the configuration again at SIGHUP, finish what is under way.

uvicorn speaks HTTP; signals, sockets, TLS and the ready line are ours, as for every service.
"""

import asyncio
import contextlib
import logging
import math
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import uvicorn

from api import app as application
from api.asking import Asking
from api.dependencies import Services
from api.metrics import Metrics
from api.proxies import Proxies
from api.reader import Reader
from api.state import Holder, InForce
from gnomon.config import listeners
from gnomon.config.model import ApiSettings
from gnomon.errors import GnomonError

log = logging.getLogger("gnomon.api")

BACKLOG: Final = 1024
IDLE_SECONDS: Final = 75
UNHEARD_SECONDS: Final = 60
"""A peer that acknowledges nothing for so long is gone: no FIN comes from a machine that lost its network."""
MAX_CONNECTIONS: Final = 4096
"""More connections than these are answered 503 by uvicorn itself."""


class CannotListen(GnomonError):
    """The address cannot be bound."""


def services_for(value: InForce, data_dir: Path, proxy_url: str = "") -> Services:
    """
    Return what the application stands on; `reader` is to be closed.

    Args:
        value: in force until the first reload.
        data_dir: where secrets lie.
        proxy_url: address of the own proxy where the configuration leaves its port open.
    """
    holder = Holder(value)
    gnomon = value.settings.gnomon
    reader = Reader(
        gnomon.clickhouse,
        n_connections=gnomon.api.limits.queries,
        query_seconds=gnomon.api.limits.query_timeout_seconds,
    )
    asking = Asking(reader, lambda: holder.value.settings.gnomon.pricing.accounts)
    proxies = Proxies(lambda: holder.value.settings, data_dir, proxy_url)
    return Services(holder, reader, asking, Metrics(), data_dir, proxies=proxies)


def bind(api: ApiSettings) -> socket.socket:
    """
    Return a socket that is bound; port 0 has found one.

    Raises:
        CannotListen: naming address and setting.
    """
    family = socket.AF_INET6 if ":" in api.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", UNHEARD_SECONDS // 2), ("TCP_USER_TIMEOUT", UNHEARD_SECONDS * 1000)):
        if hasattr(socket, name):  # Linux; connections take them from their listener
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    try:
        listener.bind((api.host.strip("[]"), api.port))
    except OSError as error:
        listener.close()
        where = f"{api.host}:{api.port}"
        raise CannotListen(f"cannot listen on {where}: {error.strerror}; set gnomon.api.host or port") from error
    listener.setblocking(False)
    return listener


async def serve(
    services: Services, listener: socket.socket, announce: Callable[[int], None], load: Callable[[], InForce]
) -> None:
    """
    Serve until SIGTERM or SIGINT.

    Args:
        services: what the application stands on.
        listener: bound; closed at the end.
        announce: called with the port once requests are answered.
        load: reads the configuration anew, at SIGHUP; it may raise GnomonError.
    """
    api = services.holder.value.api
    context = listeners.server_context(api.tls) if api.tls is not None else None
    config = uvicorn.Config(
        application.create(services),
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=math.ceil(api.limits.shutdown_seconds),
        ssl_context_factory=None if context is None else lambda *_: context,
    )
    server = _Server(config, lambda: announce(listener.getsockname()[1]), services.live.close)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    loop.add_signal_handler(signal.SIGHUP, lambda: reload(services, load, context))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # a supervisor blocks it in its children
    await server.serve([listener])


def reload(services: Services, load: Callable[[], InForce], context: ssl.SSLContext | None = None) -> bool:
    """
    Put the configuration that is there now in force; an invalid one leaves the old. Return whether it is new.

    Address, limits of queries and where ClickHouse is take a restart.
    """
    try:
        value = load()
        if context is not None and value.api.tls is not None:
            listeners.load(context, value.api.tls)
    except GnomonError as error:
        services.metrics.add("gnomon_api_config_reloads_total", ("invalid",))
        log.error("configuration not reloaded, the old one stays in force: %s", error)
        return False
    services.holder.value = value
    services.metrics.add("gnomon_api_config_reloads_total", ("ok",))
    log.info("configuration reloaded hash=%s", value.settings.config_hash)
    return True


class _Server(uvicorn.Server):
    """uvicorn's server, with the signals left to us."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None], stopping: Callable[[], None]) -> None:
        super().__init__(config)
        self._say_started = started
        self._end_streams = stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._say_started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Finish what is under way, then end; once more ends at once."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
        self._end_streams()
