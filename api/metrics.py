"""What the API counts, in Prometheus' text form: one closed list, bounded labels (routes, never addresses)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric."""

    name: str
    type: Literal["counter", "gauge"]
    labels: tuple[str, ...]
    help: str


DEFINITIONS: Final[tuple[Definition, ...]] = (
    Definition("gnomon_api_requests_total", "counter", ("route", "method", "status"),
               "Requests by route, as /openapi.json has it (_OTHER: no such route), and HTTP status."),
    Definition("gnomon_api_request_seconds_total", "counter", ("route", "method"),
               "Time spent on requests; the mean is this by gnomon_api_requests_total."),
    Definition("gnomon_api_problems_total", "counter", ("problem",), "Refusals, by the end of their `type`."),
    Definition("gnomon_api_in_flight", "gauge", (), "Requests under way, streams included."),
    Definition("gnomon_api_queries_waiting", "gauge", (), "Questions that ClickHouse is asked, or that wait for it."),
    Definition("gnomon_api_config_reloads_total", "counter", ("result",),
               "Reloads of the configuration: ok, or invalid (the old one stays)."),
)  # fmt: skip

_BY_NAME = {d.name: d for d in DEFINITIONS}
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class Metrics:
    """The values; used by one thread."""

    def __init__(self) -> None:
        self._values: dict[str, dict[tuple[str, ...], float]] = {d.name: {} for d in DEFINITIONS}

    def add(self, name: str, *labels: str, amount: float = 1) -> None:
        """Count up (or, a gauge, down)."""
        values = self._values[name]
        assert len(labels) == len(_BY_NAME[name].labels)
        values[labels] = values.get(labels, 0) + amount

    def set(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge."""
        self._values[name][labels] = value

    def get(self, name: str, *labels: str) -> float:
        """Return a value; 0 where nothing was counted yet."""
        return self._values[name].get(labels, 0)

    def render(self) -> str:
        """Return the exposition text."""
        return "".join(self._lines())

    def _lines(self) -> Iterable[str]:
        for name, values in self._values.items():
            definition = _BY_NAME[name]
            yield f"# HELP {name} {definition.help}\n# TYPE {name} {definition.type}\n"
            for key, value in values.items():
                labels = ",".join(
                    f'{label}="{text.translate(_ESCAPES)}"' for label, text in zip(definition.labels, key, strict=True)
                )
                yield f"{name}{{{labels}}} {value:.17g}\n" if labels else f"{name} {value:.17g}\n"
