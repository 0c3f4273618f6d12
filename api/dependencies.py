"""What routes take from the request that they answer: the caller, the services behind, and how an answer is written."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from fastapi import Request
from fastapi.responses import Response
from fastapi.security import HTTPBearer
from starlette.convertors import StringConvertor, register_url_convertor

from api import access
from api.access import Caller
from api.asking import Asking
from api.errors import Refused
from api.live import Live
from api.metrics import Metrics
from api.proxies import Proxies
from api.reader import Reader
from api.slots import Slots
from api.state import Holder, InForce
from api.statements import Statements
from gnomon.config.model import Role

MAX_JUDGED: Final = 2
MAX_WAITING_JUDGED: Final = 32
BEARER: Final = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="A token of `gnomon.api.tokens`. Without any configured none is needed, and the role is `sql`.",
)
"""Says in the document that a token is taken; `api.door` has read it by then."""


class _Id(StringConvertor):
    """An id within a path. It may have slashes, as an upstream's may; what can follow it is no part of it."""

    regex = "(?:(?!/cordon$).)+"


register_url_convertor("id", _Id())


@dataclass(slots=True)
class Services:
    """What the application stands on."""

    holder: Holder
    reader: Reader
    asking: Asking
    metrics: Metrics
    data_dir: Path
    """Where the embedded ClickHouse keeps the writer's credentials."""
    judging: Slots = field(default_factory=lambda: Slots("comparisons are judged", MAX_JUDGED, MAX_WAITING_JUDGED))
    """For what takes a core while it lasts."""
    proxies: Proxies = field(kw_only=True)
    query_names: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    """(route, method) → the names that its query may have."""
    statements: Statements = field(init=False)
    """SQL of people."""
    live: Live = field(init=False)
    """Tells what is new."""

    def __post_init__(self) -> None:
        self.live = Live(self.asking, self.metrics, self.holder.value.api.limits.streams)
        self.statements = Statements(self.holder, self.reader, self.metrics)


def services_of(request: Request) -> Services:
    """Return what the application stands on."""
    return cast(Services, request.app.state.services)


def asking_of(request: Request) -> Asking:
    """Return who asks named questions."""
    return services_of(request).asking


def in_force(request: Request) -> InForce:
    """Return the configuration in force."""
    return services_of(request).holder.value


def needs(role: Role) -> Callable[[Request], Awaitable[Caller]]:
    """Return a dependency: the caller, who may do what needs a role, of a query that has no unknown names."""

    async def caller(request: Request) -> Caller:
        found = access.require(request.scope["state"]["caller"], role)
        await known_names(request)
        return found

    return caller


async def known_names(request: Request) -> None:
    """
    Refuse a query that names what the route does not have, or names something twice.

    Raises:
        Refused: 400, with every such name.
    """
    route = request.scope["route"]
    known = services_of(request).query_names.get((route.path_format, request.method), frozenset())
    names = [name for name, _ in request.query_params.multi_items()]
    errors = [{"parameter": name, "detail": "is not known here"} for name in dict.fromkeys(names) if name not in known]
    errors += [{"parameter": name, "detail": "stands twice"} for name in dict.fromkeys(names) if names.count(name) > 1]
    if errors:
        there = ", ".join(sorted(known)) or "none"
        raise Refused("invalid-parameter", f"{sentence(errors)}; parameters here: {there}", errors=errors)


def sentence(errors: list[dict[str, str]]) -> str:
    """Return errors in one line."""
    return "; ".join(f"{error.get('parameter') or error.get('pointer')} {error['detail']}" for error in errors)


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer as JSON; `content` is of plain values (`api.values`)."""
    said = {"Cache-Control": "no-store", **(headers or {})}
    return Response(msgspec.json.encode(content), status, said, "application/json")
