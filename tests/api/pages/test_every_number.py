"""Every number, time and share of every page is that of /v1 and that of SQL, and none is left out of the list."""

import re
from functools import cache
from typing import Any
from urllib.parse import urlencode

import pytest

from analytics import accounts
from analytics.questions import SETTINGS, Question, load_all
from api.pages import site as sitemap
from api.pages import sqlpage
from tests.api.night import settings
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Cells, Entry, look, part_of, same, unlisted
from tests.api.pages.lists import ALL
from tests.api.pages.lists.heads import TITLES
from tests.api.pages.lists.series import start_of
from tests.api.pages.reading import ADDRESSES as ROUTES
from tests.api.pages.reading import Node, parse

pytestmark = pytest.mark.clickhouse

CASES = [pytest.param(entry, column, id=f"{entry.name}: {column}") for entry in ALL for column in entry.shown
         if entry.shown[column]]  # fmt: skip


@pytest.fixture(scope="module")
def said(full: Full) -> "Said":
    return Said(full)


class Said:
    """What the page, /v1 and SQL say of each entry, asked for once for all its columns."""

    def __init__(self, full: Full) -> None:
        self.of = cache(lambda number: self._read(full, ALL[number]))

    @staticmethod
    def _read(full: Full, entry: Entry) -> "tuple[Cells, Rows, Rows]":
        return entry.read(entry.part(full)), entry.api(full), entry.sql(full)


@pytest.mark.parametrize(("entry", "column"), CASES)
def test_a_number_is_the_same_on_the_page_from_v1_and_from_sql(
    full: Full, said: Said, entry: Entry, column: str
) -> None:
    """In every row; what is shown is /v1's number in words, with the exact number beside it."""
    page, api, sql = said.of(ALL.index(entry))
    cells, one, other = ({row: of[column] for row, of in rows.items() if column in of} for rows in (page, api, sql))

    assert set(cells) == set(one) == set(other) != set()
    for row, cell in cells.items():
        assert same(one[row], other[row], entry.near.get(column, 0.0)), f"{row}: /v1 {one[row]!r}, SQL {other[row]!r}"
        assert look(cell) == entry.looks(column, one[row], full.now), row


# --- none is left out -----------------------------------------------------------------------------------------------

PANELS = [(page.name, panel.name) for page in sitemap.PAGES for panel in page.panels]
PARTS = [*PANELS, *((page.name, "lead") for page in sitemap.PAGES), ("overview", "nav")]
NO_DATA = {
    *(("sql", name) for name in ("editor", "questions", "schema", "lead")),
    *(("question", name) for name in ("parameters", "lead")), ("finding", "lines"),
}  # fmt: skip
"""What is said of the program and of what was asked, not of what is stored; lines of an answer are in test_aligned."""
ANSWERS = ("question", "result")
"""See `test_an_answer_is_the_same_on_its_page_from_v1_and_from_sql`."""


def addresses(page: str, full: Full) -> list[str]:
    """Return those of a page that the list has, as they are without filters."""
    path = re.compile(next(one.path for one in sitemap.PAGES if one.name == page).replace("{item}", "[^/?]+"))
    return list(dict.fromkeys(address for entry in ALL if path.fullmatch(address := full.where(entry.address))))


def names_of(full: Full, whole: Node) -> list[str]:
    """Return words with digits that are no numbers: names, and the page's range as the controls say it."""
    methods = [row["name"] for row in full.sql("SELECT DISTINCT method AS name FROM gnomon.attempts")]
    menus = [one.text for one in whole.one("header", "top").all("summary") if one.text.startswith("Time")]
    words = menus[0].removeprefix("Time") if menus else ""
    ranges = [words, words[:1].lower() + words[1:]]
    return [*full.upstreams, "gone-base", "127.0.0.1", "log 0", "p99", *TITLES, *TITLES.values(), *methods, *ranges]


@pytest.mark.parametrize(("page", "panel"), [one for one in PARTS if one not in {*NO_DATA, ANSWERS}])
def test_no_number_is_left_out_of_the_list(full: Full, page: str, panel: str) -> None:
    """Beside the cells of the list a page shows none; a panel with nothing to show would hide what it has."""
    is_apart = any(
        one.name == panel and one.is_apart for site in sitemap.PAGES if site.name == page for one in site.panels
    )
    n_shown = 0
    for address in addresses(page, full):
        part = part_of(full, address, panel, is_apart=is_apart)
        if part.all("div", "state"):
            continue
        n_shown += 1
        mine = [entry for entry in ALL if entry.panel == panel and full.where(entry.address) == address]
        cells = [
            (entry, column, cell) for entry in mine for row in entry.read(part).values() for column, cell in row.items()
        ]
        covered = [cell for entry, column, cell in cells if column in entry.shown]

        assert unlisted(part, covered, names_of(full, full.page(address))) == [], address
    assert n_shown


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<p>12 calls</p>", ["12 calls"]),
        ("<p><data value='12'>12</data> <data value='9300'>9 k</data></p>", ["12", "9300", "9 k"]),
        ("<p title='of 40'>calls</p>", ["of 40"]),
        ("<svg role='img' aria-label='3 of 4'><text>9</text></svg>", ["3 of 4", "9"]),
        ("<svg aria-hidden='true'><text>9</text></svg>", []),
        ("<p>op-1, p99 ms</p><th>p99 ms</th>", ["op-1, p99 ms"]),
        ("<p>op-1</p><td id='x'>7</td>", []),
    ],
)
def test_the_guard_finds_a_number_wherever_it_stands(html: str, found: list[str]) -> None:
    """In a text, a figure's exact value, a title, a drawing's label; not in names, constants and cells of the list."""
    part = parse(f"<section>{html}</section>")
    covered = [node for node in part.all() if node.attributes.get("id") == "x"]

    assert unlisted(part, covered, ["op-1"]) == found


# --- answers of questions --------------------------------------------------------------------------------------------

NEEDED = {
    "network": "evm:1", "method": "eth_getBlockReceipts", "shadow": "node-b", "class": "value", "upstream": "geth-1",
    "generic_path": "$.result[*].logs[*].logIndex",
}  # fmt: skip
QUESTIONS = [question for question in load_all() if question.name != "stored_since"]


@pytest.mark.parametrize("question", QUESTIONS, ids=[question.name for question in QUESTIONS])
def test_an_answer_is_the_same_on_its_page_from_v1_and_from_sql(full: Full, question: Question) -> None:
    """Row for row, every value exact: the page of a question, its route of /v1 where it has one, its statement."""
    given = {p.name: _needed(full, p.name) for p in question.parameters if p.default is None}
    names = {parameter.name for parameter in question.parameters}
    ends = {name: text for name, text in (("from", start_of(full, 86400)), ("to", full.to)) if name in names}
    bound = question.bind({**ends, **given}, full.now, accounts.bindings(settings().gnomon.pricing.accounts, full.now))
    result = full.store.query(question.sql, bound, SETTINGS)
    rows = [[shown(one) for one in row] for row in result.rows][:200]
    panel = full.page(f"/sql/{question.name}?{urlencode(given)}").by_id("p-result")

    assert ([[cell.text for cell in row] for row in panel.rows()] if rows else []) == rows
    if question.name in ROUTES:
        items = full.asked(question.name, **{f"{name}_": value for name, value in {**ends, **given}.items()})
        assert [[shown(one) for one in item.values()] for item in items][: len(rows)] == rows[: len(items)]
        assert bool(items) == bool(rows)


def _needed(full: Full, name: str) -> str:
    if name in ("before", "after", "at"):
        return start_of(full, {"before": 7200, "after": 3600, "at": 1800}[name])
    if name in ("id", "request_id"):
        return str(full.sql("SELECT max(request_id) AS id FROM gnomon.comparisons WHERE n_findings > 0")[0]["id"])
    return NEEDED[name]


def shown(value: Any) -> str:
    """Return a value as a table shows it, white space folded."""
    return re.sub(r"\s+", " ", sqlpage._cell(value)[:200]).strip()
