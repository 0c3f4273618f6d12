"""Numbers on pages are those of /v1, to the last digit."""

import csv
import io
import re
from decimal import Decimal

import pytest

from api.pages import site as sitemap
from api.pages import steps
from api.pages.address import span
from api.pages.upstreams import N_STEPS
from api.routes.asked import PAGES_ASK
from tests.api.pages.reading import Node, Site
from tests.services import ROOT

pytestmark = pytest.mark.clickhouse


def exact(node: object) -> list[str]:
    return [data.attributes["value"] for data in node.all("data")]  # type: ignore[attr-defined]


def test_tiles_say_what_the_api_says(site: Site) -> None:
    """Money as the exact decimal, mismatches as the exact share."""
    tiles = {tile.one("span", "l").text: tile for tile in site.page("/").all("a", "kpi")}
    (today,) = site.asked("paid_today")
    shadows = site.asked("divergence_by_shadow", from_="now-7d")
    node_b = next(row for row in shadows if row["shadow_upstream"] == "node-b")
    budgets = site.asked("budgets")

    assert Decimal(tiles["Paid today, since 00:00"].value) == Decimal(str(today["usd"]))
    mismatch = tiles["Mismatch on final data, node-b"]
    assert float(mismatch.value) == node_b["mismatch"] / node_b["n_judged"]
    total = sum(Decimal(str(row["forecast"])) for row in budgets)
    assert float(tiles["Month, forecast"].value) == pytest.approx(float(total), rel=1e-12)


def test_who_serves_says_what_the_api_says(site: Site) -> None:
    """Calls and failures of the same five minutes."""
    end = site.night.now
    rows = site.asked("upstream_health", from_="now-5m", to=end.isoformat().replace("+00:00", "Z"))
    calls = {str(row["upstream"]): str(row["n"]) for row in rows}
    shown = {cells[0].one("a").text: cells for cells in site.page("/").by_id("p-serving").rows() if len(cells) > 1}

    assert {name: cells[3].value for name, cells in shown.items() if name in calls} == calls
    assert set(shown) >= {"op-1", "op-2", "alchemy-base", "geth-1", "node-b"}


def test_verdicts_say_what_the_api_says(site: Site) -> None:
    """Every count of every shadow."""
    rows = {str(row["shadow_upstream"]): row for row in site.asked("divergence_by_shadow")}
    for cells in site.page("/divergence").by_id("p-verdicts").rows():
        row = rows.pop(cells[0].one("a").text)
        assert cells[1].value == str(row["n_judged"])
        names = ("mismatch", "error", "incomparable", "missing", "undecided")
        assert [cell.value for cell in cells[7:]] == [str(row[name]) for name in names]
    assert rows == {}


def test_the_matrix_says_what_the_api_says(site: Site) -> None:
    """Every difference has its cell, with its pairs."""
    rows = {str(row["finding"]): str(row["n_pairs"]) for row in site.asked("differences")}
    links = site.page("/divergence").by_id("p-matrix").all("a")
    cells = {re.sub(r"\?.*", "", a.attributes["href"]).rpartition("/")[2]: exact(a)[1] for a in links if a.all("data")}

    assert cells == rows


def test_a_finding_says_what_the_api_says(site: Site) -> None:
    """Its pairs of its sample, and the same in its report."""
    for row in site.asked("differences"):
        page = site.page(f"/divergence/{row['finding']}")
        below = page.one("div", "statement").all("p")[1]
        assert exact(below)[:2] == [str(row["n_pairs"]), str(row["n_judged"])]
        assert f"{row['n_pairs']:,} of {row['n_judged']:,} compared answers" in page.by_id("report").text


def test_spend_says_what_the_api_says(site: Site) -> None:
    """The causes' sum is the exact sum of the month, the accounts' spent of their month."""
    page = site.page("/spend")
    start = site.night.now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    rows = site.asked("spend_daily", from_=start.isoformat().replace("+00:00", "Z"), to=_text(site))
    total = sum((Decimal(row["usd"]) for row in rows if row["usd"] is not None), Decimal(0))
    foot = page.by_id("p-causes").one("tfoot")
    spent = {row["account"]: Decimal(row["spent"]) for row in site.asked("budgets", to=_text(site))}

    assert Decimal(exact(foot)[0]) == total
    shown = {cells[0].text: Decimal(cells[2].value) for cells in page.by_id("p-accounts").rows()}
    assert shown == spent


def _text(site: Site) -> str:
    return site.night.now.isoformat().replace("+00:00", "Z")


def test_heads_and_breakers_say_what_the_api_says(site: Site) -> None:
    """Lag in blocks, and how often each breaker opened, and what missed."""
    breakers = {row["upstream"]: row for row in site.asked("breakers")}
    shown = [cells for cells in site.page("/alerts").by_id("p-breakers").rows() if len(cells) > 5]
    for cells in shown:
        row = breakers[cells[0].one("a").text]
        assert cells[2].text == str(row["n_opened"])
        assert int(cells[5].value) == row["misses"].get("timeout", 0)
    lags = {
        cells[0].one("a").text: cells[3] for cells in site.page("/heads").by_id("p-behind").rows() if len(cells) > 5
    }
    assert lags["op-2"].value == "13"
    assert lags["op-1"].text == "unknown"
    assert lags["geth-1"].value == "0"


def test_a_request_says_what_the_api_says(site: Site) -> None:
    """Each call with its exact price, in the order of the trace."""
    row = site.asked("requests", cause="empty_at_head", limit=1)[0]
    trace = site.api.get(f"/v1/requests/{row['request_id']}").json()
    steps = site.page(f"/requests/{row['request_id']}").by_id("p-steps").rows()
    calls = [cells for cells in steps if cells[0].text]

    assert [cells[1].text for cells in calls[: len(trace["attempts"])]] == [a["upstream"] for a in trace["attempts"]]
    paid = next(cells for cells in calls if "served" in cells[5].text)
    assert Decimal(paid[6].value) == Decimal(trace["totals"]["usd"])


def test_hours_say_what_the_api_says(site: Site) -> None:
    """Every hour with all its counts."""
    rows = site.asked("reconcile", from_="now-24h")
    shown = site.page("/data").by_id("p-hours").rows()

    names = ("accepted", "shipped", "stored", "distinct_stored", "dead_lettered")
    assert [[int(cell.value) for cell in cells[1:6]] for cells in reversed(shown)] == [
        [row[name] for name in names] for row in rows
    ]


def test_a_question_has_its_answer_on_its_page_and_in_its_file(site: Site) -> None:
    """The same rows as the API's, as a table and as CSV, with every digit."""
    rows = site.asked("spend_by_cause")
    table = site.page("/sql/spend_by_cause").by_id("result-table")
    names = [heading.text.split()[0] for heading in table.one("thead").all("th")]
    place = names.index("usd")
    answer = site.get("/sql/spend_by_cause.csv")
    found = list(csv.DictReader(io.StringIO(answer.body.decode())))

    assert answer.headers["content-disposition"] == 'attachment; filename="spend_by_cause.csv"'
    assert [row["usd"] or None for row in found] == [row["usd"] for row in rows]
    assert [cells[place].text or None for cells in table.rows()] == [row["usd"] for row in rows]


def test_a_question_takes_its_own_parameters(site: Site) -> None:
    """From its address; one that it needs is asked for; an unknown question leads to all."""
    one = site.page("/sql/differences?shadow=node-b").by_id("result-table")
    assert len(one.rows()) == sum(row["shadow_upstream"] == "node-b" for row in site.asked("differences"))
    assert "Give id" in site.page("/sql/request").by_id("p-result").text
    assert "no such question" in site.page("/sql/nothing").by_id("p-result").text
    assert site.get("/sql/nothing.csv").status == 404


def test_a_score_card_says_what_the_api_says(site: Site) -> None:
    """Calls, failures and blocks behind of one upstream."""
    card = site.api.get("/v1/upstreams/op-2").json()
    page = site.page("/upstreams/op-2")
    facts = page.by_id("p-facts")

    assert facts.value == str(sum(row["n"] for row in card["health"]))
    latest = next(row for row in card["heads"] if row["axis"] == "latest")
    assert f"{latest['lag_blocks']} blocks behind the best" in facts.text
    shown = {cells[0].text: cells[1].value for cells in page.by_id("p-methods").rows()}
    assert shown == {row["method"]: str(row["n"]) for row in card["methods"]}


def test_pages_ask_nothing_that_the_api_does_not_answer() -> None:
    """Each question that a page names is served, under its name or at an address of its own."""
    called = re.compile(r"""(?:\.rows|\.answer|\._rows|\.page|asks\.ask)\(\s*(?:"[a-z2]+", )?"(\w+)\"""")
    sources = [file.read_text("utf-8") for file in (ROOT / "api" / "pages").glob("*.py")]
    asked = {name for source in sources for name in called.findall(source)}
    asked |= {name for page in sitemap.PAGES for panel in page.panels for name in panel.questions}
    routes = "".join(file.read_text("utf-8") for file in (ROOT / "api" / "routes").glob("*.py"))
    served = {*PAGES_ASK, *re.findall(r'"/v1/[^"]*",\s*"(\w+)"', routes), *re.findall(r'load\("(\w+)"\)', routes)}

    assert asked - served == set()
    assert len(asked) > 10


def rows_of(site: Site, address: str, panel: str, least: int = 3) -> dict[str, list[Node]]:
    """Return the rows of a panel's table by what their first cell says; group rows have fewer cells."""
    rows = site.page(address).by_id(f"p-{panel}").rows()
    return {(cells[0].all("a") or [cells[0]])[0].text: cells for cells in rows if len(cells) >= least}


def test_who_serves_has_every_column_of_the_api(site: Site) -> None:
    """Share, failures, p99, lag and today's money of each upstream, not its calls alone."""
    end = _text(site)
    health = {row["upstream"]: row for row in site.asked("upstream_health", from_="now-5m", to=end)}
    spend = {row["upstream"]: row for row in site.asked("spend_by_upstream", from_=f"{end[:10]}T00:00:00Z", to=end)}
    shown = rows_of(site, "/", "serving")
    served = [row for row in health.values() if row["tier"] != "shadow"]

    for name, row in health.items():
        cells = shown[name]
        total = sum(other["n"] for other in served if other["network"] == row["network"])
        if row["tier"] != "shadow":
            assert float(cells[2].value) == row["n"] / total
        assert float(cells[4].value) == row["n_failed"] / row["n"]
        assert float(cells[5].value) == row["p99_us"] / 1000
    for name, row in spend.items():
        if row["vendor"]:
            assert Decimal(shown[name][7].value) == Decimal(row["usd"])
    lags = rows_of(site, "/heads", "behind", 6)
    for name, cells in lags.items():
        assert cells[3].text == shown[name][6].text


def test_shares_of_verdicts_are_those_of_the_api(site: Site) -> None:
    """Identical, masked, tolerated and mismatch by what was judged."""
    shown = rows_of(site, "/divergence", "verdicts")
    for row in site.asked("divergence_by_shadow"):
        cells = shown[row["shadow_upstream"]]
        for cell, name in zip(cells[2:6], ("identical", "identical_masked", "tolerated", "mismatch"), strict=True):
            assert float(cell.value) == pytest.approx(row[name] / row["n_judged"], abs=1e-12), name


def test_each_cause_says_what_the_api_says(site: Site) -> None:
    """Money, calls and waste add up over the causes of each line to what the API has by cause and kind."""
    rows = site.asked("spend_by_cause", from_=f"{_text(site)[:8]}01T00:00:00Z", to=_text(site))
    table = site.page("/spend").by_id("p-causes")
    shown = [cells for cells in table.rows() if len(cells) >= 5]
    paid = [row for row in rows if row["vendor"]]

    assert sum(Decimal(cells[2].value) for cells in shown) == sum(Decimal(row["usd"] or 0) for row in paid)
    assert sum(int(cells[4].value) for cells in shown) == sum(row["n"] for row in paid)


def test_heads_are_the_numbers_of_the_api(site: Site) -> None:
    """The block that each is at."""
    now = {row["upstream"]: row for row in site.asked("heads_now", to=_text(site)) if row["axis"] == "latest"}
    shown = rows_of(site, "/heads", "behind", 6)

    known = {name: cells for name, cells in shown.items() if cells[1].text != "unknown"}
    assert {name: int(cells[1].value) for name, cells in known.items()} == {name: now[name]["number"] for name in known}
    assert len(known) >= 9


def test_latency_by_step_is_that_of_the_api(site: Site) -> None:
    """Every point of the drawing stands in the table below it."""
    address = "/upstreams/op-2?from=now-3h"
    rows = site.page(address).by_id("p-latency").rows()
    step = steps.seconds_of(span("now-3h", "now", site.night.now), N_STEPS)
    found = site.asked("upstream_in_steps", network="evm:8453", upstream="op-2", from_="now-3h", step=step)

    assert [[float(cell.value) for cell in cells[1:]] for cells in rows] == [
        [row["p50_us"] / 1000, row["p99_us"] / 1000] for row in found
    ]
    assert len(rows) > 10


def test_requests_are_the_newest_of_the_api(site: Site) -> None:
    """The same ones in the same order, with how long each took."""
    rows = site.asked("requests", from_="now-1h", to=_text(site), limit=50)
    shown = site.page("/requests").by_id("p-list").rows()

    assert [cells[0].one("a").attributes["href"].rpartition("/")[2].partition("?")[0] for cells in shown] == [
        row["request_id"] for row in rows
    ]
    assert [float(cells[9].value) for cells in shown] == [row["duration_us"] / 1e6 for row in rows]
