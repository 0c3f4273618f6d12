"""
A new configuration while the proxy runs, on SIGHUP: read aside, checked, and put in force between two requests.

New requests meet the new state; those under way end on the one they began with. A file that cannot be used leaves
everything as it is and says so. What cannot change at run time keeps its value, and the log names it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec

from gnomon import logs
from gnomon.config.listeners import server_context
from gnomon.errors import GnomonError
from proxy.allowances import charger_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from gnomon.config.model import Settings
    from gnomon.cost.charge import Charger
    from proxy.service import Service

log = logging.getLogger("gnomon.proxy")


class Reloader:
    """Reloads one service's configuration, one time after the other."""

    def __init__(self, service: Service, load: Callable[[], Settings]) -> None:
        """`load` reads and checks the file; it runs in a thread of its own."""
        self._service = service
        self._load = load
        self._is_running = self._is_wanted = False

    def request(self) -> None:
        """Reload soon; asked for while one is under way, once more after it."""
        self._is_wanted = True
        if not self._is_running and not self._service.is_draining:
            self._is_running = True
            self._service.tasks.start("reload", self._run())

    async def _run(self) -> None:
        try:
            while self._is_wanted:
                self._is_wanted = False
                result = await self._reload()
                self._service.reloads[result] += 1
        finally:
            self._is_running = False

    async def _reload(self) -> str:
        try:
            settings, charger = await asyncio.to_thread(self._read)
        except GnomonError as error:
            log.error("the configuration cannot be used, the old one stays in force: %s", error)
            return "invalid"
        for warning in settings.warnings:
            log.warning("%s", warning)
        settings, fixed = settle(self._service.settings, settings)
        for name in fixed:
            log.warning("%s cannot change at run time: restart for it", name)
        await self._service.apply(settings, charger)
        logging.getLogger().setLevel(logs.LEVELS[settings.log_level])
        log.info("configuration reloaded config_hash=%s", settings.config_hash)
        return "ok"

    def _read(self) -> tuple[Settings, Charger | None]:
        settings = self._load()
        tls = settings.gnomon.proxy.tls
        if tls is not None:
            server_context(tls)  # what it cannot use is found before anything changes
        return settings, charger_for(settings)


_FIXED = {
    "gnomon.proxy.host": "host",
    "gnomon.proxy.port": "port",
    "gnomon.proxy.workers": "workers",
}


def settle(before: Settings, now: Settings) -> tuple[Settings, list[str]]:
    """Return new settings with the old values of what cannot change at run time, and the names of what differs."""
    old, new = before.gnomon, now.gnomon
    fixed = [name for name, member in _FIXED.items() if getattr(old.proxy, member) != getattr(new.proxy, member)]
    kept: dict[str, object] = {member: getattr(old.proxy, member) for member in _FIXED.values()}
    if (old.proxy.tls is None) is not (new.proxy.tls is None):
        fixed.append("gnomon.proxy.tls")
        kept["tls"] = old.proxy.tls
    replace = msgspec.structs.replace
    events = new.events
    for name in ("log", "kafka"):
        if getattr(old.events, name) != getattr(new.events, name):
            fixed.append(f"gnomon.events.{name}")
            events = replace(events, **{name: getattr(old.events, name)})
    return replace(now, gnomon=replace(new, proxy=replace(new.proxy, **kept), events=events)), fixed
