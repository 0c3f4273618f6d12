"""Every page in a real browser: nothing refused, nothing said, nothing cut, nothing that keeps somebody out."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, expect

from api.pages import site as sitemap
from tests.api.pages.reading import Site
from tests.api.pages.test_site import addresses
from tests.browser import tools

pytestmark = [pytest.mark.clickhouse, pytest.mark.browser, pytest.mark.timeout(900)]

SIZES: Final = {"wide": (1440, 900), "medium": (1280, 800), "phone": (390, 844)}
FIRST_BYTES: Final = 120_000
LATER_BYTES: Final = 40_000
MAX_NODES: Final = 3000
WAIT_MS: Final = 90_000
SCROLLED: Final = """() => [...document.querySelectorAll(".scroll:not(.listed)")]
    .filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.getAttribute("aria-label"))"""
"""Names of what has to be scrolled sideways."""
SCROLLED_ON_PHONES: Final = ("Differences by method, path and shadow", "Rows")
"""A column for each shadow, and a question's own columns: the others keep what fits a phone."""
READY: Final = "() => !document.querySelector('[aria-busy=true]')"
"""Every late panel has come."""


@contextmanager
def opened(browser: Browser, theme: str = "light", size: str = "wide", **more: Any) -> Iterator[tuple[Page, list[str]]]:
    """Open a tab; what its console says and what fails in it is in the list."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=theme,  # type: ignore[arg-type]
        **more,
    )
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    try:
        yield page, said
    finally:
        context.close()


@pytest.fixture(scope="module")
def found(site: Site) -> dict[str, str]:
    """An address of each page; looked up in a thread, for the browser's loop runs in this one."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(addresses, site).result()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_fit_for_everybody(
    browser: Browser, served: str, found: dict[str, str], theme: str, size: str
) -> None:
    """axe finds no violation; the console stays silent; nothing is wider than the screen; the document stays small."""
    assert troubles_of(browser, served, found, theme, size) == []


@pytest.mark.parametrize(("theme", "size"), [("light", "wide"), ("dark", "medium"), ("light", "phone")])
def test_pages_beside_the_range_before_are_fit_for_everybody(
    browser: Browser, served: str, found: dict[str, str], theme: str, size: str
) -> None:
    """The same with a number of before below each number: nothing is pushed out of its panel."""
    comparing = {page.name for page in sitemap.PAGES if page.can_compare}
    compared = {
        name: f"{address}{'&' if '?' in address else '?'}from=now-3h&compare=1"
        for name, address in found.items()
        if name in comparing
    }

    assert len(compared) >= 7
    assert troubles_of(browser, served, compared, theme, size) == []


def troubles_of(
    browser: Browser, served: str, addresses: dict[str, str], theme: str, size: str
) -> list[tuple[str, str, str]]:
    """Return what axe finds, what is wider than its place, what is too much, what the console says."""
    script = tools.axe().read_text("utf-8")
    troubles = []
    with opened(browser, theme, size) as (page, said):
        for name, address in addresses.items():
            page.goto(served + address, wait_until="networkidle")
            page.wait_for_function(READY)
            page.evaluate(script)
            for violation in page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]:
                troubles.append((name, violation["id"], violation["nodes"][0]["html"][:200]))
            wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            nodes = page.evaluate("document.querySelectorAll('*').length")
            if wider > 0:
                troubles.append((name, "overflow", str(wider)))
            allowed = SCROLLED_ON_PHONES if size == "phone" else ()
            troubles += [
                (name, "table is wider than its panel", label)
                for label in page.evaluate(SCROLLED)
                if label not in allowed
            ]
            if nodes > MAX_NODES:
                troubles.append((name, "nodes", str(nodes)))
        troubles += [("console", "said", line) for line in said]
    return troubles


def test_the_check_can_fail(browser: Browser, served: str) -> None:
    """A violation, a refused style and a page that is too wide are all found."""
    with opened(browser) as (page, said):
        page.goto(served + "/", wait_until="networkidle")
        page.evaluate("""() => {
            const image = document.createElement("img");
            image.src = "/favicon.ico";
            document.querySelector("main").append(image);
            const wide = document.createElement("div");
            wide.className = "wide-test";
            wide.textContent = "x".repeat(5000);
            document.querySelector("main").append(wide);
            const style = document.createElement("style");
            style.textContent = "body { color: red }";
            document.head.append(style);
        }""")
        page.evaluate(tools.axe().read_text("utf-8"))
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]

        assert "image-alt" in {violation["id"] for violation in found}
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") > 0
        assert any("Content Security Policy" in line for line in said)


def test_the_first_visit_is_light(browser: Browser, served: str) -> None:
    """At most 120 KB come with the first page, all of it included; at most 40 KB with the next one."""
    with opened(browser) as (page, _):
        sizes: list[int] = []
        tools_session = page.context.new_cdp_session(page)
        tools_session.send("Network.enable")
        tools_session.on("Network.loadingFinished", lambda event: sizes.append(int(event["encodedDataLength"])))
        page.goto(served + "/", wait_until="networkidle")
        first = sum(sizes)
        sizes.clear()
        page.goto(served + "/divergence", wait_until="networkidle")

        assert 10_000 < first <= FIRST_BYTES
        assert sum(sizes) <= LATER_BYTES


def test_nothing_moves_as_late_panels_come(browser: Browser, served: str) -> None:
    """They come into places of their height: the layout shifts by next to nothing."""
    with opened(browser) as (page, _):
        page.add_init_script("""
            window.shifted = 0;
            new PerformanceObserver((list) => {
                for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
            }).observe({ type: "layout-shift", buffered: true });
        """)
        page.goto(served + "/", wait_until="networkidle")

        assert page.evaluate("window.shifted") < 0.1


def test_the_overview_is_one_look(browser: Browser, served: str) -> None:
    """Three alerts, eleven upstreams and all its panels fit a screen of 1440 by 900."""
    with opened(browser) as (page, _):
        page.goto(served + "/", wait_until="networkidle")
        page.wait_for_function(READY)

        assert page.evaluate("document.documentElement.scrollHeight") <= SIZES["wide"][1]


def test_long_names_are_cut_and_told_whole(browser: Browser, served: str) -> None:
    """An upstream's long name gives way before the numbers do; its title has all of it."""
    name = "a-dedicated-archive-node-in-frankfurt-behind-a-load-balancer-2"
    with opened(browser) as (page, _):
        page.goto(served + "/", wait_until="networkidle")
        page.wait_for_function(READY)
        assert page.locator("#p-serving td.fit").first.get_attribute("title") == "op-1 primary"
        page.locator("#p-serving td.fit a").evaluate_all(f"links => links.forEach(a => {{ a.textContent = '{name}' }})")

        assert page.evaluate(SCROLLED) == []
        assert page.locator("#p-serving td.fit").first.evaluate("cell => cell.scrollWidth > cell.clientWidth")


def test_a_phone_shows_who_serves_and_what_fires(browser: Browser, served: str) -> None:
    """No upstream's row is cut at the side, and each rule that fires has its mark beside its name."""
    with opened(browser, size="phone") as (page, _):
        page.goto(served + "/", wait_until="networkidle")
        page.wait_for_function(READY)
        assert page.locator("#p-serving .scroll").evaluate("box => box.scrollWidth - box.clientWidth") <= 1
        page.goto(served + "/alerts", wait_until="networkidle")
        marks = page.locator("#p-rules tbody tr td:first-child svg")

        assert marks.count() >= 3
        assert min(marks.evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")) >= 12


def test_a_late_panel_completes_the_first_sentence(browser: Browser, served: str) -> None:
    """Divergence says how much differs at once, and which path makes it once the matrix is there."""
    with opened(browser) as (page, said):
        page.goto(served + "/divergence", wait_until="networkidle")
        page.wait_for_function(READY)

        expect(page.locator(".lead")).to_contain_text("One path makes", timeout=WAIT_MS)
        assert said == []


def test_the_theme_stays(browser: Browser, served: str) -> None:
    """`t` turns it, and the next page comes in it from its first byte."""
    with opened(browser) as (page, _):
        page.goto(served + "/", wait_until="networkidle")
        light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        page.keyboard.press("t")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        answer = page.goto(served + "/divergence")
        assert answer is not None
        assert '<html lang="en" data-theme="dark">' in answer.text()
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light


def test_keys_lead_to_pages_and_ranges(browser: Browser, served: str) -> None:
    """`g` and a letter, a number for the range, `[` moves it; `?` lists them; in a field they are letters."""
    with opened(browser) as (page, _):
        page.goto(served + "/", wait_until="networkidle")
        page.keyboard.press("g")
        page.keyboard.press("s")
        page.wait_for_url("**/spend*")
        page.goto(served + "/divergence", wait_until="networkidle")
        page.keyboard.press("3")
        page.wait_for_url("**/divergence?from=now-24h&to=now")
        page.wait_for_load_state("networkidle")
        page.keyboard.press("[")
        page.wait_for_url("**/divergence?from=*Z&to=*Z")
        page.wait_for_load_state("networkidle")
        page.keyboard.press("?")
        assert page.locator("#help").is_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("/")
        field = page.locator("#find-text")
        assert field.is_visible()
        page.keyboard.type("ggs")
        assert field.input_value() == "ggs"


def test_the_range_before_is_a_key_and_a_switch(browser: Browser, served: str) -> None:
    """`b` brings it and takes it away; the switch too; a range typed beside the switch is sent along with it."""
    with opened(browser) as (page, said):
        page.goto(served + "/upstreams", wait_until="networkidle")
        page.keyboard.press("b")
        page.wait_for_url("**/upstreams?compare=1")
        expect(page.locator("#p-table .was").first).to_be_visible(timeout=WAIT_MS)
        page.wait_for_load_state("networkidle")
        page.keyboard.press("b")
        page.wait_for_url("**/upstreams")
        page.wait_for_load_state("networkidle")
        assert page.locator(".was").count() == 0
        page.locator(".top summary", has_text="Last 24 h").click()
        page.locator("#range-from").fill("now-6h")
        page.locator("[data-compare]").check()
        page.wait_for_url("**/upstreams?from=now-6h&to=now&compare=1")
        assert said == []


def test_a_range_is_taken_back(browser: Browser, served: str) -> None:
    """Backspace leads through the ranges of this page, one after the other; another page has nothing to take back."""
    with opened(browser) as (page, said):
        page.goto(served + "/upstreams", wait_until="networkidle")
        for key, address in (
            ("2", "**/upstreams?from=now-3h&to=now"),
            ("[", "**/upstreams?from=*Z&to=*Z"),
            ("Backspace", "**/upstreams?from=now-3h&to=now"),
            ("Backspace", "**/upstreams"),
        ):
            page.keyboard.press(key)
            page.wait_for_url(address)
            page.wait_for_load_state("networkidle")
        page.goto(served + "/heads", wait_until="networkidle")
        page.keyboard.press("Backspace")
        page.keyboard.press("?")
        expect(page.locator("#help")).to_be_visible()
        assert page.url == served + "/heads"
        assert said == []


def test_a_crosshair_says_what_each_was(browser: Browser, served: str) -> None:
    """Under the pointer: the moment, and the value of each quantity beside its strip; all of them as a table too."""
    with opened(browser) as (page, said):
        page.goto(served + "/?from=now-1h&compare=1", wait_until="networkidle")
        page.wait_for_function(READY)
        box = page.locator("#p-strips svg.strips").first.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 400, box["y"] + 90)
        words = page.locator("#p-strips .cross-words")
        expect(words).to_have_count(7)
        texts = words.all_text_contents()
        assert re.fullmatch(r"\d\d:\d\d", texts[0])
        assert re.fullmatch(r"[\d.]+ a second · before [\d.]+", texts[1])
        page.locator("#p-strips summary", has_text="As table").click()
        expect(page.locator("#p-strips .rows tbody tr")).to_have_count(180)
        assert page.locator("#p-strips .rows th").count() == 13
        assert said == []


def test_times_are_those_of_the_reader_where_wanted(browser: Browser, served: str) -> None:
    """The menu offers the browser's zone; then times are of it, and UTC stands behind them."""
    with opened(browser, timezone_id="Europe/Berlin") as (page, said):
        page.goto(served + "/requests", wait_until="networkidle")
        first = page.locator("#p-list tbody time").first
        utc, whole = first.text_content() or "", first.get_attribute("title") or ""
        page.locator(".top summary", has_text="Time").click()
        page.locator("[data-zone-link]").click()
        page.wait_for_url("**/requests?tz=Europe*Berlin")
        shown = page.locator("#p-list tbody time").first
        assert whole[11:19] == utc[-8:]
        assert shown.get_attribute("title") == whole
        hour = datetime.fromisoformat(whole).astimezone(ZoneInfo("Europe/Berlin"))
        assert (shown.text_content() or "").endswith(f"{hour:%H:%M:%S}")
        page.goto(served + "/upstreams/op-2?tz=Europe/Berlin", wait_until="networkidle")
        expect(page.locator("#p-latency .plot canvas")).to_have_count(1)
        assert "Europe/Berlin" in (page.locator("#p-latency .u-legend").text_content() or "")
        assert said == []


@pytest.mark.parametrize(("theme", "size"), [("light", "wide"), ("dark", "phone")])
def test_menus_are_fit_for_everybody(browser: Browser, served: str, theme: str, size: str) -> None:
    """The open time menu and the filters of a page: no violation, nothing off the screen; a choice becomes a chip."""
    script = tools.axe().read_text("utf-8")
    with opened(browser, theme, size) as (page, said):
        for path, menu in (("/upstreams", ".top details:has(.pick) summary"), ("/divergence", "summary.add")):
            page.goto(served + path, wait_until="networkidle")
            page.wait_for_function(READY)
            page.locator(menu).click()
            shown = page.locator(f"details[open]:has({menu.split()[-1]}) .pop")
            expect(shown.locator("a").first).to_be_visible()
            box = shown.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= SIZES[size][0]
            page.evaluate(script)
            found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
            assert [violation["id"] for violation in found] == []
        page.locator(".choices a", has_text="chainstack-eth").click()
        page.wait_for_url("**/divergence?shadow=chainstack-eth")
        assert "chainstack-eth" in " ".join(page.locator(".filters .f").all_text_contents())
        assert said == []


def test_a_pair_is_judged_again_at_once(browser: Browser, served: str) -> None:
    """Toggling a mask asks the server's comparer and paints its verdict; the page says what it would do elsewhere."""
    with opened(browser) as (page, said):
        page.goto(served + "/divergence", wait_until="networkidle")
        page.locator("#p-matrix tr:has-text('logIndex') a").first.click()
        page.wait_for_load_state("networkidle")
        assert page.locator("#verdict").text_content() == "mismatch"
        with page.expect_response("**/v1/compare/preview"):
            page.locator(".rules input[type=checkbox]:not(:checked)").first.check()
        expect(page.locator("#verdict")).to_have_text("identical_masked", timeout=WAIT_MS)
        assert page.locator(".diff .row.hid").count() == 3
        assert "would differ no more" in (page.locator("#preview-words").text_content() or "")
        assert said == []


def test_a_fold_opens_in_place(browser: Browser, served: str) -> None:
    """Equal lines come on demand, between the others."""
    with opened(browser) as (page, said):
        page.goto(served + "/divergence", wait_until="networkidle")
        page.locator("#p-matrix tr:has-text('logIndex') a").first.click()
        page.wait_for_load_state("networkidle")
        folds = page.locator(".diff .fold")
        before = folds.count()
        with page.expect_response("**/_lines?*"):
            folds.first.click()
        expect(folds).to_have_count(before - 1, timeout=WAIT_MS)
        shown = [int(number) for number in page.locator(".diff .l .ln").all_text_contents() if number]
        assert shown == sorted(shown)
        assert said == []


def test_a_page_says_its_verdict_without_scripts(browser: Browser, served: str) -> None:
    """The first answer has the sentence, the alerts and the numbers in it; late panels can be asked for at once."""
    with opened(browser, java_script_enabled=False) as (page, _):
        page.goto(served + "/")

        assert "firing" in (page.locator(".lead").text_content() or "")
        assert page.locator(".alerts li").count() == 3
        assert page.locator("noscript").count() > 0


def test_a_statement_is_run_in_place(browser: Browser, served: str) -> None:
    """Ctrl+Enter shows rows and a drawing; the address keeps the statement; a mistake is told in words."""
    with opened(browser) as (page, said):
        page.goto(served + "/sql", wait_until="networkidle")
        words, area = page.locator("#sql-words"), page.locator("textarea")
        area.fill(
            "SELECT toStartOfHour(at) AS hour, count() AS n FROM gnomon.requests "
            "WHERE at >= {from:DateTime64(3, 'UTC')} GROUP BY hour ORDER BY hour"
        )
        area.press("Control+Enter")
        expect(words).to_contain_text("rows", timeout=WAIT_MS)
        assert page.locator("#sql-table tbody tr").count() > 1
        expect(page.locator("#sql-chart canvas")).to_have_count(1)
        assert "toStartOfHour" in page.url
        page.evaluate(tools.axe().read_text("utf-8"))
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        assert [violation["id"] for violation in found] == []
        assert said == []

        area.fill("SELECT n FROM gnomon.no_such_view")
        area.press("Control+Enter")
        expect(words).to_contain_text("no_such_view", timeout=WAIT_MS)


def test_a_latency_chart_is_drawn_from_the_table_beside_it(browser: Browser, served: str) -> None:
    """One canvas, its words for those who cannot see it, its numbers as a table."""
    with opened(browser) as (page, said):
        page.goto(served + "/upstreams/op-2", wait_until="networkidle")
        expect(page.locator("#p-latency .plot canvas")).to_have_count(1)
        assert page.locator("#p-latency #latency-table tbody tr").count() > 1
        assert said == []


def test_lines_are_ink_and_grey(browser: Browser, served: str) -> None:
    """Blue and orange are the sides of a comparison: no line of a chart has them; before is dotted."""
    with opened(browser) as (page, _):
        page.goto(served + "/upstreams/op-2?from=now-1h&compare=1", wait_until="networkidle")
        expect(page.locator("#p-latency .plot canvas")).to_have_count(1)
        marks = page.locator("#p-latency .u-marker")
        faces = marks.evaluate_all("all => all.map(m => [m.style.borderStyle, getComputedStyle(m).borderTopColor])")
        ink, grey = page.evaluate("""() => ["--text", "--text-3"].map((name) => {
            const probe = document.body.appendChild(document.createElement("i"));
            probe.className = name === "--text" ? "probe-text" : "probe-text-3";
            const found = getComputedStyle(probe).color;
            probe.remove();
            return found;
        })""")

        assert [face for face in faces if face[0]] == [
            ["solid", grey], ["solid", ink], ["dotted", grey], ["dotted", ink]
        ]  # fmt: skip


def test_a_range_is_dragged_on_a_chart(browser: Browser, served: str) -> None:
    """On the drawing of latency as on the strips: what was dragged over is the page's range."""
    with opened(browser) as (page, _):
        page.goto(served + "/upstreams/op-2?from=now-3h", wait_until="networkidle")
        over = page.locator("#p-latency .u-over")
        expect(over).to_have_count(1)
        box = over.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 100, box["y"] + 50)
        page.mouse.down()
        page.mouse.move(box["x"] + 300, box["y"] + 50, steps=4)
        page.mouse.up()
        page.wait_for_url("**/upstreams/op-2?from=*Z&to=*Z")
