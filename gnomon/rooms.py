"""
Whether the top-level folders that are imported are Gnomon's own.

Gnomon is an application: its folder names (`proxy`, `ingest`, `analytics`, `api`) are its import names, which other
packages use too. In an environment shared with such a package the wrong code would run, or an import fail far from its
reason.
"""

import importlib.util
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path

from gnomon.errors import GnomonError

ROOMS: tuple[str, ...] = ("proxy", "ingest", "analytics", "api")
"""Top-level packages beside `gnomon`; `tests/test_rooms.py` compares them with the folders."""


class ShadowedRoom(GnomonError):
    """Another package stands where a room of Gnomon should."""


def check(
    rooms: Sequence[str] = ROOMS,
    home: Path | None = None,
    find: Callable[[str], ModuleSpec | None] = importlib.util.find_spec,
) -> None:
    """
    Make sure that each room comes from the folder that `gnomon` comes from. Nothing is imported.

    Args:
        rooms: top-level packages.
        home: the folder that should hold them; None is where this package is.
        find: tells where a package would be imported from.

    Raises:
        ShadowedRoom: with the place and the distribution of what stands in the way.
    """
    expected = home or Path(__file__).resolve().parent.parent
    for room in rooms:
        spec = find(room)
        places = [] if spec is None else [Path(place).resolve() for place in spec.submodule_search_locations or ()]
        if expected / room in places[:1]:
            continue
        if spec is None:
            raise ShadowedRoom(f"the package `{room}` is missing beside gnomon in {expected}: install gnomon again")
        where = places[0] if places else Path(spec.origin or "?")
        raise ShadowedRoom(
            f"the package `{room}` at {where}{_owner(room)} stands in the way of Gnomon's own in {expected}; "
            "install gnomon in an environment of its own (python3 -m venv), and start it from another folder"
        )


def _owner(package: str) -> str:
    from importlib.metadata import packages_distributions

    names = [name for name in packages_distributions().get(package, []) if name != "gnomon"]
    return f" (of the distribution {', '.join(sorted(set(names)))})" if names else ""
