"""Topics and keys: design.md's table."""

import pytest

from gnomon.events.contract import AnyEvent
from gnomon.events.topics import TOPICS, key, topic, topic_and_key
from tests.events.samples import SAMPLES

REQUEST_ID = "01990000-0000-7000-8000-000000000001"
TABLE = [
    ("gnomon.responses.v1", REQUEST_ID),
    ("gnomon.responses.v1", REQUEST_ID),
    ("gnomon.attempts.v1", "alchemy-1"),
    ("gnomon.heads.v1", "evm:1"),
    ("gnomon.heads.v1", "evm:1"),
    ("gnomon.breakers.v1", "node-1"),
]


@pytest.mark.parametrize(
    ("event", "expected"), list(zip(SAMPLES, TABLE, strict=True)), ids=[type(sample).__name__ for sample in SAMPLES]
)
def test_each_event_type_has_its_topic_and_key(event: AnyEvent, expected: tuple[str, str]) -> None:
    """A request and its mirrored calls share a key; the rest goes by upstream or network."""

    assert expected == topic_and_key(event)
    assert expected == (topic(event), key(event))
    assert expected[0] in TOPICS


def test_topics_are_distinct_and_versioned() -> None:
    """No two share a name, and each says its version."""

    assert len(TOPICS) == len(set(TOPICS))
    assert all(name.startswith("gnomon.") and name.endswith(".v1") for name in TOPICS)
