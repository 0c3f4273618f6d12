"""All pages, and which of them an address means."""

from collections.abc import Sequence
from typing import Final

from api.pages import alerts, data, divergence, finding, headspage, overview, requests, spend, sqlpage, upstreams
from api.pages.page import Page

PAGES: Final[Sequence[Page]] = (
    overview.PAGE,
    divergence.PAGE,
    finding.PAGE,
    spend.PAGE,
    headspage.PAGE,
    alerts.PAGE,
    alerts.BREAKERS,
    requests.LIST,
    requests.PAGE,
    upstreams.LIST,
    upstreams.PAGE,
    data.PAGE,
    sqlpage.PAGE,
    sqlpage.NAMED,
)
"""In the order of the side bar."""
