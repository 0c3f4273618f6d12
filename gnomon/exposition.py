"""What a service counts, in Prometheus' text form: a closed list of metrics, their values, their text."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Samples = Iterable[tuple[Mapping[str, str], float]]
"""Labels with a value each."""

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


@dataclass(frozen=True, slots=True)
class Definition:
    """
    One metric.

    Attributes:
        name: with its unit at the end where it has one (`_seconds`, `_bytes`, `_total`).
        type: a gauge may go down.
        labels: their names; values are few and bounded.
        help: how to read it.
    """

    name: str
    type: Literal["counter", "gauge"]
    labels: tuple[str, ...]
    help: str


class Values:
    """The values of a closed list. Any thread counts; readers get a text made of single reads."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self._definitions = {d.name: d for d in definitions}
        self._values: dict[str, dict[tuple[str, ...], float]] = {d.name: {} for d in definitions}
        self._adding = threading.Lock()

    def add(self, name: str, labels: Sequence[str] = (), amount: float = 1) -> None:
        """
        Count up, or a gauge down.

        Raises:
            KeyError: no such metric.
            AssertionError: not as many labels as the list says.
        """
        values, key = self._at(name, labels)
        with self._adding:
            values[key] = values.get(key, 0) + amount

    def set(self, name: str, labels: Sequence[str] = (), value: float = 0) -> None:
        """Set a gauge; raises as `add`."""
        values, key = self._at(name, labels)
        values[key] = value

    def get(self, name: str, labels: Sequence[str] = ()) -> float:
        """Return a value; 0 where nothing was counted yet."""
        return self._values[name].get(tuple(labels), 0)

    def render(self) -> str:
        """Return the exposition text."""
        return render(self._definitions.values(), {name: self._samples(name) for name in self._values})

    def _at(self, name: str, labels: Sequence[str]) -> tuple[dict[tuple[str, ...], float], tuple[str, ...]]:
        assert len(labels) == len(self._definitions[name].labels), name
        return self._values[name], tuple(labels)

    def _samples(self, name: str) -> Samples:
        names = self._definitions[name].labels
        return [(dict(zip(names, key, strict=True)), value) for key, value in list(self._values[name].items())]


def render(definitions: Iterable[Definition], samples: Mapping[str, Samples]) -> str:
    """Return the exposition text; a metric without samples has its two lines all the same."""
    return "".join(line + "\n" for d in definitions for line in family(d, samples.get(d.name, ())))


def family(definition: Definition, samples: Samples) -> Iterator[str]:
    """Yield the lines of one metric."""
    yield from heading(definition)
    for labels, value in samples:
        yield sample(definition.name, labels, value)


def heading(definition: Definition) -> tuple[str, str]:
    """Return the two lines before a metric's samples."""
    return f"# HELP {definition.name} {definition.help}", f"# TYPE {definition.name} {definition.type}"


def sample(name: str, labels: Mapping[str, str], value: float) -> str:
    """
    Return the line of one value.

    >>> sample("gnomon_head_blocks", {"network": "evm:1"}, 20_000_000)
    'gnomon_head_blocks{network="evm:1"} 20000000'
    >>> sample("gnomon_log_used_ratio", {}, 0.1)
    'gnomon_log_used_ratio 0.1'
    """
    inside = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items())
    number = str(int(value)) if value == value // 1 and abs(value) < 1 << 53 else repr(float(value))
    return f"{name}{{{inside}}} {number}" if inside else f"{name} {number}"
