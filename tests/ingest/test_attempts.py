"""Rows of calls that no client asked for."""

from msgspec import Raw, structs

from gnomon.cost.book import parse
from gnomon.cost.charge import Charger, PriceBooks
from gnomon.events import codec
from gnomon.events.contract import NO_BODY
from ingest.attempts import internal_attempts
from ingest.batch import decode
from tests.ingest.events import poll

BOOK = """
vendor: alchemy
usd_per_million_units: 1
default_units: 10
archive_multiplier: 3
archive_after_blocks: 100
billing: {batch: per_call}
"""


def usd(kind: str, params: bytes, latest: int | None) -> object:
    """Return what an internal call is charged."""
    event = poll(1)
    attempt = structs.replace(event.attempt, kind=kind, method="eth_getBalance", request_bytes=50)
    charger = Charger(PriceBooks({"alchemy": parse(BOOK, "book")}))
    asks = structs.replace(event, attempt=attempt, params=Raw(params) if params else NO_BODY, latest=latest)
    (group,) = decode(0, [codec.encode(asks)]).groups.values()
    (found,) = internal_attempts(group, charger).column("usd")
    return found


def test_a_probe_costs_what_its_question_costs() -> None:
    """It asks what a client has asked: an old block is dear. Other calls ask for the newest."""
    cheap, dear = 10 * 10**6, 30 * 10**6

    assert usd("probe", b'["0x1","0x3e7"]', 1000) == cheap
    assert usd("probe", b'["0x1","0x10"]', 1000) == dear
    assert usd("probe", b'["0x1","latest"]', 1000) == cheap
    assert usd("head_poll", b"", None) == cheap
