"""
The proxies, asked how their upstreams stand and told whom not to call (`proxy.cordoning`).

Every proxy is told; a change that one refuses is asked of none. Each call is bounded; a proxy that is away delays no
other.
"""

import asyncio
import http.client
import json
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from api.errors import Refused
from api.problems import RETRY_SECONDS
from gnomon.config import control
from gnomon.config.model import Settings

log = logging.getLogger("gnomon.api")

TIMEOUT_SECONDS: Final = 5.0
MAX_BYTES: Final = 8 << 20
_PROBLEM_OF: Final[Mapping[int, str]] = {400: "invalid-body", 404: "not-found", 409: "conflict"}


@dataclass(frozen=True, slots=True)
class Said:
    """What one proxy said."""

    address: str
    status: int
    """0: it did not answer."""
    content: Mapping[str, Any]
    reason: str = ""
    """Why it did not answer, or refused."""

    @property
    def is_done(self) -> bool:
        return self.status == 200


class Proxies:
    """The proxies of the configuration in force."""

    def __init__(self, settings: Callable[[], Settings], data_dir: Path, own_url: str = "") -> None:
        """
        Args:
            settings: those in force.
            data_dir: where the control secret lies, unless the settings name another file.
            own_url: address of the own proxy where the settings leave its port open.
        """
        self._settings = settings
        self._data_dir = data_dir
        self._own_url = own_url

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where they are; empty where that is not known."""
        own = (self._own_url,) if self._own_url else ()
        return control.proxies(self._settings()) or own

    async def states(self) -> list[Said]:
        """Return how upstreams stand at each proxy; one that does not answer says why."""
        return await self._all("GET", None)

    async def change(self, wanted: Mapping[str, Any]) -> list[Said]:
        """
        Have every proxy keep an upstream out, or let it in.

        Args:
            wanted: members of `proxy.cordoning.Wanted`.

        Returns:
            What each said, all of them that it is done.

        Raises:
            Refused: one refuses (then none was asked to change), or does not answer.
        """
        if not self.addresses:
            raise Refused(
                "proxy-away",
                "no proxy is known: set gnomon.proxy.port, or gnomon.alerts.proxies where they are on other machines",
            )
        for said in await self._all("PUT", {**wanted, "only_check": True}):
            _check(said, "nothing was changed")
        found = await self._all("PUT", wanted)
        done = [said.address for said in found if said.is_done]
        for said in found:
            _check(said, f"changed at: {', '.join(done) or 'none'}; send it again")
        return found

    async def _all(self, method: str, content: Mapping[str, Any] | None) -> list[Said]:
        body = b"" if content is None else json.dumps(content).encode()
        return list(await asyncio.gather(*(asyncio.to_thread(self._ask, one, method, body) for one in self.addresses)))

    def _ask(self, address: str, method: str, body: bytes) -> Said:
        try:
            secret = control.read(self._settings(), self._data_dir)
        except control.ControlSecretError as error:
            return Said(address, 0, {}, str(error))
        connection = self._connection(address)
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        try:
            connection.request(method, "/cordons", body, headers)
            answer = connection.getresponse()
            text = answer.read(MAX_BYTES)
            content = json.loads(text)
            if not isinstance(content, dict):
                raise ValueError("it is no proxy of ours")
        except (OSError, http.client.HTTPException, ValueError) as error:
            return Said(address, 0, {}, str(error) or type(error).__name__)
        finally:
            connection.close()
        if answer.status == 200:
            return Said(address, 200, content)
        reason = content.get("reason") or (content.get("error") or {}).get("message") or f"status {answer.status}"
        return Said(address, answer.status, content, str(reason))

    def _connection(self, address: str) -> http.client.HTTPConnection:
        parts = urlsplit(address)
        host = parts.hostname or "127.0.0.1"
        if parts.scheme != "https":
            return http.client.HTTPConnection(host, parts.port or 80, timeout=TIMEOUT_SECONDS)
        context = ssl.create_default_context()
        gnomon = self._settings().gnomon
        if gnomon.proxy.tls is not None and not gnomon.alerts.proxies:
            # Our own proxy shows the certificate that we have at hand, whatever name it is for.
            context = ssl.create_default_context(cafile=gnomon.proxy.tls.cert)
            context.check_hostname = False
        return http.client.HTTPSConnection(host, parts.port or 443, timeout=TIMEOUT_SECONDS, context=context)


def _check(said: Said, so_far: str) -> None:
    """
    Raises:
        Refused: the proxy did not do it.
    """
    if said.is_done:
        return
    problem = _PROBLEM_OF.get(said.status)
    if problem is not None:
        raise Refused(problem, said.reason)
    raise Refused(
        "proxy-away",
        f"the proxy at {said.address} cannot be told: {said.reason}; {so_far}",
        headers={"Retry-After": str(RETRY_SECONDS)},
    )


def by_upstream(states: Sequence[Said]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return how each upstream stands at the proxies that answered, by project and upstream."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for said in states:
        for state in said.content.get("upstreams", ()):
            found.setdefault((state["project"], state["upstream"]), []).append({"proxy": said.address, **state})
    return found
