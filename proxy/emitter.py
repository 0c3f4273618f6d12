"""
Events into the log: built, encoded and appended in one go, before the client has its last byte.

An event that cannot be stored (a full log) is dropped and counted by the log; nothing waits for anything but the
kernel. A body whose digest was sent lately is sent as a digest.
"""

import base64
import os
import time
from typing import Final, Protocol

from msgspec import Raw

from gnomon.events.codec import encode
from gnomon.events.contract import NO_BODY, Answer, AnyEvent
from gnomon.rpc import blocks
from gnomon.rpc.methods import Method
from proxy.core.answers import NONE, Digests, Reply

TEXT_HEAD_BYTES: Final = 512
"""How much of a text that is no JSON, or of a body that is too large, an event shows."""

now_ns = time.time_ns


class EventLog(Protocol):
    """What the emitter needs of the log."""

    def append(self, data: bytes) -> int: ...


class Emitter:
    """One worker's events."""

    def __init__(self, log: EventLog, *, config_hash: str, bodies: str, max_body_bytes: int) -> None:
        self.proc = os.urandom(8).hex()
        self.proc_bytes = self.proc.encode()
        self.config_hash = config_hash
        self.bodies = bodies
        self.max_body_bytes = max_body_bytes
        self.proved = Digests()
        """Fragments known to be valid JSON."""
        self.sent = Digests()
        """Fragments that travelled as a primary's body."""
        self.store = log.append
        self.seq = 0
        """Number of the event that comes next."""
        self.n_requests = 0
        self.n_bytes = 0
        self.n_dropped = 0

    @property
    def n_events(self) -> int:
        """Events made by this process, dropped ones included."""
        return self.seq

    def next_request_id(self) -> bytes:
        """Return a new request id: the boot id and a counter."""
        self.n_requests += 1
        return b"%b-%x" % (self.proc_bytes, self.n_requests)

    def next_event_id(self) -> str:
        """Return the id of the event that is appended next."""
        seq = self.seq
        self.seq = seq + 1
        return f"{self.proc}:{seq}"

    def append(self, event: AnyEvent) -> None:
        """Encode and store one event."""
        self.append_bytes(encode(event))

    def append_bytes(self, data: bytes) -> None:
        """Store one encoded event."""
        self.n_bytes += len(data)
        if self.store(data) < 0:
            self.dropped()

    def dropped(self) -> None:
        """Count an event that the log did not take; a body may have been lost with it, so all travel again."""
        self.n_dropped += 1
        self.sent.forget()

    def travels(self, fragment: "memoryview | bytes", digest: str) -> bool:
        """Say whether a primary body goes along with its event, and remember that it did."""
        if digest in self.sent or self.bodies != "all" or len(fragment) > self.max_body_bytes:
            return False
        if self.sent.knew(digest):
            return False
        self.sent.note(digest)
        return True

    def answer(self, reply: Reply | None, method: Method, *, travels: bool, is_primary: bool = False) -> Answer:
        """
        Return an answer as events carry it.

        Args:
            travels: the body goes along, if it is within `maxBodyBytes`.
            is_primary: a body that was sent lately stays a digest.
        """
        if reply is None or reply.kind is NONE:
            head = reply.body[:TEXT_HEAD_BYTES] if reply is not None else b""
            return Answer(body_base64=base64.b64encode(head).decode() if head else "")
        n = len(reply.fragment)
        digest = reply.digest
        body = NO_BODY
        text = ""
        if travels:
            if n > self.max_body_bytes or reply.is_odd:
                text = base64.b64encode(bytes(reply.fragment[:TEXT_HEAD_BYTES])).decode()
            elif not is_primary or self.travels(reply.fragment, digest):
                body = Raw(reply.fragment)
        block = blocks.response_block(method, reply.fragment) if method.response_block_path is not None else None
        return Answer(kind=reply.kind, digest=digest, n_bytes=n, body=body, body_base64=text, response_block=block)  # type: ignore[arg-type]
