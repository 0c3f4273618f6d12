"""
Who may import whom: the table of the design, and a checker that reads imports without running them.

The longest row whose name fits a module decides. A row lists the rooms that may be imported, beside the room itself and
what all may (`COMMON`). Imports of third parties are limited too: drivers stay in the rooms that talk to the outside.
"""

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

COMMON = frozenset({"gnomon.errors", "gnomon.exposition", "gnomon.process"})
LIGHT = frozenset({"msgspec", "yaml", "xxhash"})
"""Third parties for what every service shares."""


@dataclass(frozen=True, slots=True)
class Row:
    rooms: frozenset[str]
    third_parties: frozenset[str]


def row(rooms: str = "", third_parties: Iterable[str] = ()) -> Row:
    return Row(frozenset(rooms.split()), frozenset(third_parties))


TABLE: Mapping[str, Row] = {
    "gnomon": row(),
    "gnomon.rpc": row("gnomon.events.contract", LIGHT),
    "gnomon.compare": row("gnomon.rpc", LIGHT | {"deepdiff"}),
    "gnomon.events": row("", LIGHT),
    "gnomon.config": row("", LIGHT),
    "gnomon.cost": row("gnomon.rpc gnomon.events", LIGHT),
    "gnomon.kafka": row("gnomon.events gnomon.config", LIGHT | {"aiokafka"}),
    "gnomon.sidebyside": row("gnomon.rpc gnomon.compare", LIGHT | {"aiohttp"}),
    "gnomon.demo": row(
        "gnomon.rpc gnomon.events gnomon.config gnomon.compare", LIGHT | {"aiohttp", "web3", "clickhouse_connect"}
    ),
    "gnomon.cli": row("gnomon proxy ingest analytics api", LIGHT | {"uvloop", "aiohttp", "deepdiff"}),
    "proxy": row(
        "gnomon.rpc gnomon.events gnomon.config gnomon.cost gnomon.logs", LIGHT | {"uvloop", "httptools", "websockets"}
    ),
    "proxy.shipper": row("gnomon.events gnomon.config gnomon.kafka", LIGHT | {"uvloop", "aiokafka"}),
    "proxy.core": row("gnomon.rpc gnomon.events gnomon.config", LIGHT),
    "ingest": row(
        "gnomon.rpc gnomon.compare gnomon.events gnomon.config gnomon.cost analytics.store", LIGHT | {"uvloop"}
    ),
    "ingest.kafka": row("ingest gnomon.kafka gnomon.events gnomon.config", LIGHT | {"aiokafka", "faust"}),
    "analytics": row("gnomon.rpc gnomon.compare gnomon.events gnomon.config gnomon.cost proxy.core", LIGHT),
    "analytics.store": row("gnomon.config", LIGHT | {"clickhouse_connect", "urllib3"}),
    "analytics.streaming": row("analytics gnomon.config", LIGHT | {"aiohttp"}),
    "analytics.embedded": row("analytics gnomon.config", LIGHT | {"chdb", "aiohttp", "lz4", "zstandard"}),
    "api": row(
        "analytics gnomon.compare gnomon.rpc gnomon.events gnomon.config",
        LIGHT | {"fastapi", "pydantic", "starlette"},
    ),
    "api.pages": row(
        "api analytics gnomon.compare gnomon.rpc gnomon.events gnomon.config", LIGHT | {"jinja2", "markupsafe"}
    ),
    "api.reference": row("", {"jinja2"}),
    "api.serving": row("api analytics gnomon.config", LIGHT | {"uvicorn"}),
}
OWN = ("gnomon", "proxy", "ingest", "analytics", "api")


def is_within(module: str, room: str) -> bool:
    return module == room or module.startswith(room + ".")


def row_of(module: str) -> tuple[str, Row]:
    """Return the row that decides for a module, with its name."""
    name = max((room for room in TABLE if is_within(module, room)), key=len)
    return name, TABLE[name]


def imports(source: str, module: str, *, is_package: bool) -> Iterator[tuple[int, str]]:
    """Yield (line, module imported) for each import anywhere in a source, relative ones resolved."""
    base = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            prefix = base[: len(base) - node.level + 1] if node.level else []
            parent = ".".join([*prefix, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{parent}.{alias.name}"


def violation(module: str, imported: str) -> str | None:
    """Return what is wrong with one import, or None."""
    name, allowed = row_of(module)
    top = imported.partition(".")[0]
    if top in OWN:
        fits = any(is_within(imported, room) for room in (name, *allowed.rooms, *COMMON))
        return None if fits else f"{name} may not import {imported}"
    if top in sys.stdlib_module_names or top in allowed.third_parties:
        return None
    return f"{name} may not import the third party {top}"


def violations(root: Path) -> list[str]:
    """Return every import below `root` that the table does not allow, as `file:line: what`."""
    found = []
    for file in sorted(file for top in OWN for file in (root / top).rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        for line, imported in imports(file.read_text("utf-8"), module, is_package=is_package):
            wrong = violation(module, imported)
            if wrong:
                found.append(f"{file.relative_to(root)}:{line}: {wrong}")
    return found
