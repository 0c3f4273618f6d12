"""Pages and panels as HTML: one environment, strict about what it is not given, escaping everything."""

import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from api import problems
from api.pages import assets, figures
from api.pages.address import WHOLE, View, address
from api.pages.frame import Frame
from api.pages.page import HAS_BEFORE, Around, Heard, Page, Panel, Shown, State, together

_HEIGHTS = (80, 120, 160, 200, 240, 320, 360, 400, 480, 640)
_TOO_MUCH = ("query-too-slow", "query-too-large")
_log = logging.getLogger(__name__)


class Placed:
    """A panel at its place, as templates see it."""

    def __init__(self, panel: Panel, view: View, *, is_stale: bool = False) -> None:
        self.name = panel.name
        self.title = panel.title
        self.css = panel.css
        self.on = panel.on
        self.is_still = panel.is_still
        self.is_bare = panel.is_bare
        self.is_stale = is_stale
        self.href = view.part(panel.name)
        self.tall = next((tall for tall in _HEIGHTS if tall >= panel.tall), _HEIGHTS[-1])
        self.n_bars = max(2, min(self.tall // 32, 12))
        self.menu: list[tuple[str, str, str]] = []
        self.before = ""
        """What it says of the range before, behind its note."""


@cache
def environment() -> Environment:
    """Return the environment of all templates."""
    made = Environment(
        loader=PackageLoader("api"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals.update(asset=assets.load().url, fig=figures)
    return made


def state_of(error: Exception, request_id: str, view: View) -> State:
    """
    Return what a panel says of an error: its title, the cause in words, ways out, the request's id.

    A shorter range helps where a question asked too much; else the page Data says what is stored.

    Raises:
        Exception: the error itself, where it is a bug.
    """
    refused = problems.refusal(error)
    if refused is None:
        raise error
    title = problems.PROBLEMS[refused.problem].title
    other = view.shorter() if refused.problem in _TOO_MUCH else []
    ways = [*other, ("Try again", view.here()), *([] if other else [("How far is it stored?", view.to("/data"))])]
    return State(title, refused.detail, mark="bad", ways=ways, id=f"{refused.problem} · request {request_id}")


@dataclass(frozen=True, slots=True)
class Content:
    """What a panel shows, and what it asked for that."""

    shown: Shown | State
    given: Mapping[str, Mapping[str, str]]


async def content_of(panel: Panel, around: Around, request_id: str) -> Content:
    """Return what a panel shows; an error becomes a state of this panel alone."""
    heard = Heard(around.asks)
    return Content(await _shown(panel, replace(around, asks=heard, unheard=around.asks), request_id), heard.given)


async def _shown(panel: Panel, around: Around, request_id: str) -> Shown | State:
    try:
        return await panel.build(around)
    except Exception as error:
        refused = problems.refusal(error)
        if refused is None:
            _log.exception("a panel failed", extra={"panel": panel.name, "request_id": request_id})
            return State(
                "Something unexpected happened",
                "It is a bug; the log has it under this id.",
                mark="bad",
                ways=[("Try again", around.view.here()), ("Overview", around.view.to("/"))],
                id=f"internal · request {request_id}",
            )
        return state_of(error, request_id, around.view)


def panel_html(panel: Panel, around: Around, content: Content, *, is_stale: bool = False) -> Markup:
    """Return one panel."""
    placed = Placed(panel, around.view, is_stale=is_stale)
    placed.menu = _menu(panel, around, content.given)
    if isinstance(content.shown, State):
        template, members = "failed.html", {"state": content.shown}
    else:
        template, members = panel.template, dict(content.shown)
        placed.before = _before(panel, around.view, content.shown)
    return Markup(
        environment().get_template(f"parts/{template}").render(part=placed, view=around.view, around=around, **members)
    )


def waiting_html(panel: Panel, around: Around) -> Markup:
    """Return the place of a panel that comes later, as tall as it will be."""
    whole = around.view.here(**{WHOLE: "1"})
    return Markup(environment().get_template("parts/waiting.html").render(part=Placed(panel, around.view), whole=whole))


async def page_html(
    page: Page, around: Around, framing: Awaitable[Frame], *, request_id: str, is_whole: bool = False, title: str = ""
) -> str:
    """
    Return a page.

    Args:
        framing: what stands around it, asked for while the panels are.
        is_whole: with its slow panels in it.
    """
    places = [panel for panel in page.panels if not panel.is_apart]
    quick = [panel for panel in places if is_whole or not panel.is_slow]
    frame, *contents = await together(framing, *(content_of(panel, around, request_id) for panel in quick))
    by_name: dict[str, Content] = {panel.name: content for panel, content in zip(quick, contents, strict=True)}
    is_stale = frame.data.is_stale and around.view.span.is_running
    panels: dict[str, Markup] = {}
    for panel in places:
        if panel.name in by_name:
            panels[panel.name] = panel_html(panel, around, by_name[panel.name], is_stale=is_stale and bool(panel.on))
        else:
            panels[panel.name] = waiting_html(panel, around)
    lead, below = page.lead(around, {name: content.shown for name, content in by_name.items()})
    members: Mapping[str, Any] = {
        "page": page,
        "view": around.view,
        "frame": frame,
        "around": around,
        "panels": panels,
        "lead": lead,
        "below": below,
        "heading": title or page.title,
        "chips": page.chips(around) if page.chips is not None else (),
    }
    return environment().get_template(f"pages/{page.name}.html").render(**members)


def _before(panel: Panel, view: View, shown: Shown) -> str:
    """Return where a panel shows the range before, or that nothing is stored of it; empty where it is not asked."""
    if not (panel.compares and view.is_compared):
        return ""
    words = view.before_words
    return f"{panel.compares}: {words}" if shown.get(HAS_BEFORE) else f"nothing from {words}"


def _menu(panel: Panel, around: Around, asked: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str, str]]:
    """Return what stands behind a panel's dots: its questions as it asked them, the first as a file, a fixed link."""
    lines: list[tuple[str, str, str]] = []
    names = [name for name in panel.questions if name in asked]
    for name in names:
        words = "Open in SQL" if len(names) == 1 else f"Open in SQL: {name}"
        lines.append((words, address_of(f"/sql/{name}", asked[name]), "link"))
    if names:
        lines.append(("As CSV", address_of(f"/sql/{names[0]}.csv", asked[names[0]]), "file"))
        lines.append(("Copy link with fixed times", around.view.fixed() + f"#p-{panel.name}", "copy"))
    return lines


def address_of(path: str, given: Mapping[str, str]) -> str:
    """Return an address with parameters; empty ones are left out."""
    return address(path, [(key, value) for key, value in given.items() if value])
