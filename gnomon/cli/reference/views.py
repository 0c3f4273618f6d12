"""Every view of database `gnomon` with its columns, from `analytics/views.yaml`."""

from analytics.views import View, views
from gnomon.cli.reference.markdown import code, links, table

_HEAD = """\
# SQL views

The tables that people ask, in database `gnomon`. `gnomon query --sql` asks them, and so does any tool that speaks
ClickHouse's HTTP protocol. The column `comment` of `system.columns` has the same texts.

Times are UTC. Ranges are best half-open: `at >= … AND at < …`. Money is exact (Decimal), in USD; NULL is unpriced,
never zero. Words come from closed lists ([events](events.md#closed-vocabularies)). The tables behind the views
(`gnomon_core`) may change; the views may only grow.

"""


def render() -> str:
    """Return the page."""
    every = views()
    lines = [_HEAD + links(view.name for view in every) + "."]
    for view in every:
        lines += ["", *_section(view)]
    return "\n".join([*lines, ""])


def _section(view: View) -> list[str]:
    rows = [[code(c.name), c.type, c.unit, c.meaning] for c in view.columns]
    return [f"## {view.name}", "", view.about, "", *table(["column", "type", "unit", "meaning"], rows)]
