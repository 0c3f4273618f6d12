"""Every named question, from the headers of `analytics/queries`."""

from analytics.questions import Question, load_all
from gnomon.cli.reference.markdown import code, links, table

_HEAD = """\
# Named questions

Questions that are asked often, with their SQL. `gnomon query NAME --param k=v` answers one, `gnomon query --list` names
them. Each is a file of `analytics/queries`; its statement can be read there and changed for `gnomon query --sql`.

A parameter without a default must be given. Times are ISO 8601 (UTC unless they say otherwise), `now`, or `now-24h`.
Ranges include `from` and leave out `to`. Money is exact, in USD; NULL means unpriced, never zero.

"""


def render() -> str:
    """Return the page."""
    questions = load_all()
    lines = [_HEAD + links(question.name for question in questions) + "."]
    for question in questions:
        lines += ["", *_section(question)]
    return "\n".join([*lines, ""])


def _section(question: Question) -> list[str]:
    lines = [f"## {question.name}", "", question.question, "", f"Gives {question.grain}.", ""]
    if question.parameters:
        rows = [
            [code(p.name), p.type, "must be given" if p.default is None else code(p.default) or "empty", p.meaning]
            for p in question.parameters
        ]
        lines += [*table(["parameter", "type", "default", "meaning"], rows), ""]
    rows = [[code(c.name), c.type, c.unit, c.meaning] for c in question.columns]
    return [*lines, *table(["column", "type", "unit", "meaning"], rows)]
