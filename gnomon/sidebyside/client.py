"""
A polite JSON-RPC client for one endpoint: so many calls a second, so many at once, and it waits when told to.

The answer's `result` or `error` fragment is kept byte for byte, for the judge.
"""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

import aiohttp
import msgspec

from gnomon.rpc import errors as rpc_errors
from gnomon.sidebyside.errors import EndpointFailed

MAX_TRIES: Final = 4
_TRIES: Final = {"rate_limited": MAX_TRIES, "transport": 2}
"""By error class; every other answer is taken as it is."""
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 30.0
MAX_ANSWER_BYTES: Final = 256 << 20
MAX_SILENCES: Final = 10
"""So many calls in a row without any answer, and the endpoint counts as gone."""


class _Response(msgspec.Struct):
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Error(msgspec.Struct):
    code: object = None
    message: object = ""
    data: object = None


class _Request(msgspec.Struct):
    method: str
    params: msgspec.Raw
    id: int
    jsonrpc: str = "2.0"


_decode_response = msgspec.json.Decoder(_Response).decode
_decode_error = msgspec.json.Decoder(_Error).decode


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: its kind, the raw fragment, and how it came about."""

    kind: Literal["result", "error", "none"]
    fragment: bytes
    """The value of `result` or `error`; for "none" a few words that say why there is no answer."""
    error_class: str
    """The contract's vocabulary, "" for a result."""
    duration_seconds: float


@dataclass(frozen=True, slots=True)
class Pace:
    """How hard an endpoint is asked."""

    per_second: float = 20.0
    concurrency: int = 4
    timeout_seconds: float = 30.0


class Client:
    """
    Asks one endpoint.

    Args:
        session: shared by the clients of a run.
        url: with its secrets; only `display` is shown.
        pace: bounds, for this endpoint alone.
    """

    def __init__(self, session: aiohttp.ClientSession, url: str, pace: Pace) -> None:
        self._session = session
        self._url = url
        self._timeout = aiohttp.ClientTimeout(total=pace.timeout_seconds)
        self._slots = asyncio.Semaphore(pace.concurrency)
        self._interval = 1.0 / pace.per_second
        self._next_at = 0.0
        self._id = 0
        self._silences = 0
        self.ends_at = float("inf")
        """Monotonic seconds after which no call begins of a question that `has_end`."""
        self.stop = asyncio.Event()
        """Once set, none begins either."""
        self.display = display(url)
        self.n_calls = 0
        """Tries included."""
        self.n_pauses = 0
        """How often the endpoint asked us to wait."""

    async def ask(self, method: str, params: bytes) -> Reply:
        """
        Return the answer; a refusal for the rate is tried again, later.

        Raises:
            EndpointFailed: it has not answered many times in a row.
        """
        reply = await self._ask(method, params, has_end=False)
        if reply is None:
            raise AssertionError("only a question that has an end may go without a reply")
        return reply

    async def ask_in_time(self, method: str, params: bytes) -> Reply | None:
        """
        Return the answer as `ask` does, or None when the run ends before the question's turn comes.

        A pause that the endpoint asks for and that is longer than the run is not waited for: the refusal is the answer.

        Raises:
            EndpointFailed: it has not answered many times in a row.
        """
        return await self._ask(method, params, has_end=True)

    async def _ask(self, method: str, params: bytes, *, has_end: bool) -> Reply | None:
        started = time.monotonic()
        pause = FIRST_PAUSE_SECONDS
        async with self._slots:
            for tries in range(1, MAX_TRIES + 1):
                if not await self._turn(has_end):
                    return None
                kind, fragment, error_class, wait = await self._try(method, params)
                if tries >= _TRIES.get(error_class, 1):
                    break
                self.n_pauses += 1
                self._hold(min(wait if wait is not None else pause, LONGEST_PAUSE_SECONDS))
                if has_end and self._next_at >= self.ends_at:
                    break
                pause *= 2
        self._silences = 0 if kind != "none" else self._silences + 1
        if self._silences >= MAX_SILENCES:
            raise EndpointFailed(f"{self.display} has stopped answering ({fragment.decode(errors='replace')})")
        return Reply(kind, fragment, error_class, time.monotonic() - started)

    async def result(self, method: str, *params: object) -> object:
        """
        Return the decoded result of a call that prepares the comparison.

        Raises:
            EndpointFailed: an error answer, or none.
        """
        reply = await self.ask(method, msgspec.json.encode(params))
        if reply.kind != "result":
            why = reply.fragment.decode(errors="replace")[:300]
            words = "refuses" if reply.kind == "error" else "does not answer"
            raise EndpointFailed(f"{self.display} {words} {method}: {why}")
        try:
            return msgspec.json.decode(reply.fragment)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise EndpointFailed(f"{self.display} answers {method} with a result that is no JSON: {exc}") from exc

    async def _turn(self, has_end: bool) -> bool:
        """Wait for the next place in the rate; return whether it came, which it does not once the run has ended."""
        now = time.monotonic()
        at = max(now, self._next_at)
        if not has_end:
            self._next_at = at + self._interval
            await asyncio.sleep(at - now)
            return True
        if self.stop.is_set() or at >= self.ends_at:
            return False
        self._next_at = at + self._interval
        with suppress(TimeoutError):
            async with asyncio.timeout(at - now):
                await self.stop.wait()
        return not self.stop.is_set()

    def _hold(self, seconds: float) -> None:
        """Let nobody call before `seconds` have passed."""
        self._next_at = max(self._next_at, time.monotonic() + seconds)

    async def _try(
        self, method: str, params: bytes
    ) -> tuple[Literal["result", "error", "none"], bytes, str, float | None]:
        """Return kind, fragment, error class, and the seconds that the endpoint asks us to wait, of one HTTP call."""
        self._id += 1
        self.n_calls += 1
        rpc_id = self._id
        body = msgspec.json.encode(_Request(method=method, params=msgspec.Raw(params), id=rpc_id))
        headers = {"content-type": "application/json"}
        try:
            async with self._session.post(
                self._url, data=body, headers=headers, timeout=self._timeout, allow_redirects=False
            ) as response:
                status, content = response.status, await _bounded(response)
                wait = retry_after(response.headers.get("retry-after"))
        except TimeoutError:
            return "none", f"no answer in {self._timeout.total:.0f} s".encode(), "timeout", None
        except (aiohttp.ClientError, OSError) as exc:
            return "none", " ".join(f"{type(exc).__name__}: {exc}".split()).encode(), "transport", None
        if content is None:
            return "none", f"an answer above {MAX_ANSWER_BYTES >> 20} MiB".encode(), "parse", None
        kind, fragment, error_class = read(content, status, method, rpc_id)
        return kind, fragment, error_class, wait


async def _bounded(response: aiohttp.ClientResponse) -> bytes | None:
    """Return the body, or None when it is longer than anything that is worth comparing."""
    body = bytearray()
    async for piece in response.content.iter_chunked(1 << 18):
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            return None
    return bytes(body)


def read(
    content: bytes, status: int, method: str, rpc_id: int | None = None
) -> tuple[Literal["result", "error", "none"], bytes, str]:
    """
    Return kind, fragment and error class of an HTTP body.

    A whole JSON-RPC answer counts as what it is under any status; a body with both members is an error. With `rpc_id`
    an answer under another id is none: it may be that to another question. An id that is null, left out, or the same
    number as a string is let pass.
    """
    try:
        response = _decode_response(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        response = _Response()
    if rpc_id is not None and isinstance(response.id, msgspec.Raw):
        theirs = bytes(response.id).strip()
        if theirs.strip(b'"') not in (b"null", b"%d" % rpc_id):
            return "none", b"an answer under another id than the question's", "parse"
    if isinstance(response.error, msgspec.Raw) and bytes(response.error) != b"null":
        fragment = bytes(response.error)
        return "error", fragment, error_class_of(fragment, status, method)
    if isinstance(response.result, msgspec.Raw):
        return "result", bytes(response.result), ""
    error_class = rpc_errors.classify_status(status) if status >= 400 else "parse"
    return "none", f"HTTP {status}, no JSON-RPC answer".encode(), error_class


def error_class_of(fragment: bytes, status: int, method: str) -> str:
    """Return the class of an error fragment by the one table of classes."""
    try:
        error = _decode_error(fragment)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        error = _Error(message=fragment.decode(errors="replace"))
    code = error.code if isinstance(error.code, int) else None
    return rpc_errors.classify(code, str(error.message), error.data, status, method).error_class


def retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header; its date form and nonsense count as absent."""
    try:
        return max(0.0, float(value)) if value is not None else None
    except ValueError:
        return None


def display(url: str) -> str:
    """
    Return a URL that may be shown: user, path and query may hold keys.

    >>> display("https://user:pw@node.example/v2/KEY?token=x")
    'https://node.example/…'
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    has_more = parts.path.strip("/") or parts.query or parts.fragment
    return f"{parts.scheme}://{host}" + ("/…" if has_more else "")
