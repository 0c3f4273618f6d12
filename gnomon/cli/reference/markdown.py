"""Tables and anchors in Markdown."""

from collections.abc import Iterable, Sequence


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """
    Return the lines of a table; a bar within a cell stays one.

    >>> table(["a", "b"], [["x|y", ""]])
    ['| a | b |', '| --- | --- |', '| x\\\\|y |  |']
    """
    lines = [_row(names), _row(["---"] * len(names))]
    return [*lines, *(_row([cell.replace("|", "\\|").replace("\n", " ") for cell in row]) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def code(text: str) -> str:
    """
    Return a text set as code; an empty one stays empty.

    >>> code("x"), code("")
    ('`x`', '')
    """
    return f"`{text}`" if text else ""


def links(names: Iterable[str]) -> str:
    """
    Return links to the sections of these names.

    >>> links(["a_b", "c"])
    '[a_b](#a_b), [c](#c)'
    """
    return ", ".join(f"[{name}](#{name})" for name in names)


UNITS = {
    "us": "us",
    "seconds": "s",
    "bytes": "bytes",
    "blocks": "blocks",
    "usd": "USD",
    "ratio": "0 to 1",
    "events": "events",
    "records": "events",
}
"""Last word of a name → its unit."""


def unit(name: str) -> str:
    """
    Return the unit that a name ends with; empty where it has none.

    >>> unit("duration_us"), unit("gnomon_event_bytes_total"), unit("method")
    ('us', 'bytes', '')
    """
    return UNITS.get(name.removesuffix("_total").rsplit("_", 1)[-1], "")
