"""
Pages of the dashboard over a large store, in Chromium and by plain calls.

    python -m bench pages [PAGE ...] [--pairs N] [--days N] [--paints N] [--loads N] [--data DIR]

A store is filled inside the embedded ClickHouse (`bench._filled`): 10,000,000 pairs over 14 days, every other table in
proportion, rollups included. Then, with `gnomon clickhouse` and `gnomon api` as processes on loopback, per page:

paint   first contentful paint and the time until the last late panel is there, each time with an empty cache
calls   the page, then its late panels at once as a browser asks for them, N times over kept-alive connections

Told too: bytes of the first visit, what the console says. DIR keeps the filled store, for the two hours that it lasts.
"""

import argparse
import gzip
import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, sync_playwright

from analytics.migrate import migrate
from api.pages import assets
from api.pages.page import Page
from api.pages.site import PAGES
from bench._filled import AHEAD_SECONDS, Span, fill
from gnomon.config.model import Retention
from tests.analytics.server import GNOMON, ClickHouse
from tests.api.night import CONFIG
from tests.browser import tools

AIM_MS = 1000
"""First paint of every page."""
AIM_BYTES = 120_000
LEFT_SECONDS = 900
"""A kept store is filled anew when less than this lies ahead of the clock."""
TABLES = (
    "requests", "attempts", "shadow_decisions", "comparisons", "findings", "bodies", "heads", "gauges",
    "spend_hourly", "divergence_minutely", "health_minutely",
)  # fmt: skip
WAIT_MS = 120_000
READY = "() => !document.querySelector('[aria-busy=true]')"
PAINT = "() => performance.getEntriesByName('first-contentful-paint').map((entry) => entry.startTime)"


@dataclass
class Told:
    """What was measured of one page."""

    paints_ms: list[float] = field(default_factory=list)
    whole_ms: list[float] = field(default_factory=list)
    calls_ms: dict[str, list[float]] = field(default_factory=dict)
    """`page` and the names of late panels → times."""


@contextmanager
def filled(folder: Path, n_pairs: int, days: int) -> Iterator[ClickHouse]:
    """Run a ClickHouse that holds the rows; one that is there already is taken while it lasts."""
    mark = folder / "filled.json"
    is_there = mark.exists() and json.loads(mark.read_text())["end"] > time.time() + LEFT_SECONDS
    if mark.exists() and not is_there:
        raise SystemExit(f"bench: the store in {folder} is too old; remove it")
    server = ClickHouse(folder)
    server.start()
    try:
        with server.store() as store:
            if not is_there:
                migrate(store, Retention(rows_seconds=1e9, bodies_seconds=1e9, rollups_seconds=1e9))
                now = time.time()
                took = fill(store, Span(n_pairs, days, int(now * 1000)))
                mark.write_text(json.dumps({"end": now + AHEAD_SECONDS}))
                print("filled in", ", ".join(f"{name} {seconds:.0f} s" for name, seconds in took.items()))
            rows = [f"{name} {int(store.rows(f'SELECT count() FROM gnomon_core.{name}')[0][0]):,}" for name in TABLES]
            print("rows:", ", ".join(rows))
        yield server
    finally:
        server.stop()


@contextmanager
def api_over(server: ClickHouse, folder: Path) -> Iterator[str]:
    """Run `gnomon api` over it; give its address."""
    config = folder / "pages.yaml"
    # The bench is one reader who reloads without end; the limit per token is for many.
    config.write_text(CONFIG.strip() % server.url + "\n  api: {limits: {requestsPerSecond: 0}}\n")
    command = [*GNOMON, "api", "--config", str(config), "--data", str(folder), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"ready at (http://\S+)", line)
        if found is None:
            raise SystemExit(f"bench: gnomon api said {line!r}")
        yield found[1]
    finally:
        process.terminate()
        process.wait(30)
        if process.stdout is not None:
            process.stdout.close()


class Caller:
    """One kept-alive connection."""

    def __init__(self, base: str) -> None:
        self._connection = http.client.HTTPConnection(urllib.parse.urlsplit(base).netloc, timeout=60)

    def get(self, address: str) -> tuple[float, str]:
        """Return how long an answer took to its last byte, ms, and its text."""
        started = time.perf_counter()
        self._connection.request("GET", address, headers={"Accept-Encoding": "gzip"})
        answer = self._connection.getresponse()
        body = answer.read()
        took = (time.perf_counter() - started) * 1000
        if answer.getheader("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if answer.status != 200:
            raise SystemExit(f"bench: {address}: {answer.status} {body[:300]!r}")
        return took, body.decode()


def addresses(caller: Caller, wanted: Sequence[str]) -> dict[str, tuple[Page, str]]:
    """Return the address of each page; one with an item is found by a link of another page."""
    found = {page.name: (page, page.path) for page in PAGES if "{item}" not in page.path}
    texts = [caller.get(f"{path}?whole=1")[1] for _, path in list(found.values())]
    links = [link.replace("&amp;", "&") for text in texts for link in re.findall(r'href="(/[^"]*)"', text)]
    for page in PAGES:
        if "{item}" in page.path:
            pattern = re.compile(page.path.replace("{item}", r"[^/?#]+") + r"(\?|$)")
            link = next((link for link in links if pattern.match(link)), None)
            if link is None:
                raise SystemExit(f"bench: no page leads to {page.path}")
            found[page.name] = (page, link)
    if unknown := set(wanted) - set(found):
        raise SystemExit(f"bench: no page is called {', '.join(unknown)}; known: {', '.join(found)}")
    return {name: one for name, one in found.items() if not wanted or name in wanted}


def paints(browser: Browser, base: str, address: str, n: int, said: list[str], told: Told) -> int:
    """
    Open a page so often, each time with nothing of the dashboard in the cache; return the bytes of one.

    The tab is at the address already, at its icon: what a new profile's first tab costs is the browser's.
    """
    sizes: list[int] = []
    for _ in range(n):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        try:
            page = context.new_page()
            page.set_default_timeout(WAIT_MS)
            page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
            page.on("pageerror", lambda error: said.append(f"error: {error}"))
            page.goto(base + assets.load().url("icon.svg"))
            sizes.clear()
            session = context.new_cdp_session(page)
            session.send("Network.enable")
            session.on("Network.loadingFinished", lambda event: sizes.append(int(event["encodedDataLength"])))
            started = time.perf_counter()
            page.goto(base + address, wait_until="load")
            page.wait_for_function(READY)
            told.whole_ms.append((time.perf_counter() - started) * 1000)
            page.wait_for_load_state("networkidle")
            told.paints_ms += page.evaluate(PAINT)
        finally:
            context.close()
    return sum(sizes)


def calls(callers: Sequence[Caller], page: Page, address: str, n: int, told: Told) -> None:
    """Ask for a page and then for its late panels at once, so often."""
    path, _, query = address.partition("?")
    late = [panel.name for panel in page.panels if panel.is_slow and not panel.is_apart]
    tail = f"?{query}" if query else ""
    with ThreadPoolExecutor(len(callers)) as threads:
        for _ in range(n):
            told.calls_ms.setdefault("page", []).append(callers[0].get(address)[0])
            asked = [
                (name, threads.submit(caller.get, f"{path.rstrip('/')}/_{name}{tail}"))
                for name, caller in zip(late, callers, strict=False)
            ]
            for name, answer in asked:
                told.calls_ms.setdefault(name, []).append(answer.result()[0])


def quantile(values: Sequence[float], q: float) -> float:
    """Return the smallest value that at least this share of values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * int(q * 100) // 100) - 1)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="only these (default: all)")
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--paints", type=int, default=5)
    parser.add_argument("--loads", type=int, default=50)
    parser.add_argument("--data", metavar="DIR", default="")
    parser.add_argument("--fill-only", action="store_true", help="fill DIR and end")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gnomon-bench-") as own:
        folder = Path(args.data or own)
        folder.mkdir(parents=True, exist_ok=True)
        with filled(folder, args.pairs, args.days) as server:
            if args.fill_only:
                return 0
            with api_over(server, folder) as base:
                return measure(base, args.pages, args.paints, args.loads)


def measure(base: str, wanted: Sequence[str], n_paints: int, n_loads: int) -> int:
    """Measure pages and print a table; return 1 when one misses its aim."""
    known = addresses(Caller(base), wanted)
    found = {name: Told() for name in known}
    said: list[str] = []
    first_bytes: dict[str, int] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=tools.browser(), args=["--no-sandbox"])
        try:
            for name, (_, address) in known.items() if n_paints else ():
                first_bytes[name] = paints(browser, base, address, n_paints, said, found[name])
        finally:
            browser.close()
    callers = [Caller(base) for _ in range(6)]
    for name, (page, address) in known.items():
        calls(callers, page, address, n_loads, found[name])
    print(f"{n_paints} paints and {n_loads} loads of each page; times in ms: p50 / p99 (the slowest of fewer than 100)")
    print("| page | first paint | all of it | KB, first visit | server: page | server: late panels |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, told in found.items():
        late = ", ".join(f"{call} {_pair(ms)}" for call, ms in told.calls_ms.items() if call != "page")
        size = f"{first_bytes[name] / 1000:.0f}" if name in first_bytes else ""
        own = _pair(told.calls_ms.get("page", []))
        print(f"| {name} | {_pair(told.paints_ms)} | {_pair(told.whole_ms)} | {size} | {own} | {late or 'none'} |")
    print(f"console: {len(said)} messages{': ' + '; '.join(sorted(set(said))[:5]) if said else ''}")
    slow = [name for name, told in found.items() if told.paints_ms and max(told.paints_ms) >= AIM_MS]
    heavy = [name for name, size in first_bytes.items() if size > AIM_BYTES]
    if slow or heavy or said:
        print(f"missed: first paint of {slow or 'none'}, bytes of {heavy or 'none'}", file=sys.stderr)
    return 1 if slow or heavy or said else 0


def _pair(values: Sequence[float]) -> str:
    return f"{median(values):,.0f} / {quantile(values, 0.99):,.0f}" if values else ""


if __name__ == "__main__":
    sys.exit(main())
