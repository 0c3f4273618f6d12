"""What somebody types or pastes leads to what it names."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from analytics.alerting.rules import configured
from analytics.store import StoreAway
from api.pages import address, find
from api.pages.page import Around
from tests.api.calling import Api, FakeReader
from tests.api.night import settings

AROUND = Around(
    address.view("/", (), datetime(2026, 11, 18, tzinfo=UTC), default_from="now-3h"),
    None,  # type: ignore[arg-type]
    settings(),
    tuple(configured((), Path(), [])),
)
QUESTIONS = (("waste", "Which paid calls were of no use?"),)


@pytest.mark.parametrize(
    ("text", "href"),
    [
        ("spend", "/spend"),
        ("F-72f34752", "/divergence/F-72F34752"),
        ("396fa8d4d33115f4", "/requests/396fa8d4d33115f4"),
        ("01JE5W3Z8Q4X0000000000ABCD", "/requests/01JE5W3Z8Q4X0000000000ABCD"),
        ("op-1", "/upstreams/op-1"),
        ("HeadLag", "/alerts?rule=HeadLag"),
        ("no use", "/sql/waste"),
        ("  chainstack ", "/upstreams/chainstack-eth"),
    ],
)
def test_a_text_leads_to_what_it_names(text: str, href: str) -> None:
    """Pages, findings, requests, upstreams, rules, questions."""
    assert find.matches(text, AROUND, QUESTIONS)[0].href == href


@pytest.mark.parametrize("text", ["", "   ", "<script>", "../../etc", "zz zz"])
def test_what_names_nothing_leads_nowhere(text: str) -> None:
    """No match, and no link made of the text."""
    assert find.matches(text, AROUND, QUESTIONS) == []


def test_there_are_never_too_many() -> None:
    """A letter that fits everything gives the first few."""
    assert len(find.matches("e", AROUND, QUESTIONS)) == find.MOST


def test_the_dialog_and_the_form_use_the_same_matches() -> None:
    """Enter without a script goes to the first match."""
    api = Api(FakeReader(StoreAway("away")), settings())
    listed = api.get("/_find", q="op-1").body.decode()

    assert 'href="/upstreams/op-1"' in listed
    assert api.get("/find", q="op-1").headers["location"] == "/upstreams/op-1"
    assert api.get("/find", q="%%%").headers["location"] == "/"
    assert "<script" not in api.get("/_find", q="<script>").body.decode()
