"""
Clients: each question is asked once, at a rate; what they were told is kept.

A client never asks again: of a question without an answer at most one row may exist, of an answered one exactly one.
Now and then several questions travel as one batch. `now` of all times is the monotonic clock.
"""

import asyncio
import itertools
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.cluster_chaos import script

CONNECTIONS = 24
TIMEOUT_SECONDS = 20.0
BATCH_EVERY, BATCH_SIZE = 50, 5
_length = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE).search


@dataclass(slots=True)
class Told:
    """What a client knows of one question."""

    asked_at: float
    answered_at: float | None = None
    """When it had its answer; None: none, an error, or the connection broke."""


@dataclass(slots=True)
class Clients:
    """See the module's text."""

    port: int
    per_second: float
    told: dict[int, Told] = field(default_factory=dict)
    """Question → what is known of it; a question that never left, for nobody listened, is not in it."""
    wrong: list[str] = field(default_factory=list)
    """Answers that are none of what was asked."""
    n_answered: int = 0
    n_refused: int = 0
    n_errors: int = 0
    _stop: bool = False

    def stop(self) -> None:
        """Ask nothing more."""
        self._stop = True

    async def run(self) -> None:
        """Ask until `stop`; return when the last question has its answer."""
        numbers = itertools.count(1)
        started = time.monotonic()
        await asyncio.gather(*(self._work(numbers, started) for _ in range(CONNECTIONS)))

    async def _work(self, numbers: Iterator[int], started: float) -> None:
        reader: asyncio.StreamReader | None = None
        writer: asyncio.StreamWriter | None = None
        due = time.monotonic()
        while not self._stop:
            asked = [next(numbers)]
            if asked[0] % BATCH_EVERY == 0:
                asked += itertools.islice(numbers, BATCH_SIZE - 1)
            due += CONNECTIONS * len(asked) / self.per_second
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due = max(due, time.monotonic() - 1)
            try:
                if writer is None or reader is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                self.n_refused += len(asked)
                continue
            for n in asked:
                self.told[n] = Told(time.monotonic())
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    writer.write(_post(asked))
                    self._take(asked, await _read(reader))
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                writer.close()
                writer = None
        if writer is not None:
            writer.close()

    def _take(self, asked: list[int], answer: Any) -> None:
        """Keep what was answered."""
        answers = answer if isinstance(answer, list) else [answer]
        if [one.get("id") for one in answers] != asked and len(asked) > 1:
            self.wrong.append(f"{asked} got {str(answer)[:300]}")
            return
        for n, one in zip(asked, answers, strict=True):
            if "error" in one:  # it may be one about the connection, without an id
                self.n_errors += 1
            elif one.get("id") != n or one.get("result") != script.served(n):
                self.wrong.append(f"{n} got {str(one)[:300]}")
            else:
                self.told[n].answered_at = time.monotonic()
                self.n_answered += 1


def _post(asked: list[int]) -> bytes:
    questions = [script.question(n) for n in asked]
    body = json.dumps(questions if len(questions) > 1 else questions[0]).encode()
    head = f"POST /main/evm/{script.CHAIN} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def _read(reader: asyncio.StreamReader) -> Any:
    head = await reader.readuntil(b"\r\n\r\n")
    length = _length(head)
    return json.loads(await reader.readexactly(int(length[1]) if length else 0))
