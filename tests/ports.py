"""Ports of loopback for processes that are told where to listen."""

import random
import socket
from pathlib import Path

_FIRST = 10_000
_CHANCE = random.SystemRandom()  # not the seeded one: every test would begin with the same port


def free_port() -> int:
    """Return a port that nobody listens on at this moment."""
    return free_ports(1)


def free_ports(n: int) -> int:
    """
    Return the first of `n` ports in a row that nobody listens on at this moment.

    They are below those that the system gives to clients: an outgoing connection cannot take one meanwhile.
    """
    while True:
        first = _CHANCE.randrange(_FIRST, _first_of_clients() - n)
        try:
            for port in range(first, first + n):
                with socket.create_server(("127.0.0.1", port)):
                    pass
        except OSError:
            continue
        return first


def _first_of_clients() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        return 32_768
