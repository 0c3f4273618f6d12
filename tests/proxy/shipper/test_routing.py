"""Topic and key come from a record's first bytes, and are those of the contract."""

import json

import msgspec
import pytest
from hypothesis import given

from gnomon.events.codec import encode
from gnomon.events.contract import AnyEvent, PrimaryResponse
from gnomon.events.topics import RESPONSES, topic_and_key
from proxy.shipper.routing import Unroutable, _route_decoded, route
from tests.events.samples import SAMPLES
from tests.events.strategies import events


@pytest.mark.parametrize("event", SAMPLES, ids=[type(event).__name__ for event in SAMPLES])
def test_every_type_goes_where_the_contract_says(event: AnyEvent) -> None:
    """The same topic and key as for the decoded event."""
    topic, key = topic_and_key(event)

    assert route(encode(event)) == (topic, key.encode())


@given(events())
def test_any_event_goes_where_the_contract_says(event: AnyEvent) -> None:
    """Whatever stands in its texts; only an event without a key has no place."""
    topic, key = topic_and_key(event)
    if key:
        assert route(encode(event)) == (topic, key.encode())
    else:
        with pytest.raises(Unroutable):
            route(encode(event))


TRAPS: dict[str, dict[str, object]] = {
    "a key in a text": {"network": '"request_id":"no"', "request_id": "yes"},
    "a key in a nested object before": {"heads": {"request_id": "no"}, "request_id": "yes"},
    "a key far behind": {"config_hash": "x" * 5000, "request_id": "yes"},
    "an escape in the key": {"request_id": 'y"e"s'},
    "a character beyond ASCII": {"request_id": "jå"},
}


@pytest.mark.parametrize("name", TRAPS)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["tight", "spaced"])
def test_the_opening_does_not_mislead(name: str, separators: tuple[str, str]) -> None:
    """Records that no writer of ours makes get the key that a parser finds."""
    record = {"type": "primary_response", "v": 1, "event_id": "a:1", "at": 1, **TRAPS[name]}
    text = json.dumps(record, separators=separators).encode()

    assert route(text) == (RESPONSES, str(record["request_id"]).encode())


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\x00\xff",
        b"[]",
        b"{}",
        b'{"type":"other","v":1}',
        b'{"type":"primary_response","v":1}',
        b'{"type":"primary_response","v":1,"request_id":""}',
        b'{"type":"attempt","v":1}',
        b'{"type":"attempt","v":1,"attempt":{}}',
        b'{"type":"head_update","v":1,"network":5}',
        b"[" * 100_000,
    ],
    ids=lambda record: record[:40].decode("latin-1"),
)
def test_what_is_no_event_has_no_place(record: bytes) -> None:
    """One error for all of it."""
    with pytest.raises(Unroutable):
        route(record)


def test_the_commonest_types_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a proxy writes for a request is routed by its opening, however large its body."""
    monkeypatch.setattr("proxy.shipper.routing._route_decoded", lambda record: pytest.fail("decoded"))
    responses = [event for event in SAMPLES if topic_and_key(event)[0] == RESPONSES]

    assert {type(event) for event in responses} >= {PrimaryResponse}
    for event in responses:
        assert route(encode(event))[1] == topic_and_key(event)[1].encode()


def test_both_ways_agree() -> None:
    """The decoder finds what the opening tells."""
    for event in SAMPLES:
        record = msgspec.json.format(encode(event), indent=0)

        assert _route_decoded(record) == route(record)
