"""One request to the application, without a socket: what goes in is a request's bytes, what comes out an answer's."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from analytics.questions import Question
from analytics.store import Result
from api.access import Access
from api.app import create
from api.asking import Asking
from api.dependencies import Services
from api.door import Door
from api.metrics import Metrics
from api.proxies import Proxies
from api.state import Holder, InForce
from gnomon.config.load import loads
from gnomon.config.model import Settings

SMALLEST = "projects: [{id: main, upstreams: [{id: p1, endpoint: 'http://127.0.0.1:1', evm: {chainId: 31337}}]}]\n"


def settings_of(gnomon: str = "{}") -> Settings:
    """Return settings with these below `gnomon`."""
    return loads(f"{SMALLEST}gnomon: {gnomon}\n", environment={})


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_whole: bool = False
    """The end of the body came too."""

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """The end of a problem's type."""
        assert self.headers["content-type"] == "application/problem+json"
        return str(self.json()["type"]).removeprefix("/problems/")


@dataclass
class FakeReader:
    """Answers every statement with what it was given, or raises it."""

    result: "Result | Exception | Callable[[str, Mapping[str, object]], Result]"
    asked: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    n_waiting: int = 0

    async def query(self, sql: str, bound: Mapping[str, object]) -> Result:
        self.asked.append((sql, dict(bound)))
        if isinstance(self.result, Exception):
            raise self.result
        return self.result(sql, bound) if callable(self.result) else self.result


def result_of(question: Question, *rows: Sequence[Any]) -> Result:
    """Return rows as ClickHouse would give them."""
    return Result(
        tuple(c.name for c in question.columns), tuple(c.type for c in question.columns), [tuple(r) for r in rows]
    )


class Api:
    """An application, and a caller of it."""

    def __init__(
        self,
        reader: Any,
        settings: Settings | None = None,
        access: Access | None = None,
        data_dir: Path = Path("/nonexistent"),
        rules: tuple[Any, ...] = (),
    ) -> None:
        value = InForce(settings or settings_of(), access or Access(), rules)
        holder = Holder(value)
        asking = Asking(reader, lambda: holder.value.settings.gnomon.pricing.accounts)
        self.services = Services(
            holder, reader, asking, Metrics(), data_dir, proxies=Proxies(lambda: holder.value.settings, data_dir)
        )
        self.door: Door = create(self.services)

    def call(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | Sequence[bytes] = b"",
        token: str | None = None,
        **query: object,
    ) -> Answer:
        """Send one request; `from_` in the query is `from`."""
        said = {"host": "127.0.0.1:8080", **(headers or {})}
        if token is not None:
            said["authorization"] = f"Bearer {token}"
        pairs = [(k.rstrip("_"), v) for k, vs in query.items() for v in (vs if isinstance(vs, list) else [vs])]
        text = "&".join(f"{quote(name)}={quote(str(value))}" for name, value in pairs)
        chunks = [body] if isinstance(body, bytes) else list(body)
        return asyncio.run(self.send(method, path, text, said, chunks))

    def get(self, path: str, **more: Any) -> Answer:
        return self.call("GET", path, **more)

    def post(self, path: str, content: object, **more: Any) -> Answer:
        headers = {"content-type": "application/json", **more.pop("headers", {})}
        return self.call("POST", path, body=json.dumps(content).encode(), headers=headers, **more)

    async def send(self, method: str, path: str, query: str, headers: Mapping[str, str], chunks: list[bytes]) -> Answer:
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": path, "raw_path": quote(path).encode(), "query_string": query.encode(), "root_path": "",
            "headers": [(n.lower().encode(), v.encode("latin-1")) for n, v in headers.items()],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8080), "state": {},
        }  # fmt: skip
        waiting = list(chunks)
        answer = Answer(0, {}, b"")
        answered = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if not waiting:
                await answered.wait()
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {n.decode(): v.decode("latin-1") for n, v in message["headers"]}
            else:
                answer.body += message.get("body", b"")
                if not message.get("more_body", False):
                    answer.is_whole = True
                    answered.set()

        await self.door(scope, receive, send)
        return answer
