"""The codec: what was written is read again, and what cannot be read says why."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings

from gnomon.events.codec import decode, encode, is_fragment
from gnomon.events.contract import NO_BODY, VERSION, AnyEvent, HeadUpdate, PrimaryResponse
from gnomon.events.errors import PoisonEvent, UnknownVersion
from tests.events.samples import SAMPLES
from tests.events.strategies import events

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("v*/*.json"))
NAMES = [type(sample).__name__ for sample in SAMPLES]
HEAD = (
    b'{"type":"head_update","v":1,"event_id":"a:0","at":1,"network":"evm:1","upstream":"u","axis":"latest","number":1'
)


def unset_fields(value: object, path: str) -> Iterator[str]:
    """Yield the path of each field below `value` that has its default."""
    if not isinstance(value, msgspec.Struct):
        return
    for field in msgspec.structs.fields(type(value)):
        member = getattr(value, field.name)
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        if member == default:
            yield f"{path}.{field.name}"
        yield from unset_fields(member, f"{path}.{field.name}")


def test_there_is_a_sample_of_every_event_type() -> None:
    """A new event type without a sample fails here."""

    assert set(get_args(AnyEvent)) == {type(sample) for sample in SAMPLES}


@pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)
def test_samples_have_every_field_set(sample: AnyEvent) -> None:
    """A field that was added to the contract and not to its sample fails here (`shadow` is a second answer: partly)."""
    partly = {f"ShadowResponse.{name}" for name in ("shadow.body_base64", "primary_heads.upstreams")}
    partly |= {f"ShadowResponse.primary_heads.network.{axis}" for axis in ("safe", "finalized")}

    assert set() == set(unset_fields(sample, type(sample).__name__)) - partly


@pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)
def test_every_field_survives_the_round_trip(sample: AnyEvent) -> None:
    """encode and decode give the event back, raw fragments byte for byte."""

    assert sample == decode(encode(sample))


@settings(max_examples=300, deadline=None)
@given(events())
def test_any_event_survives_the_round_trip(event: AnyEvent) -> None:
    """Whatever the contract allows is read as it was written, and written again to the same bytes."""
    record = encode(event)
    again = decode(record)

    assert event == again
    assert record == encode(again)


@settings(max_examples=100, deadline=None)
@given(events())
def test_a_record_is_one_json_object_that_any_tool_reads(event: AnyEvent) -> None:
    """Python's own parser agrees that it is an object with our envelope."""
    read = json.loads(encode(event))

    assert (VERSION, event.event_id, event.network) == (read["v"], read["event_id"], read["network"])


def test_there_is_a_fixture_of_every_event_type() -> None:
    """Version 1 has each type with every field set, and each with only what is required."""
    types = {json.loads(file.read_bytes())["type"] for file in FIXTURES}

    assert {msgspec.json.decode(encode(sample))["type"] for sample in SAMPLES} == types
    assert 2 * len(SAMPLES) == len(FIXTURES)


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_released_events_are_read_for_ever(fixture: Path) -> None:
    """Each member of a released record is read and written again with the same value. These files never change."""
    record = fixture.read_bytes()
    written = json.loads(encode(decode(record)))

    for name, value in json.loads(record).items():
        assert value == written[name], name


def test_unknown_members_are_ignored() -> None:
    """A newer proxy may say more: at the top, and inside."""
    record = HEAD + b',"later":{"deep":[1,2]},"more":"x"}'

    assert decode(HEAD + b"}") == decode(record)


@pytest.mark.parametrize("version", [2, 0, -1, 2**40])
def test_an_unknown_version_is_named_even_where_the_shape_fits(version: int) -> None:
    """What looks like version 1 but says another number is not guessed at."""
    record = HEAD.replace(b'"v":1', b'"v":%d' % version) + b"}"

    with pytest.raises(UnknownVersion) as caught:
        decode(record)
    assert version == caught.value.version


def test_an_unknown_version_is_named_where_the_shape_does_not_fit() -> None:
    """A type that version 1 never had is not poison when the record says that it is newer."""
    with pytest.raises(UnknownVersion):
        decode(b'{"v":2,"type":"later_thing","at":"tomorrow"}')


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\x00" * 40,
        b"null",
        b"[]",
        b"{}",
        b'"v"',
        HEAD,
        HEAD + b"}}",
        HEAD + b"} {}",
        HEAD + b',"hash":1}',
        HEAD + b',"source":"guess"}',
        HEAD + b',"hash":"\xff"}',
        HEAD.replace(b'"head_update"', b'"comparison"') + b"}",
        HEAD.replace(b'"number":1', b'"number":1.5') + b"}",
        HEAD.replace(b'"number":1', b'"number":null') + b"}",
        HEAD.replace(b'"v":1', b'"v":true') + b"}",
        HEAD.replace(b'"v":1', b'"v":"1"') + b"}",
        HEAD.replace(b'"v":1,', b"") + b"}",
        HEAD.replace(b'"at":1,', b"") + b"}",
        HEAD + b',"deep":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"v":' + b"[" * 100_000,
        b'{"type":"primary_response","v":1,"event_id":"a:0","at":1,"network":"","request_id":"","params":}',
    ],
    ids=range(22),
)
def test_what_is_no_event_is_poison(record: bytes) -> None:
    """Bad JSON, an unknown type, a wrong or missing member, nesting without end: one named error, no other."""
    with pytest.raises(PoisonEvent):
        decode(record)


@pytest.mark.parametrize("cut", [1, 10, 100, 400])
def test_a_record_cut_short_is_poison(cut: int) -> None:
    """No proper beginning of a record is a record."""
    with pytest.raises(PoisonEvent):
        decode(encode(SAMPLES[0])[:-cut])


def test_a_text_that_no_json_can_hold_is_refused_when_written() -> None:
    """A lone surrogate (a header decoded carelessly) is an error of that event, by its name."""
    event = HeadUpdate(v=VERSION, event_id="a:0", at=1, network="\udcff", upstream="u", axis="latest", number=1)

    with pytest.raises(PoisonEvent, match="a:0"):
        encode(event)


def test_members_at_their_default_do_not_travel() -> None:
    """The smallest event is small: no body, no empty members."""
    event = PrimaryResponse(v=VERSION, event_id="a:0", at=1, network="evm:1", request_id="r")
    members = {"type", "v", "event_id", "at", "network", "request_id"}

    assert members == json.loads(encode(event)).keys()
    assert decode(encode(event)) == event


def test_an_absent_fragment_reads_as_no_body_itself() -> None:
    """Consumers may ask `is NO_BODY`."""
    event = decode(encode(PrimaryResponse(v=VERSION, event_id="a:0", at=1, network="evm:1", request_id="r")))

    assert isinstance(event, PrimaryResponse)
    assert event.params is NO_BODY


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"null", True),
        (b' {"a" : [1e400, -0, "\\u0000\\ud83d\\ude00"]} ', True),
        (b"9" * 5_000, True),
        (b'"\xff"', True),
        (b'"\\ud800"', False),
        (b"", False),
        (b" ", False),
        (b'["0x1", false', False),
        (b'[],"user":"somebody"', False),
        (b'"a\x00b"', False),
        (b"<html>", False),
        (b"[" * 100_000 + b"]" * 100_000, False),
    ],
)
def test_a_fragment_is_one_json_value(text: bytes, expected: bool) -> None:
    """What passes can be put into an event and be read; what could break out of its member does not pass."""

    assert expected == is_fragment(text)
    if expected:
        event = PrimaryResponse(
            v=VERSION, event_id="a:0", at=1, network="evm:1", request_id="r", params=msgspec.Raw(text)
        )
        read = decode(encode(event))
        assert isinstance(read, PrimaryResponse)
        assert text.strip() == bytes(read.params)
