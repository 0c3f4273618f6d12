"""Every member of every event is told."""

from typing import Any

import msgspec
import pytest

from gnomon.cli.reference.events import EVENTS, PARTS, by_topic, meanings, render, vocabularies
from gnomon.events import contract
from gnomon.events.topics import ATTEMPTS, BREAKERS, HEADS, RESPONSES

STRUCTURES = (contract.Event, *EVENTS, *PARTS)


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda s: s.__name__)
def test_each_member_has_a_meaning(structure: Any) -> None:
    """A text stands below each field of its own, and the structure says what it is."""
    own = [name for name in structure.__annotations__ if name not in meanings(structure)]

    assert own == []
    assert structure.__doc__


def test_every_structure_that_travels_is_on_the_page() -> None:
    """None is reached from an event without a section of its own."""
    reached: set[type] = set()
    queue: list[Any] = list(EVENTS)
    while queue:
        kind = queue.pop()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in reached:
            reached.add(kind)
            queue += [field.type for field in msgspec.structs.fields(kind)]
        else:
            queue += getattr(kind, "__args__", ())

    assert reached == {*EVENTS, *PARTS}


def test_topics_are_where_events_go() -> None:
    """Asked of the function that sends them."""
    assert by_topic() == {
        RESPONSES: ["primary_response", "shadow_response"],
        ATTEMPTS: ["attempt"],
        HEADS: ["head_update", "reorg"],
        BREAKERS: ["breaker_transition"],
    }


def test_each_closed_list_of_words_is_told() -> None:
    """With all its values."""
    page = render()

    assert {"Kind", "Tier", "Cause", "Decision", "ErrorClass"} <= set(vocabularies())
    for name, values in vocabularies().items():
        line = next(line for line in page.splitlines() if line.startswith(f"* `{name}`: "))
        assert all(f"`{value}`" in line for value in values if value)
