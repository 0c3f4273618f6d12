"""What holds for every page."""

import re
from urllib.parse import urlsplit

import pytest

from analytics.store import StoreAway
from api.pages import assets, render
from api.pages import site as sitemap
from api.pages.frame import NAV
from tests.api.calling import Api, FakeReader
from tests.api.pages.reading import Node, Site, parse
from tests.services import ROOT

TEMPLATES = sorted((ROOT / "api" / "templates").rglob("*.html"))
STATIC_PAGES = [page.path for page in sitemap.PAGES if "{item}" not in page.path]


def addresses(site: Site) -> dict[str, str]:
    """Return an address of every page; one with an item is found by a link of another page."""
    found = {page.name: page.path for page in sitemap.PAGES if "{item}" not in page.path}
    links = [link for path in found.values() for link in hrefs(site.page(path))]
    for page in sitemap.PAGES:
        if "{item}" in page.path:
            pattern = re.compile(page.path.replace("{item}", r"[^/?#]+") + r"(\?|$)")
            found[page.name] = next(link for link in links if pattern.match(link))
    return found


@pytest.fixture(scope="module")
def every(site: Site) -> dict[str, Node]:
    """Every page, whole."""
    return {name: site.page(address) for name, address in addresses(site).items()}


def hrefs(node: Node) -> list[str]:
    return [link.attributes["href"] for link in node.all("a") if link.attributes.get("href", "").startswith("/")]


def test_templates_have_nothing_inline() -> None:
    """No style attribute, no handler, no script with a text: the policy would refuse it."""
    for file in TEMPLATES:
        text = file.read_text("utf-8")

        assert not re.search(r"\sstyle\s*=", text), file.name
        assert not re.search(r"\son[a-z]+\s*=|hx-on|js:|javascript:", text), file.name
        assert all(not body.strip() for body in re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)), file.name
        assert "|safe" not in text.replace(" ", ""), file.name


@pytest.mark.parametrize("bad", [' style="x"', " onclick=x", ' hx-on:click="x"', "<script>x</script>"])
def test_the_check_of_templates_can_fail(bad: str) -> None:
    """Each of these would be found."""
    found = re.search(r"\sstyle\s*=", bad) or re.search(r"\son[a-z]+\s*=|hx-on|js:|javascript:", bad)

    assert found or any(body.strip() for body in re.findall(r"<script[^>]*>(.*?)</script>", bad))


@pytest.mark.clickhouse
def test_pages_keep_their_own_policy(site: Site, every: dict[str, Node]) -> None:
    """The header is strict, and nothing of a page needs more."""
    policy = site.get("/").headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for name, page in every.items():
        for node in page.all():
            assert "style" not in node.attributes, name
            assert not any(attribute.startswith(("on", "hx-on")) for attribute in node.attributes), name
            if node.tag == "script":
                assert node.text == ""
                assert node.attributes["src"].startswith(assets.PREFIX)


@pytest.mark.clickhouse
def test_every_page_says_its_verdict_first(every: dict[str, Node]) -> None:
    """A heading, one first sentence of at least three words, and a title of its own."""
    for name, page in every.items():
        assert len(page.all("h1")) == 1, name
        if name not in ("sql", "upstreams", "requests"):
            assert len(page.one("p", "lead").text.split()) >= 3, name
    titles = [page.one("title").text for page in every.values()]
    assert len(set(titles)) == len(titles)


@pytest.mark.clickhouse
def test_no_panel_has_failed(every: dict[str, Node]) -> None:
    """Over a filled store each panel has an answer."""
    for name, page in every.items():
        assert [state.text for state in page.all(css="state") if state.all(css="bad")] == [], name


@pytest.mark.clickhouse
def test_a_panel_by_itself_is_what_it_is_in_its_page(site: Site) -> None:
    """The same function, the same template: the same text."""
    for page in sitemap.PAGES:
        if "{item}" in page.path:
            continue
        whole = site.page(page.path)
        for panel in page.panels:
            if not panel.is_apart:
                alone = site.panel(page.path, panel.name)
                assert alone.by_id(f"p-{panel.name}").text == whole.by_id(f"p-{panel.name}").text


@pytest.mark.clickhouse
def test_slow_panels_have_a_place_that_fetches_them(site: Site) -> None:
    """A first answer without them says where they come from, and as tall as they will be."""
    for page in sitemap.PAGES:
        if "{item}" in page.path:
            continue
        first = parse(site.get(page.path).body.decode())
        for panel in page.panels:
            if panel.is_slow:
                place = first.by_id(f"p-{panel.name}")
                assert place.attributes["hx-trigger"] == "load delay:60ms"
                assert place.attributes["hx-get"] == f"{page.path.rstrip('/')}/_{panel.name}"
                assert re.search(r"tall-\d+", place.attributes["class"])


@pytest.mark.clickhouse
def test_every_link_answers(site: Site, every: dict[str, Node]) -> None:
    """No page leads to nothing."""
    seen: set[str] = set()
    for name, page in every.items():
        for href in hrefs(page):
            shape = re.sub(r"=[^&]*", "", href)
            if shape in seen:
                continue
            seen.add(shape)
            assert site.get(urlsplit(href)._replace(fragment="").geturl()).status in (200, 303, 308), f"{name}: {href}"
    assert len(seen) > 60


@pytest.mark.clickhouse
def test_exactly_one_line_of_the_side_bar_is_marked(every: dict[str, Node]) -> None:
    """The page that one is on, or the one that it belongs to."""
    for name, page in every.items():
        marked = [link for link in page.one("nav").all("a") if link.attributes.get("aria-current") == "page"]
        assert len(marked) == 1, name
    leads_to = {item.path for item in NAV}
    assert leads_to <= set(STATIC_PAGES)


@pytest.mark.clickhouse
def test_ids_and_tables_are_fit_for_screen_readers(every: dict[str, Node]) -> None:
    """Each table has a heading for each column; each drawing is announced or hidden; each field has a label."""
    for name, page in every.items():
        for table in page.all("table"):
            headings = table.one("thead").all("th")
            assert headings, name
            assert all(heading.text or heading.all("svg") for heading in headings), name
        for svg in page.all("svg"):
            assert ("aria-label" in svg.attributes) != ("aria-hidden" in svg.attributes), name
        labelled = {label.attributes.get("for") for label in page.all("label")}
        inside = {id(box) for label in page.all("label") for box in label.all("input")}
        for box in [*page.all("input"), *page.all("select"), *page.all("textarea")]:
            if box.attributes.get("type") != "hidden":
                assert box.attributes.get("id") in labelled or id(box) in inside, f"{name}: {box.attributes}"


@pytest.mark.clickhouse
@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/?form=now-3h", "no parameter"),
        ("/divergence?from=yesterday", "is no time"),
        ("/?from=now&to=now-3h", "is not after"),
    ],
)
def test_an_address_that_cannot_be_read_is_told(site: Site, address: str, words: str) -> None:
    """By a page with a way out, not by a page of something else."""
    answer = site.get(address)
    page = parse(answer.body.decode())

    assert answer.status == 400
    assert words in page.text
    assert page.all("a")


@pytest.mark.clickhouse
def test_an_unknown_panel_is_not_found(site: Site) -> None:
    """A problem, as everywhere."""
    assert site.get("/_nothing").problem == "not-found"


def test_the_theme_is_in_the_first_answer() -> None:
    """A cookie names it, so no page flashes; anything else in the cookie is not repeated."""
    from analytics.store import StoreAway

    api = Api(FakeReader(StoreAway("away")))
    pages = {
        theme: api.get("/", headers={"cookie": f"a=1; gnomon_theme={theme}"}).body.decode()
        for theme in ("dark", "light", 'x"><b>')
    }

    assert '<html lang="en" data-theme="dark">' in pages["dark"]
    assert '<html lang="en" data-theme="light">' in pages["light"]
    assert '<html lang="en">' in pages['x"><b>']


@pytest.mark.parametrize("path", STATIC_PAGES)
def test_a_page_lives_without_clickhouse(path: str) -> None:
    """Each panel says in its place that ClickHouse is away, with the request's id; the frame stands."""
    from analytics.store import StoreAway

    answer = Api(FakeReader(StoreAway("ClickHouse does not answer at http://127.0.0.1:1"))).get(path, whole="1")
    page = parse(answer.body.decode())

    assert answer.status == 200
    assert page.one("nav").all("a")
    assert "ClickHouse does not answer" in page.one("main").text or path == "/sql"
    assert answer.headers["x-request-id"] in page.text or path == "/sql"


def test_only_files_of_this_release_are_served() -> None:
    """For ever, with their type; another digest, or a path that leads out, is not found."""
    from analytics.store import StoreAway

    api = Api(FakeReader(StoreAway("away")))
    url = assets.load().url("app.css")
    plain, short = api.get(url), api.get(url, headers={"accept-encoding": "br, gzip;q=0.5"})

    assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert plain.headers["content-type"] == "text/css; charset=utf-8"
    assert (short.headers["content-encoding"], short.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert len(short.body) < len(plain.body)
    assert api.get(url, headers={"accept-encoding": "gzip;q=0"}).body == plain.body
    for bad in (
        "/static/000000000000/app.css",
        url.replace("app.css", "../app.py"),
        url.replace("app.css", "none.css"),
    ):
        assert api.get(bad).problem == "not-found"


def test_environment_is_strict() -> None:
    """A template that names what it is not given fails; markup is text."""
    with pytest.raises(Exception, match="undefined"):
        render.environment().from_string("{{ nothing }}").render()
    assert render.environment().from_string("{{ x }}").render(x="<b>") == "&lt;b&gt;"


@pytest.mark.parametrize("path", ["/nope", "/spend/", "/sql/nope.csv", "/divergence/_nope", "/<b>x"])
def test_an_address_that_leads_nowhere_is_a_page_in_a_browser(path: str) -> None:
    """With a way on; what asks for no page, or for the API, gets a problem."""
    api = Api(FakeReader(StoreAway("away")))
    answer = api.get(path, headers={"accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    page = parse(answer.body.decode())

    assert (answer.status, page.one("h1").text) == (404, "There is no such page")
    assert f"Nothing is at {path};" in page.one("section").text
    assert hrefs(page) == ["/"]
    assert api.get(path).problem == "not-found"
    assert api.get(path, headers={"accept": "text/html", "hx-request": "true"}).problem == "not-found"
    assert api.get("/v1" + path, headers={"accept": "text/html"}).problem == "not-found"
