"""
The calls of the demonstration alone, to a proxy that stands elsewhere: for a stack that brings its own services.

`docker-compose.yml` runs it in its profile `demo`. The nodes behind the proxy are simulated ones (`gnomon.demo.chain`),
whose accounts and contract are known beforehand.
"""

import threading
from collections.abc import Callable
from typing import Final

from gnomon.demo.chain import ACCOUNTS, REGISTER
from gnomon.demo.clients import CallFailed, PlainClient
from gnomon.demo.traffic import Scene, Traffic

TOLD_SECONDS: Final = 30.0
"""Between two lines that say how it goes."""
RETRY_SECONDS: Final = 0.5


def load(url: str, secret: str, per_second: float, stop: threading.Event, say: Callable[[str], None]) -> Traffic:
    """
    Call a proxy over the simulated chain until `stop`; return the traffic, for its counts.

    Args:
        url: of the network at the proxy.
        secret: of a client; empty where none is asked for.
        per_second: calls.
        stop: ends it.
        say: is told how it goes, every half minute.
    """
    client = PlainClient(url, secret)
    scene = Scene(REGISTER, ACCOUNTS, 0)
    traffic = Traffic(lambda: PlainClient(url, secret), scene, per_second=per_second)
    told_at = 0.0
    seconds = 0.0
    try:
        while not stop.wait(RETRY_SECONDS):
            seconds += RETRY_SECONDS
            try:
                height = client.height()
            except CallFailed as error:
                if not scene.height and seconds - told_at >= TOLD_SECONDS:
                    told_at = seconds
                    say(f"{url} does not answer yet: {error}")
                continue
            if not scene.height:
                say(f"calling {url}, {per_second:g} times a second")
                scene.height = height
                traffic.start()
            scene.height = height
            if seconds - told_at >= TOLD_SECONDS:
                told_at = seconds
                say(f"{traffic.calls} calls, {traffic.failed} failed {traffic.last_failure}".rstrip())
    finally:
        traffic.stop()
        traffic.join(5.0)
        client.close()
    return traffic
