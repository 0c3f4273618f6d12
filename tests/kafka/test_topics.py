"""Which topics there must be, and which settings of existing ones would lose events."""

import pytest

from gnomon.config.model import EventSettings, Gnomon, KafkaSettings, Retention
from gnomon.events.topics import RESPONSES, TOPICS
from gnomon.kafka.topics import Found, Wanted, missing, problems, replicas, wanted

TOPIC = Wanted(name="x.responses", n_partitions=4, retention_ms=86_400_000, max_record_bytes=13_000_000)
FITTING = {"cleanup.policy": "delete", "retention.ms": "86400000", "max.message.bytes": "13000000"}


def gnomon(prefix: str = "", partitions: int = 12) -> Gnomon:
    return Gnomon(
        events=EventSettings(
            kafka=KafkaSettings(bootstrap_servers="h:9092", topic_prefix=prefix, partitions=partitions)
        ),
        retention=Retention(events_seconds=3600.0),
    )


def test_every_topic_of_the_contract_is_wanted_with_its_prefix() -> None:
    """Names, partitions of the great topic and retention come from the configuration."""
    topics = {topic.name: topic for topic in wanted(gnomon("eu.", 24))}

    assert set(topics) == {f"eu.{name}" for name in TOPICS}
    assert topics[f"eu.{RESPONSES}"].n_partitions == 24
    assert {topic.retention_ms for topic in topics.values()} == {3_600_000}


def test_the_largest_event_fits_a_record() -> None:
    """Two bodies of `maxBodyBytes` and a request of the largest size fit, with room for the rest."""
    assert {topic.max_record_bytes for topic in wanted(gnomon())} == {2 * (1 << 20) + (10 << 20) + (1 << 20)}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(Found(4, FITTING), [], id="as wanted"),
        pytest.param(Found(5, {**FITTING, "retention.ms": "-1"}), [], id="more of everything"),
        pytest.param(Found(4, {}), [], id="settings that we may not read"),
        pytest.param(Found(3, FITTING), ["3 partitions, wanted are 4"], id="fewer partitions"),
        pytest.param(
            Found(4, {**FITTING, "cleanup.policy": "compact,delete"}),
            ["cleanup.policy is compact,delete"],
            id="compaction",
        ),
        pytest.param(
            Found(4, {**FITTING, "retention.ms": "86399999"}), ["retention.ms is 86399999"], id="shorter retention"
        ),
        pytest.param(
            Found(4, {**FITTING, "max.message.bytes": "12999999"}),
            ["max.message.bytes is 12999999"],
            id="smaller records",
        ),
        pytest.param(
            Found(1, {"cleanup.policy": "compact", "retention.ms": "1", "max.message.bytes": "1"}),
            ["1 partitions", "cleanup.policy", "retention.ms", "max.message.bytes"],
            id="all at once",
        ),
    ],
)
def test_settings_that_lose_events_are_told(found: Found, expected: list[str]) -> None:
    """Each names the topic, what it has and what to do."""
    told = problems(TOPIC, found)

    assert len(told) == len(expected)
    for line, part in zip(told, expected, strict=True):
        assert line.startswith("x.responses: ")
        assert part in line


def test_a_topic_of_our_own_is_as_wanted() -> None:
    """What `settings` makes has no problem of `problems`."""
    assert problems(TOPIC, Found(TOPIC.n_partitions, TOPIC.settings(3))) == []


@pytest.mark.parametrize(("n_brokers", "expected"), [(0, 1), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_copies_are_as_many_as_the_cluster_has_room_for(n_brokers: int, expected: int) -> None:
    """Up to three."""
    assert replicas(n_brokers) == expected


def test_what_is_not_there_is_missing() -> None:
    """By name alone."""
    other = Wanted(name="x.heads", n_partitions=1, retention_ms=1, max_record_bytes=1)

    assert missing([TOPIC, other], {"x.heads": Found(1, {})}) == [TOPIC]
