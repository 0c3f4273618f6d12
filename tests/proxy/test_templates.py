"""The templates say what the structs would say."""

from pathlib import Path

import msgspec
import pytest

from gnomon.events.codec import decode, encode
from gnomon.events.contract import PrimaryResponse, ShadowResponse
from proxy import templates
from tests.proxy.scripted import Script, configuration, result, running, upstreams

LONG = "0x" + "ab" * 40


async def test_the_short_way_says_what_the_whole_way_would_say(tmp_path: Path) -> None:
    """The same question by the short way and by the whole one gives the same event but for ids, times and durations."""
    scripts: list[Script] = [lambda q: result(q, LONG)] * 2
    async with upstreams(*scripts) as nodes, running(configuration(nodes[:1], shadows=nodes[1:]), tmp_path) as proxy:
        await proxy.call("eth_getBalance", ["0x1", "0x10"])
        await proxy.until(lambda: len(proxy.mirrored()) == 1)
        plan = proxy.service.networks[0].planner.plan("eth_getBalance")
        assert plan.direct is not None
        plan.direct = None
        await proxy.call("eth_getBalance", ["0x1", "0x10"])
        await proxy.until(lambda: len(proxy.mirrored()) == 2)

        short, whole = (_still(event) for event in proxy.requests())
        assert short == msgspec.structs.replace(whole, answer=short.answer)
        assert (short.answer.digest, bytes(short.answer.body)) == (whole.answer.digest, f'"{LONG}"'.encode())
        first, second = (_still_mirrored(event) for event in proxy.mirrored())
        assert first == second


def _still(event: PrimaryResponse) -> PrimaryResponse:
    attempts = tuple(msgspec.structs.replace(a, start_us=0, duration_us=0) for a in event.attempts)
    return msgspec.structs.replace(event, event_id="", at=0, request_id="", duration_us=0, attempts=attempts)


def _still_mirrored(event: ShadowResponse) -> ShadowResponse:
    attempt = msgspec.structs.replace(event.attempt, start_us=0, duration_us=0)
    return msgspec.structs.replace(event, event_id="", at=0, request_id="", primary_duration_us=0, attempt=attempt)


@pytest.mark.parametrize("is_full", [True, False], ids=["every member", "members at their default left out"])
def test_a_template_reads_as_the_struct(is_full: bool) -> None:
    """What a template writes is what encoding the decoded struct writes again, member for member."""
    whose = {"network": 'evm:1"\\', "config_hash": "c", "project": "p", "user": "ü" if is_full else ""}
    data = templates.PRIMARY % (
        b"proc", 7, 123, templates.closed(templates.members(**whose)), b"proc-1",
        b'"batch_id":"b",' if is_full else b"",
        b'"method":"eth_call",', b'"params":[{"a":1}],' if is_full else b"", b'"id"', 10, 20, 30,
        templates.closed(templates.members(upstream="u", cause="policy_order" if is_full else "")), b"ab", 5,
        templates.block_member(77 if is_full else None), b',"body":"0x1"' if is_full else b"",
        templates.members(upstream="u", tier="fallback" if is_full else ""), 30, 10, 20, b'{"network":{"latest":1}}',
        b',"shadows":{"s":"mirrored"}' if is_full else b"",
    )  # fmt: skip

    event = decode(data)
    assert isinstance(event, PrimaryResponse)
    assert msgspec.json.decode(encode(event)) == msgspec.json.decode(data)
    assert event.network == 'evm:1"\\'
