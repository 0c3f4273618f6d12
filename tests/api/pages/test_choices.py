"""What a page can be filtered by, with how much of it there is."""

from datetime import UTC, datetime

import pytest

from api.pages import address, choices
from api.pages.page import Around
from tests.api.night import settings
from tests.api.pages.reading import Site

NOW = datetime(2026, 11, 18, 2, 47, 12, tzinfo=UTC)


def around(*query: tuple[str, str]) -> Around:
    view = address.view("/divergence", query, NOW, default_from="now-7d", own=("method",))
    return Around(view, None, settings())  # type: ignore[arg-type]


def test_values_are_added_up_and_ordered_by_how_much_there_is() -> None:
    """What is in force is no choice, nor is an empty value; equal counts go by name."""
    counted = [("b", 2), ("a", 2), ("c", 1), ("c", 4), ("", 9), ("now", 7)]
    found = choices.choices(around(("method", "now"), ("live", "1")), "method", "pairs", counted)

    assert [(row.value, row.n.text) for row in found.rows] == [("c", "5"), ("a", "2"), ("b", "2")]
    assert found.rows[0].href == "/divergence?live=1&method=c"
    assert found.n_more == 0


@pytest.mark.parametrize("n", [0, 1, choices.MOST, choices.MOST + 1, 1000])
def test_many_values_are_cut_and_counted(n: int) -> None:
    """No list is longer than a look takes; the rest is told as a number."""
    found = choices.choices(around(), "method", "pairs", [(f"m{at:04}", 1) for at in range(n)])

    assert len(found.rows) == min(n, choices.MOST)
    assert found.n_more == max(n - choices.MOST, 0)


@pytest.mark.clickhouse
@pytest.mark.parametrize(
    ("path", "question", "key", "column", "count"),
    [
        ("/divergence", "compared_by_method", "method", "method", "n_judged"),
        ("/divergence", "compared_by_method", "shadow", "shadow_upstream", "n_judged"),
        ("/divergence", "differences", "class", "class", "n_pairs"),
        ("/spend", "prices_in_effect", "account", "account", "n"),
        ("/spend", "spend_daily", "cause", "cause", "n"),
        ("/alerts", "breakers", "upstream", "upstream", "n_opened"),
    ],
)
def test_choices_count_what_the_api_counts(
    site: Site, path: str, question: str, key: str, column: str, count: str
) -> None:
    """Each value with its sum; each leads to the page with that filter, where it stands as a chip."""
    sums: dict[str, int] = {}
    for row in site.asked(question, from_="now-24h"):
        sums[row[column]] = sums.get(row[column], 0) + row[count]
    part = site.panel(f"{path}?from=now-24h", choices.NAME)
    group = next(section for section in part.all("section") if section.attributes["aria-label"] == key)
    shown = {a.one("span").text: int(a.value) for a in group.all("a")}

    assert shown == {value: n for value, n in sums.items() if value}
    link = group.one("a")
    chips = [
        (chip.one("b").text, chip.one("span").text) for chip in site.page(link.attributes["href"]).all("span", "f")
    ]
    assert (key, link.one("span").text) in chips


@pytest.mark.clickhouse
def test_choices_are_asked_when_the_menu_is_opened(site: Site) -> None:
    """The page itself does not ask them."""
    page = site.page("/divergence")
    menu = next(node for node in page.all("details") if node.attributes.get("hx-get", "").startswith("/divergence/_c"))

    assert menu.attributes["hx-trigger"] == "toggle once"
    assert menu.one("div", "choices").children == []
