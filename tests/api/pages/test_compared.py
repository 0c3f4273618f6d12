"""The range before beside each number: what /v1 says of that range; it costs nothing where it is not asked."""

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from api.pages import site as sitemap
from api.pages import steps
from api.pages.address import span
from api.pages.figures import iso
from api.pages.headspage import N_STEPS
from api.pages.upstreams import N_STEPS as N_LATENCY_STEPS
from tests.api.pages.reading import Node, Site, parse

pytestmark = pytest.mark.clickhouse

COMPARING = [page.path for page in sitemap.PAGES if page.can_compare and "{item}" not in page.path]


def before(site: Site, hours: float) -> dict[str, str]:
    """Return the range before the last so many hours, as /v1 takes it."""
    end = site.night.now - timedelta(hours=hours)
    return {"from_": iso(end - timedelta(hours=hours)), "to": iso(end)}


def was(cell: Node) -> str:
    """Return the exact number of the range before in a cell; empty where it has none."""
    found = cell.all("small", "was")
    return found[0].value if found else ""


def rows_of(page: Node, panel: str, least: int = 4) -> dict[str, list[Node]]:
    """Return the rows of a panel's table by what their first cell says; group rows have fewer cells."""
    return {
        (cells[0].all("a") or [cells[0]])[0].text: cells
        for cells in page.by_id(f"p-{panel}").rows()
        if len(cells) >= least
    }


def test_verdicts_stand_beside_those_of_the_day_before(site: Site) -> None:
    """Compared pairs, and the share that differs."""
    old = {row["shadow_upstream"]: row for row in site.asked("divergence_by_shadow", **before(site, 24))}
    shown = rows_of(site.page("/divergence?from=now-24h&compare=1"), "verdicts")

    assert {name: was(cells[1]) for name, cells in shown.items()} == {
        name: str(row["n_judged"]) for name, row in old.items()
    }
    assert {name: float(was(cells[5])) for name, cells in shown.items()} == {
        name: row["mismatch"] / row["n_judged"] for name, row in old.items()
    }


def test_differences_stand_beside_their_pairs_of_the_day_before(site: Site) -> None:
    """Each row's over all shadows; one that is gone is told, with a link to when it was there."""
    old: dict[str, int] = {}
    for row in site.asked("differences", **before(site, 24)):
        old[row["method"]] = old.get(row["method"], 0) + row["n_pairs"]
    page = site.page("/divergence?from=now-24h&compare=1")
    shown: dict[str, int] = {}
    method = ""
    for row_node in page.by_id("p-matrix").one("tbody").all("tr"):
        cells = [cell for cell in row_node.children if isinstance(cell, Node)]
        if "m" in row_node.attributes["class"].split():
            method = cells[0].text.split()[0]
        else:
            shown[method] = shown.get(method, 0) + int(was(cells[-3]))

    assert shown == {name: n for name, n in old.items() if name in shown}
    assert shown


def test_a_difference_that_is_gone_is_told(site: Site) -> None:
    """Of the last minutes and the hours before them."""
    edge = site.night.now - timedelta(hours=1)
    start = edge - (site.night.now - edge)
    old = {row["finding"] for row in site.asked("differences", from_=iso(start), to=iso(edge), outcome="")}
    now = {row["finding"] for row in site.asked("differences", from_=iso(edge), outcome="")}
    page = site.page("/divergence?from=now-1h&outcome=all&compare=1")
    links = page.by_id("p-matrix").one("p", "foot-note").all("a")

    assert bool(links) == bool(old - now)
    for link in links:
        assert f"from={iso(start)}&to={iso(edge)}" in link.attributes["href"]


def test_a_finding_stands_beside_its_share_of_the_range_before(site: Site) -> None:
    """Pairs of those compared then, in the second line of the page."""
    for row in site.asked("differences", from_="now-24h"):
        old = site.asked("differences", finding=row["finding"], **before(site, 24))
        given = {"method_": row["method"], "shadow": row["shadow_upstream"]}
        compared = site.asked("compared_by_method", **given, **before(site, 24))
        n = sum(one["n_judged"] for one in compared if one["network"] == row["network"])
        k = old[0]["n_pairs"] if old else 0
        page = site.page(f"/divergence/{row['finding']}?from=now-24h&compare=1")
        below = page.one("div", "statement").all("p")[1]
        assert float(was(below) or 0) == k / n
        assert page.by_id("p-when").all("path", "ln-was")


def test_spend_stands_beside_that_of_the_range_before(site: Site) -> None:
    """To the last digit: each cause, and all of them."""
    old = site.asked("spend_daily", **before(site, 72))
    page = site.page("/spend?from=now-72h&compare=1")
    foot = page.by_id("p-causes").one("tfoot").all("td")
    causes = rows_of(page, "causes")

    total = sum((Decimal(row["usd"]) for row in old if row["usd"] is not None), Decimal(0))
    assert total > 0
    assert Decimal(was(foot[2])) == total
    assert int(was(foot[4])) == sum(row["n"] for row in old)
    shadows = [row for row in old if row["kind"] == "shadow"]
    assert Decimal(was(causes["Paid shadow"][2])) == sum(Decimal(row["usd"]) for row in shadows)
    assert int(was(causes["Paid shadow"][4])) == sum(row["n"] for row in shadows)
    assert page.by_id("p-month").all("path", "ln-was")


def test_upstreams_stand_beside_what_they_were(site: Site) -> None:
    """Calls, failures, p99 and money of each."""
    old = {card["upstream"]: card for card in site.api.get("/v1/upstreams", **before(site, 24)).json()["items"]}
    shown = rows_of(site.page("/upstreams?from=now-24h&compare=1"), "table")

    assert set(shown) == set(old)
    for name, cells in shown.items():
        health = old[name]["health"]
        n = sum(row["n"] for row in health)
        assert was(cells[3]) == str(n)
        assert was(cells[7]) == (f"{max(row['p99_us'] for row in health) / 1e6:.6f}".rstrip("0") if n else "")
        if n:
            assert float(was(cells[4])) == pytest.approx(sum(r["failed_ratio"] * r["n"] for r in health) / n)
        money = [Decimal(row["usd"]) for row in old[name]["spend"] if row["usd"] is not None]
        if old[name]["vendor"]:
            assert Decimal(was(cells[10])) == sum(money)


def test_a_score_card_stands_beside_what_it_was(site: Site) -> None:
    """Its calls, each method, and each point of its latency."""
    card = site.api.get("/v1/upstreams/op-2", **before(site, 3)).json()
    page = site.page("/upstreams/op-2?from=now-3h&compare=1")
    calls = page.by_id("p-facts").all("dd")[4]

    assert was(calls) == str(sum(row["n"] for row in card["health"]))
    methods = {cells[0].text: was(cells[1]) for cells in page.by_id("p-methods").rows()}
    asked = {row["method"]: str(row["n"]) for row in card["methods"]}
    assert methods == {name: asked.get(name, "0") for name in methods}
    step = steps.seconds_of(span("now-3h", "now", site.night.now), N_LATENCY_STEPS)
    old = site.asked("upstream_in_steps", network="evm:8453", upstream="op-2", step=step, **before(site, 3))
    points = [[float(cell.value) for cell in cells[3:]] for cells in page.by_id("p-latency").rows() if cells[3].text]
    assert points == [[row["p50_us"] / 1000, row["p99_us"] / 1000] for row in old]
    assert points


def test_breakers_stand_beside_how_often_they_opened(site: Site) -> None:
    """Six hours with an opening before, six with others since."""
    old = {row["upstream"]: row for row in site.asked("breakers", **before(site, 6))}
    shown = rows_of(site.page("/alerts?from=now-6h&compare=1"), "breakers", 6)

    found = {name: was(cells[2]) for name, cells in shown.items()}
    assert found == {name: str(old[name]["n_opened"]) if name in old else "" for name in shown}
    assert found["op-2"] == "1"


def test_heads_stand_beside_how_far_they_were_behind(site: Site) -> None:
    """The most blocks of each, and the drawing of the lag."""
    step = steps.seconds_of(span("now-1h", "now", site.night.now), N_STEPS)
    peaks: dict[str, int] = {}
    for row in site.asked("head_lag_in_steps", step=step, **before(site, 1)):
        if row["is_heard"]:
            peaks[row["upstream"]] = max(peaks.get(row["upstream"], 0), row["lag_blocks"])
    page = site.page("/heads?from=now-1h&compare=1")

    shown = {name: was(cells[5]) for name, cells in rows_of(page, "behind", 8).items()}
    assert shown == {name: str(peaks[name]) for name in shown}
    assert len(page.by_id("p-behind").all("path", "ln-was")) == len(shown)


def test_tiles_and_strips_stand_beside_what_they_were(site: Site) -> None:
    """Requests of the last five minutes as they were one range earlier; a week's mismatch beside the week before."""
    end = site.night.now - timedelta(hours=1)
    old = site.asked("service_over_time", from_=iso(end - timedelta(minutes=5)), to=iso(end), step=300)
    page = site.page("/?from=now-1h&compare=1")
    tiles = {tile.one("span", "l").text: tile for tile in page.all("a", "kpi")}

    assert float(was(tiles["Requests"])) == sum(row["n"] for row in old) / 300
    week = site.night.now - timedelta(days=7)
    shadows = site.asked("divergence_by_shadow", from_=iso(week - timedelta(days=7)), to=iso(week))
    node_b = next((row for row in shadows if row["shadow_upstream"] == "node-b"), None)
    rate = was(tiles["Mismatch on final data, node-b"])
    assert rate == ("" if node_b is None else str(node_b["mismatch"] // node_b["n_judged"]))
    strips = page.by_id("p-strips")
    assert "dotted: the 60 min before" in strips.text
    assert len(strips.all("path", "ln-was")) == 12  # six of seven have numbers; each is drawn wide and narrow
    assert len(re.findall(r"before [\d$.]+", strips.text)) >= 6


SIDE_BAR = ("stages", "alerts_firing", "networks", "reconcile")


class Heard:
    """Notes what is asked on the way."""

    def __init__(self, asking: Any) -> None:
        self.asking = asking
        self.asked: list[tuple[str, Mapping[str, str]]] = []

    async def ask(self, name: str, given: Mapping[str, str] | None = None) -> Any:
        self.asked.append((name, dict(given or {})))
        return await self.asking.ask(name, given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.asking, name)


def asked_for(site: Site, address: str) -> list[tuple[str, Mapping[str, str]]]:
    """Return what a page asks."""
    services: Any = site.api.services
    asking = services.asking
    services.asking = heard = Heard(asking)
    try:
        assert site.get(address).status == 200
    finally:
        services.asking = asking
    return heard.asked


@pytest.mark.parametrize("path", COMPARING)
def test_it_costs_nothing_where_it_is_not_asked(site: Site, path: str) -> None:
    """The same questions as with it, without those of the range before, and nothing more to read."""
    without, with_it = (asked_for(site, f"{path}?from=now-6h{more}&whole=1") for more in ("", "&compare=1"))
    edge = iso(site.night.now - timedelta(hours=6))
    added = [one for one in with_it if one not in without]

    # The side bar's are kept a little while, so that either page may have asked them.
    assert [one for one in without if one not in with_it and one[0] not in SIDE_BAR] == []
    assert not any(given.get("to") == edge for _, given in without)
    assert any(given.get("to") == edge for _, given in added)
    page = site.page(f"{path}?from=now-6h")
    assert [*page.all("small", "was"), *page.all("path", "ln-was")] == []


@pytest.mark.parametrize("path", COMPARING)
def test_a_menu_opens_the_range_itself(site: Site, path: str) -> None:
    """What a panel asked of the range before is not what its menu opens; a fixed link keeps the comparison."""
    page = site.page(f"{path}?from=now-6h&compare=1")
    edge = iso(site.night.now - timedelta(hours=6))
    opened = [a.attributes["href"] for a in page.all("a") if a.attributes.get("href", "").startswith("/sql/")]
    copied = [node.attributes["data-copy-link"] for node in page.all("button") if "data-copy-link" in node.attributes]

    assert opened
    assert not any(f"to={edge}" in href for href in opened)
    assert copied
    assert all("compare=1" in href for href in copied)


@pytest.mark.parametrize("path", [page.path for page in sitemap.PAGES if "{item}" not in page.path])
def test_the_switch_is_where_there_is_something_to_compare(site: Site, path: str) -> None:
    """It leads to this address with and without; other pages only hand it on."""
    is_there = path in COMPARING
    off, on = parse(site.get(path).body.decode()), parse(site.get(f"{path}?compare=1").body.decode())
    named = [[box for box in page.all("input") if box.attributes.get("name") == "compare"] for page in (off, on)]
    boxes = [[box for box in found if box.attributes["type"] == "checkbox"] for found in named]
    links = [a.attributes["href"] for a in on.one("nav").all("a")]

    assert all("compare=1" in href for href in links)
    if is_there:
        assert [box.attributes["data-compare"] for (box,) in boxes] == [f"{path}?compare=1", path]
        assert ["checked" in box.attributes for (box,) in boxes] == [False, True]
    else:
        assert named[0] == []
        assert boxes[1] == []


def test_nothing_stored_of_the_range_before_is_said(site: Site) -> None:
    """It is not zero: no number stands beside, and the panel says why."""
    page = site.page("/divergence?from=now-30d&compare=1")

    assert page.all("small", "was") == []
    assert "nothing from the 30 days before" in page.by_id("p-verdicts").text
    assert "nothing from the 30 days before" in page.by_id("p-matrix").text
