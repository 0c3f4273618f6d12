"""
The dashboard's pages, their panels and their files; no part of the API's document, for their addresses are for people.

A page asks the same named questions as `/v1` does, through the same `Asking`, so that the two cannot disagree.
"""

import gzip
import hmac
import urllib.parse
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from analytics.questions import UnknownQuestion, load, load_all
from api import access, problems
from api.dependencies import Services, in_force, services_of
from api.errors import Refused
from api.pages import address, assets, find, frame, render, site, sqlpage
from api.pages.address import WHOLE, BadAddress, view
from api.pages.page import Around, Memo, Page
from api.routes import silences
from gnomon.errors import GnomonError

router: Final = APIRouter(include_in_schema=False)

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No inline script or style, nothing from elsewhere: what a chain says can never run here."""
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
IMMUTABLE: Final = "public, max-age=31536000, immutable"
MAX_FIND: Final = 200
"""Characters that are looked for."""
_MIN_GZIP_BYTES: Final = 1024
_GZIP_LEVEL: Final = 5


def add(page: Page) -> None:
    """Add the routes of one page: itself, and each of its panels."""

    async def whole(request: Request, item: str = "") -> Response:
        return await _page(request, page, item)

    async def one(request: Request, panel: str, item: str = "") -> Response:
        return await _panel(request, page, panel, item)

    path = page.path.replace("{item}", "{item:id}")
    base = path.rstrip("/")
    router.add_api_route(base + "/_{panel}", one, methods=["GET"], name=f"{page.name} panel")
    router.add_api_route(path, whole, methods=["GET"], name=page.name)


async def _page(request: Request, page: Page, item: str) -> Response:
    async def answer(services: Services, around: Around) -> Response:
        async def framed() -> frame.Frame:
            return frame.frame(
                page,
                around.view,
                await _surroundings(request, services, around.view.now),
                title=_title(page, item),
                theme=_theme(request),
                reader=request.scope["state"]["caller"].name,
            )

        is_whole = request.query_params.get(WHOLE) == "1"
        html = await render.page_html(
            page, around, framed(), request_id=_request_id(request), is_whole=is_whole, title=_title(page, item)
        )
        return _html(request, html)

    return await _answered(request, page, item, answer)


async def _panel(request: Request, page: Page, name: str, item: str) -> Response:
    async def answer(services: Services, around: Around) -> Response:
        panel = page.panel(name)
        if panel is None:
            raise Refused("not-found", f"page {page.title} has no panel {name!r}")
        content = await render.content_of(panel, around, _request_id(request))
        return _html(request, render.panel_html(panel, around, content))

    return await _answered(request, page, item, answer)


async def _answered(
    request: Request, page: Page, item: str, answer: Callable[[Services, Around], Awaitable[Response]]
) -> Response:
    """Return an answer, for whoever may read; a problem with the address or the caller is a page too."""
    services = services_of(request)
    if request.scope["state"]["caller"] is None:
        return _to_login(request)
    caller = access.require(request.scope["state"]["caller"], "read")
    now_in_force = services.holder.value
    path = page.path.replace("{item}", item)
    default_from = page.default_from
    if default_from == address.HOURS and await _is_young(request, services):
        default_from = address.MINUTES
    try:
        asked = view(
            path,
            request.query_params.multi_items(),
            services.asking.now(),
            default_from=default_from,
            own=page.own,
        )
    except BadAddress as error:
        return _told(request, 400, "This address cannot be read", str(error), path)
    around = Around(
        asked,
        Memo(services.asking),
        now_in_force.settings,
        now_in_force.rules,
        caller.may("admin"),
        item,
        _watch(request, services).hours,
    )
    return await answer(services, around)


def _title(page: Page, item: str) -> str:
    return item or page.title


def _watch(request: Request, services: Services) -> frame.Watch:
    """Return what keeps the state of the data a little while, one for all readers."""
    watch: frame.Watch | None = getattr(request.app.state, "watch", None)
    if watch is None:
        watch = request.app.state.watch = frame.Watch(services.asking)
    return watch


async def _surroundings(request: Request, services: Services, now: datetime) -> frame.Surroundings:
    """Return what stands around the page; where ClickHouse cannot tell, nothing: each panel says why in its place."""
    try:
        return await _watch(request, services).around(now)
    except GnomonError as error:
        if problems.refusal(error) is None:
            raise
        return frame.NOTHING


async def _is_young(request: Request, services: Services) -> bool:
    """Return whether nothing is stored from before this hour; False where ClickHouse cannot tell."""
    try:
        return frame.is_young(await _watch(request, services).hours(), services.asking.now())
    except GnomonError as error:
        if problems.refusal(error) is None:
            raise
        return False


@router.get("/_foot")
async def foot(request: Request) -> Response:
    """Answer with the state of the data, for the side bar."""
    services = services_of(request)
    access.require(request.scope["state"]["caller"], "read")
    asked = view("/", (), services.asking.now(), default_from=address.HOURS)
    surroundings = await _surroundings(request, services, asked.now)
    framed = frame.frame(site.PAGES[0], asked, surroundings)
    return _html(request, render.environment().get_template("foot.html").render(view=asked, frame=framed))


@router.get("/_find")
async def find_matches(request: Request) -> Response:
    """Answer with where a text may lead, for the dialog."""
    text, found = _found(request)
    return _html(request, render.environment().get_template("found.html").render(matches=found, text=text))


@router.get("/find")
async def find_first(request: Request) -> Response:
    """Lead to the first match; without one, to the first page."""
    _, found = _found(request)
    return RedirectResponse(found[0].href if found else "/", 303)


def _found(request: Request) -> tuple[str, list[find.Match]]:
    services = services_of(request)
    caller = access.require(request.scope["state"]["caller"], "read")
    now_in_force = services.holder.value
    asked = view("/", (), services.asking.now(), default_from=address.HOURS)
    around = Around(asked, services.asking, now_in_force.settings, now_in_force.rules, caller.may("admin"))
    text = request.query_params.get("q", "")[:MAX_FIND]
    return text, find.matches(text, around, tuple((q.name, q.question) for q in load_all()))


# --- login -----------------------------------------------------------------------------------------------------------


@router.get("/login")
async def login_form(request: Request) -> Response:
    """Answer with the form that takes a token."""
    return _login_page(request, 200, "", request.query_params.get("next", "/"))


@router.post("/login")
async def login(request: Request) -> Response:
    """Keep a token in a cookie that scripts cannot read and other sites cannot send."""
    fields = dict(urllib.parse.parse_qsl((await request.body()).decode("utf-8", "replace")))
    found = in_force(request).access
    way = _own_path(fields.get("next", "/"))
    if not found.is_open:
        token = fields.get("token", "").strip()
        if found.holder_of(token) is None:
            return _login_page(request, 403, "This token is not known here.", way)
        answer = RedirectResponse(way, 303)
        is_secure = request.url.scheme == "https"
        answer.set_cookie(access.COOKIE, token, path="/", httponly=True, samesite="strict", secure=is_secure)
        return answer
    return RedirectResponse(way, 303)


@router.post("/logout")
async def logout(request: Request) -> Response:
    """Forget the token."""
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(access.COOKIE, path="/", httponly=True, samesite="strict")
    return answer


def _own_path(text: str) -> str:
    """Return a path of ours to go on to; anything that could lead elsewhere is the first page."""
    is_ours = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if is_ours else "/"


def _login_page(request: Request, status: int, words: str, way: str) -> Response:
    made = render.environment().get_template("login.html")
    return _html(request, made.render(theme=_theme(request), words=words, way=_own_path(way)), status)


@router.post("/alerts/silence")
async def silence(request: Request) -> Response:
    """Make a silence of two hours, as the button of a firing alert asks for; needs the role admin."""
    caller = access.require(request.scope["state"]["caller"], "admin")
    fields = dict(urllib.parse.parse_qsl((await request.body()).decode("utf-8", "replace")))
    try:
        new = silences.NewSilence.model_validate(
            {"rule": fields.get("rule", ""), "subject": fields.get("subject") or "*", "for": "2h", "comment": "by hand"}
        )
    except ValueError as error:
        raise Refused("invalid-body", str(error)) from None
    await silences.create(request, new, caller)
    return RedirectResponse("/alerts", 303)


@router.get("/sql/{name}.csv")
async def question_file(request: Request, name: str) -> Response:
    """Answer with a named question's rows as a file, asked as its page asks."""

    async def answer(services: Services, around: Around) -> Response:
        try:
            question = load(name)
        except UnknownQuestion as error:
            raise Refused("not-found", str(error)) from None
        rows = await around.asks.ask(name, sqlpage.given(around, question))
        headers = {
            "Content-Disposition": f'attachment; filename="{question.name}.csv"',
            "Content-Type": "text/csv; charset=utf-8",
            "Cache-Control": "no-store",
        }
        return Response(sqlpage.as_csv(rows), headers=headers)

    return await _answered(request, sqlpage.NAMED, name, answer)


# --- files -----------------------------------------------------------------------------------------------------------


@router.get(assets.PREFIX + "/{digest}/{path:path}")
async def file(request: Request, digest: str, path: str) -> Response:
    """Answer with a file of this release; it never changes, so it may be kept for ever."""
    loaded = assets.load()
    found = loaded.files.get(path) if hmac.compare_digest(digest.encode(), loaded.digest.encode()) else None
    if found is None:
        raise Refused("not-found", f"there is no file {path!r} in this release")
    headers = {"Cache-Control": IMMUTABLE, "Content-Type": found.media_type, "Vary": "Accept-Encoding"}
    if found.gzipped and _takes_gzip(request):
        return Response(found.gzipped, headers={**headers, "Content-Encoding": "gzip"})
    return Response(found.body, headers=headers)


@router.get("/favicon.ico")
async def icon(request: Request) -> Response:
    """Lead browsers that ask by habit to the icon."""
    return RedirectResponse(assets.load().url("icon.svg"), 308)


# --- answers ---------------------------------------------------------------------------------------------------------


def _html(request: Request, text: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    body = text.encode("utf-8", "replace")
    said = {**HEADERS, **(headers or {}), "Content-Type": "text/html; charset=utf-8", "Vary": "Accept-Encoding"}
    if len(body) >= _MIN_GZIP_BYTES and _takes_gzip(request):
        return Response(gzip.compress(body, _GZIP_LEVEL, mtime=0), status, {**said, "Content-Encoding": "gzip"})
    return Response(body, status, said)


def _takes_gzip(request: Request) -> bool:
    codings = request.headers.get("accept-encoding", "").lower()
    return any(
        part.split(";")[0].strip() == "gzip" and "q=0" not in part.replace(" ", "").replace("q=0.", "")
        for part in codings.split(",")
    )


def _told(request: Request, status: int, title: str, words: str, way: str = "") -> Response:
    """Return a page that says what is wrong with the request; `way` is its address without parameters."""
    ways = [*([("Try without parameters", way)] if way else []), ("Overview", "/")]
    html = (
        render.environment()
        .get_template("told.html")
        .render(title=title, words=words, ways=ways, theme=_theme(request), id=_request_id(request))
    )
    return _html(request, html, status)


def is_for_eyes(request: Request) -> bool:
    """Return whether a browser goes to an address that is none of the API's; a panel that fetches itself does not."""
    is_api = request.url.path.startswith(("/v1/", problems.PREFIX, assets.PREFIX + "/"))
    return not is_api and "text/html" in request.headers.get("accept", "") and "hx-request" not in request.headers


def nothing_here(request: Request) -> Response:
    """Return the page for an address that leads nowhere."""
    words = f"Nothing is at {request.scope['path']}; the menu of the first page says what there is."
    return _told(request, 404, "There is no such page", words)


def _to_login(request: Request) -> Response:
    """Return whoever sent no token to where one can be given; a panel by itself says so in a problem."""
    if request.headers.get("hx-request"):
        access.require(None, "read")
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(f"/login?next={urllib.parse.quote(here, safe='')}", 303)


def _theme(request: Request) -> str:
    return request.cookies.get("gnomon_theme", "")


def _request_id(request: Request) -> str:
    return str(request.scope["state"]["request_id"])


for _one in site.PAGES:
    add(_one)
