"""Every view is told with its columns."""

from analytics.views import views
from gnomon.cli.reference.views import render


def test_each_view_is_told_whole() -> None:
    """Its grain, each column with type, unit and meaning."""
    page = render()
    for view in views():
        section = page.partition(f"\n## {view.name}\n")[2].partition("\n## ")[0]

        assert view.about in section
        for column in view.columns:
            assert f"| `{column.name}` | {column.type} | {column.unit} | {column.meaning} |" in section
