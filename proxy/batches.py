"""Batches: each element is a request of its own; the answers are joined in the order of the questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.clients import Client, RequestHead

if TYPE_CHECKING:
    from proxy.asked import Asked


class Batch:
    """Waits for all elements of one batch, then answers the client."""

    __slots__ = ("_client", "_head", "_left", "_parts", "_place", "id", "member")

    def __init__(self, batch_id: bytes, client: Client, head: RequestHead, n_elements: int) -> None:
        self.id = batch_id
        self.member = b'"batch_id":"%b",' % batch_id
        self._client = client
        self._head = head
        self._left = n_elements
        self._parts: list[bytes] = [b""] * n_elements
        self._place: dict[bytes, int] = {}

    def add(self, asked: Asked, place: int) -> None:
        """Say which place in the answer a request fills."""
        self._place[asked.request_id] = place

    def done(self, asked: Asked, body: bytes) -> None:
        """Take an element's answer; empty for a notification."""
        self.fill(self._place[asked.request_id], body)

    def fill(self, place: int, body: bytes) -> None:
        """Set one answer; the last one sends them all."""
        self._parts[place] = body
        self._left -= 1
        if not self._left:
            parts = [part.strip() for part in self._parts if part]
            lines = b"X-Gnomon-Request-Id: %b\r\n" % self.id
            self._client.answer(self._head, lines, b"[" + b",".join(parts) + b"]" if parts else b"")
