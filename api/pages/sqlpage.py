"""SQL: a statement of one's own, and every named question with its parameters; each is an example to change."""

import csv
import io
from collections.abc import Mapping
from typing import Any, Final

from analytics import views
from analytics.questions import Question, UnknownQuestion, load, load_all
from api import values
from api.asking import Rows
from api.pages.page import Around, Page, Panel, Shown, State

MAX_SHOWN: Final = 200
"""Rows of a result on the page; its file has all."""
EXAMPLE: Final = """SELECT cause, count() AS calls, sum(usd) AS usd, sumIf(usd, is_wasted) AS wasted
FROM gnomon.attempts
WHERE at >= now() - INTERVAL 24 HOUR AND tier = 'fallback'
GROUP BY cause
ORDER BY usd DESC
LIMIT 100"""
_CONFIGURED: Final = frozenset({"accounts", "budgets", "cycle_from", "cycle_to"})
"""Bound from the configuration."""
_COMMON: Final = frozenset({"from", "to"})


def own_names() -> tuple[str, ...]:
    """Return the names that an address of a question may have, of all questions."""
    return tuple(sorted({p.name for q in load_all() for p in q.parameters} - _COMMON - _CONFIGURED))


# --- a statement of one's own --------------------------------------------------------------------------------------


async def editor(around: Around) -> Shown:
    return {"text": around.view.get("q") or EXAMPLE, "endpoint": "/v1/sql", "words": _words()}


def _words() -> str:
    """Return what the editor completes: views and their columns."""
    found: dict[str, None] = {}
    for view in views.views():
        found[f"gnomon.{view.name}"] = None
        for column in view.columns:
            found[column.name] = None
    return " ".join(found)


async def questions(around: Around) -> Shown:
    return {
        "rows": [{"name": q.name, "question": q.question, "href": around.view.to(f"/sql/{q.name}")} for q in load_all()]
    }


async def schema(around: Around) -> Shown:
    return {
        "views": [
            {"name": view.name, "grain": view.about, "columns": [(c.name, c.type, c.meaning) for c in view.columns]}
            for view in views.views()
        ]
    }


def lead(around: Around, shown: Mapping[str, Shown | State]) -> tuple[str, str]:
    """Return nothing: the page asks, and says nothing by itself."""
    return "", ""


PAGE: Final = Page(
    name="sql",
    path="/sql",
    title="SQL",
    default_from="now-24h",
    own=("q",),
    lead=lead,
    panels=(
        Panel(name="editor", title="Statement", build=editor, template="sql_editor.html", is_bare=True),
        Panel(name="questions", title="Questions", build=questions, template="sql_questions.html"),
        Panel(name="schema", title="Views", build=schema, template="sql_schema.html"),
    ),
)


# --- a named question ----------------------------------------------------------------------------------------------


def _question(around: Around) -> Question | State:
    try:
        return load(around.item)
    except UnknownQuestion as error:
        return State("There is no such question", str(error), ways=[("All questions", around.view.to("/sql"))])


def given(around: Around, question: Question) -> dict[str, str]:
    """Return what a question is asked with: the address's own parameters over the page's range and network."""
    own = around.view.own or {}
    return around.bound(question.name) | {
        p.name: own[p.name] for p in question.parameters if own.get(p.name) and p.name not in _COMMON
    }


async def parameters(around: Around) -> Shown | State:
    question = _question(around)
    if isinstance(question, State):
        return question
    asked = given(around, question)
    shown = [p for p in question.parameters if p.name not in _COMMON | _CONFIGURED]
    return {
        "question": question,
        "fields": [
            {"p": p, "value": asked.get(p.name, p.default or ""), "is_needed": p.default is None} for p in shown
        ],
        "kept": around.view.common(),
        "editor": around.view.to("/sql", q=question.sql),
        "file": f"{around.view.path}.csv" + _query(around),
    }


def _query(around: Around) -> str:
    here = around.view.here()
    return here[here.index("?") :] if "?" in here else ""


async def result(around: Around) -> Shown | State:
    question = _question(around)
    if isinstance(question, State):
        return question
    asked = given(around, question)
    missing = [p.name for p in question.parameters if p.default is None and not asked.get(p.name)]
    if missing:
        return State("A parameter is needed", f"Give {', '.join(missing)}, and ask again.")
    rows = await around.asks.ask(question.name, asked)
    if not rows.rows:
        return State("No row", "The question has no answer in this range.")
    return {
        "question": question,
        "names": rows.names,
        "types": rows.types,
        "rows": [[_cell(value) for value in row] for row in rows.rows[:MAX_SHOWN]],
        "numbers": [_is_number(kind) for kind in rows.types],
        "n": len(rows.rows),
        "is_complete": rows.is_complete,
        "is_plot": rows.types[0].startswith("DateTime") and any(_is_number(kind) for kind in rows.types[1:]),
    }


def _is_number(kind: str) -> bool:
    return kind.removeprefix("Nullable(").startswith(("UInt", "Int", "Float", "Decimal"))


def _cell(value: Any) -> str:
    plain = values.anything(value)
    if plain is None:
        return ""
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, dict):
        return ", ".join(f"{key} {inner}" for key, inner in plain.items())
    if isinstance(plain, list):
        return ", ".join(str(inner) for inner in plain)
    return str(plain)


def as_csv(rows: Rows) -> str:
    """Return an answer as CSV: a heading, then exact values; NULL is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows.names)
    writer.writerows([_cell(value) for value in row] for row in rows.rows)
    return text.getvalue()


def named_lead(around: Around, shown: Mapping[str, Shown | State]) -> tuple[str, str]:
    """Return the question in its own words."""
    content = shown.get("parameters")
    if content is None or isinstance(content, State):
        return "There is no such question.", ""
    question: Question = content["question"]
    return question.question, question.grain


NAMED: Final = Page(
    name="question",
    path="/sql/{item}",
    title="Question",
    default_from="now-24h",
    own=own_names(),
    here="sql",
    crumbs=(("SQL", "/sql"),),
    lead=named_lead,
    panels=(
        Panel(name="parameters", title="Asked with", build=parameters, template="sql_parameters.html"),
        Panel(name="result", title="Answer", build=result, template="sql_result.html", tall=320),
    ),
)
