"""Whoever has a token gets in by a form; its cookie is out of reach of scripts and of other sites."""

import hashlib
from urllib.parse import quote

import pytest

from analytics.store import StoreAway
from api.access import Access, Caller, Token
from tests.api.calling import Api, FakeReader
from tests.api.pages.reading import parse

TOKEN = "opensesame"


@pytest.fixture
def api() -> Api:
    access = Access([Token(Caller("ann", "read"), hashlib.sha256(TOKEN.encode()).digest())])
    return Api(FakeReader(StoreAway("away")), access=access)


def test_a_page_without_a_token_leads_to_the_form(api: Api) -> None:
    """And back to itself, with its whole address; a panel says it in a problem."""
    answer = api.get("/divergence", method_="eth_call")

    assert (answer.status, answer.headers["location"]) == (303, "/login?next=%2Fdivergence%3Fmethod%3Deth_call")
    assert api.get("/_tiles", headers={"hx-request": "true"}).problem == "unauthorized"
    assert api.get("/_foot").problem == "unauthorized"


def test_the_form_is_there_for_everybody(api: Api) -> None:
    """With a labelled field that browsers keep secrets in."""
    page = parse(api.get("/login", next="/spend").body.decode())
    fields = {node.attributes["name"]: node.attributes for node in page.all("input")}

    assert fields["token"]["type"] == "password"
    assert fields["next"]["value"] == "/spend"


def test_a_right_token_is_kept_in_a_cookie(api: Api) -> None:
    """HttpOnly, SameSite=Strict; with it pages and the API are open."""
    answer = api.call("POST", "/login", body=f"token={TOKEN}&next=%2Fspend".encode())
    cookie = answer.headers["set-cookie"]

    assert (answer.status, answer.headers["location"]) == (303, "/spend")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    sent = {"cookie": f"other=1; {cookie.split(';')[0]}"}
    assert api.get("/", headers=sent).status == 200
    assert api.get("/v1/alerts/firing", headers=sent).problem == "store-away"


@pytest.mark.parametrize("token", ["", "wrong", "opensesam", "opensesame2", "%00"])
def test_a_wrong_token_is_told_and_not_kept(api: Api, token: str) -> None:
    """The form comes again, and says so; it never shows what was typed."""
    answer = api.call("POST", "/login", body=f"token={token}".encode())

    assert answer.status == 403
    assert "set-cookie" not in answer.headers
    assert "not known" in parse(answer.body.decode()).one("p", "bad").text


@pytest.mark.parametrize(
    "way", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "", "/a\r\nx: y"]
)
def test_a_login_never_leads_elsewhere(api: Api, way: str) -> None:
    """Only paths of this site are followed."""
    answer = api.call("POST", "/login", body=f"token={TOKEN}&next={quote(way)}".encode())

    assert answer.headers["location"] == "/"


def test_an_old_cookie_is_no_error(api: Api) -> None:
    """A token that is not known any more leads to the form."""
    assert api.get("/", headers={"cookie": "gnomon_token=old"}).status == 303


def test_a_logout_forgets(api: Api) -> None:
    """The cookie is taken back."""
    answer = api.call("POST", "/logout")

    assert answer.status == 303
    assert "Max-Age=0" in answer.headers["set-cookie"]


def test_a_foreign_page_cannot_log_anybody_in(api: Api) -> None:
    """A form of another origin is refused."""
    answer = api.call("POST", "/login", body=f"token={TOKEN}".encode(), headers={"origin": "https://evil.example"})

    assert answer.problem == "foreign-origin"
