"""
Grafana's dashboards, made from short descriptions: one panel is one question, in SQL or PromQL.

    NAME.yaml      one dashboard: its panels, what each asks, how it is read
    panels.py      what a panel, a variable and a dashboard are, as Grafana's JSON     (pure)
    __main__.py    writes the files: `python -m analytics.dashboards FOLDER`

`make docs` writes them to deploy/grafana/dashboards. Tests hold that they are what is described here, run every SQL as
a reader of the schema, and look up every metric and label of PromQL in the reference.
"""

from importlib import resources

from analytics.dashboards.panels import Dashboard, parse

NAMES = ("overview", "divergence", "spend", "upstreams", "pipeline")


def dashboards() -> tuple[Dashboard, ...]:
    """Return every dashboard."""
    folder = resources.files("analytics") / "dashboards"
    return tuple(parse(name, (folder / f"{name}.yaml").read_text(encoding="utf-8")) for name in NAMES)
