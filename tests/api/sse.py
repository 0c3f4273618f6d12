"""A client of the live stream, on a real socket."""

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

SECONDS = 60
"""What a test waits at most."""


@dataclass(frozen=True)
class Event:
    kind: str
    id: str
    data: Any


class Heard:
    """One open stream."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.answer = answer
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.getheaders()}

    def json(self) -> Any:
        return json.loads(self.answer.read())

    def block(self) -> list[str]:
        """Return the lines up to the next empty one; nothing at the end of the stream."""
        lines: list[str] = []
        while (line := self.answer.readline().decode()) not in ("", "\n"):
            lines.append(line.rstrip("\n"))
        return lines

    def event(self, kind: str = "") -> Event:
        """Return the next event, or the next of a kind."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            lines = self.block()
            assert lines, "the stream has ended"
            said = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
            if "event" in said and kind in ("", said["event"]):
                return Event(said["event"], said["id"], json.loads(said["data"]))
        raise AssertionError(f"no event {kind!r} came")

    def rest(self) -> str:
        """Return what comes until the end, which must be a proper one."""
        return self.answer.read().decode()


@contextmanager
def heard(url: str, last_id: str = "", headers: Mapping[str, str] | None = None) -> Iterator[Heard]:
    """Open a stream; it is closed at the end of the block."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=SECONDS)
    said = {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {}), **(headers or {})}
    try:
        connection.request("GET", "/v1/stream", headers=said)
        answer = connection.getresponse()
        try:
            yield Heard(answer)
        finally:
            answer.close()
    finally:
        connection.close()
