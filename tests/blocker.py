"""
Keep tests off the network: nothing but loopback, whatever the code under test does with the error.

An audit hook sees every connect, send and name look-up of the `socket` module and below it, asyncio included. A refused
call is also remembered, so the test fails even if the code swallowed the exception. XXX: uvloop connects without the
`socket` module, so what it dials by number is not seen; tests of the proxy use loopback by their own rule.
"""

import ipaddress
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_EVENTS = frozenset({"socket.connect", "socket.sendto", "socket.getaddrinfo"})
_NAMES = frozenset({"", "localhost", "localhost.localdomain", "ip6-localhost"})


class OutsideAddress(AssertionError):
    """A test reached for an address that is not this machine's loopback."""


class Blocker:
    """One per process: an audit hook cannot be taken away again, only told to look aside."""

    def __init__(self) -> None:
        self.is_on = False
        self.refused: list[str] = []
        self._is_hooked = False

    @contextmanager
    def watching(self) -> Iterator["Blocker"]:
        """Refuse outside addresses within; `refused` lists those that were tried."""
        if not self._is_hooked:
            sys.addaudithook(self._hook)
            self._is_hooked = True
        self.refused = []
        self.is_on = True
        try:
            yield self
        finally:
            self.is_on = False

    def _hook(self, event: str, args: tuple[object, ...]) -> None:
        if not self.is_on or event not in _EVENTS:
            return
        target = args[0] if event == "socket.getaddrinfo" else args[1]
        host = target[0] if isinstance(target, tuple) and target else target
        if isinstance(target, bytes | str) and event != "socket.getaddrinfo":
            return  # a path: a Unix socket
        if not is_loopback(host):
            self.refused.append(f"{event} {target!r}")
            raise OutsideAddress(f"tests stay on this machine: {event} {target!r}")


def is_loopback(host: object) -> bool:
    """Return whether a host, as the socket module gets it, is this machine's loopback; None binds to all."""
    if host is None:
        return True
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    if text.lower() in _NAMES:
        return True
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_loopback or text in ("0.0.0.0", "::")
    except ValueError:
        return False


BLOCKER = Blocker()
