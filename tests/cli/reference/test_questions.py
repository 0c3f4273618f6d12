"""Every named question is told with its parameters and columns."""

from analytics.questions import load_all
from gnomon.cli.reference.questions import render


def test_each_question_is_told_whole() -> None:
    """Its text, each parameter with its default, each column with its type."""
    page = render()
    for question in load_all():
        section = page.partition(f"\n## {question.name}\n")[2].partition("\n## ")[0]

        assert question.question in section
        assert all(f"| `{p.name}` | {p.type} |" in section for p in question.parameters)
        assert all(f"| `{c.name}` | {c.type} |" in section for c in question.columns)
