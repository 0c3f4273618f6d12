"""
Tolerances: the kinds of difference that are forgiven, everywhere or below a path.

    hex_case                    the class, wherever it is
    value@size                  the class at this member of the result, or below it
    missing_field@**.yParity    paths are those of masks (see `masks`)

A pair of which every difference is forgiven is `tolerated`; it keeps its class and its findings. A tolerance without a
path holds in errors too, one with a path in results only.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gnomon.compare import classes, masks
from gnomon.compare.errors import ToleranceError
from gnomon.compare.masks import MaskSet


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Compiled tolerances; equal and hashable by what they say."""

    texts: tuple[str, ...] = ()
    """Each in its one spelling, sorted, none twice."""
    _everywhere: frozenset[str] = frozenset()
    _below: tuple[tuple[str, MaskSet], ...] = ()

    @property
    def version(self) -> str:
        """Return the tolerances as one text: the same for the same ones in any order and spelling; '' for none."""
        return ",".join(self.texts)

    def __bool__(self) -> bool:
        return bool(self.texts)

    def forgives(self, class_: str, keys: list[str | int] | None) -> bool:
        """
        Say whether a difference is forgiven.

        Args:
            class_: its class.
            keys: from the root of the result to it; None for a difference outside results.
        """
        if class_ in self._everywhere:
            return True
        return keys is not None and any(name == class_ and below.covers(keys) for name, below in self._below)


NO_TOLERANCES: Final = Tolerances()


def compile(texts: Iterable[str]) -> Tolerances:
    """
    Return tolerances as one set.

    Args:
        texts: each a class, or `CLASS@PATH`, in any order.

    Raises:
        ToleranceError: one names no class.
        MaskError: the path of one is none; the message points into it.
    """
    return _compile(tuple(texts))


@lru_cache(maxsize=1024)
def _compile(texts: tuple[str, ...]) -> Tolerances:
    everywhere: set[str] = set()
    below: dict[str, list[str]] = {}
    for text in texts:
        class_, at, path = text.partition("@")
        if class_ not in classes.CLASSES:
            raise ToleranceError(
                f"tolerance {text!r} names no class of difference; there are {', '.join(classes.TELLING)}"
            )
        if at:
            below.setdefault(class_, []).append(path)
        else:
            everywhere.add(class_)
    sets = tuple((class_, masks.compile(paths)) for class_, paths in sorted(below.items()))
    spelled = [f"{class_}@{path}" for class_, paths in sets for path in paths.masks]
    return Tolerances(tuple(sorted([*everywhere, *spelled])), frozenset(everywhere), sets)
