"""All numbers, times and shares that pages show, page by page: see `tests.api.pages.listed`."""

from tests.api.pages.lists.alerts import ALERTS
from tests.api.pages.lists.choices import CHOICES
from tests.api.pages.lists.data import DATA
from tests.api.pages.lists.divergence import DIVERGENCE
from tests.api.pages.lists.finding import FINDING
from tests.api.pages.lists.heads import HEADS
from tests.api.pages.lists.overview import OVERVIEW
from tests.api.pages.lists.requests import REQUEST, REQUESTS
from tests.api.pages.lists.spend import SPEND
from tests.api.pages.lists.upstream import UPSTREAM
from tests.api.pages.lists.upstreams import UPSTREAMS

ALL = [
    *OVERVIEW,
    *DIVERGENCE,
    *FINDING,
    *SPEND,
    *HEADS,
    *ALERTS,
    *REQUESTS,
    *REQUEST,
    *UPSTREAMS,
    *UPSTREAM,
    *DATA,
    *CHOICES,
]
