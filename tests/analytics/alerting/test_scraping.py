"""Proxies are asked for their metrics; one that is away says nothing, and holds nobody up."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from analytics.alerting.scraping import OLD_SECONDS, Scraper, get

TEXT = "gnomon_log_written_total 7\n"


class Proxies:
    """What two proxies answer, and what time it is."""

    def __init__(self) -> None:
        self.texts: dict[str, str | Exception] = {"http://a:1/metrics": TEXT, "http://b:2/metrics": TEXT}
        self.now = 100.0

    def get(self, url: str) -> str:
        found = self.texts[url]
        if isinstance(found, Exception):
            raise found
        return found


def test_what_is_old_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Each proxy is a subject; the one that is away has samples until they are old, and one line says that it is."""
    proxies = Proxies()
    scraper = Scraper(["http://a:1", "http://b:2/"], proxies.get, lambda: proxies.now)
    assert scraper.samples() == []
    for address in ("http://a:1", "http://b:2/"):
        scraper.ask(address)
    assert {subject for _, subject, _ in scraper.samples()} == {"a:1", "b:2"}
    proxies.texts["http://a:1/metrics"] = ConnectionRefusedError("nobody is there")
    proxies.now += OLD_SECONDS / 2 + 1
    for _ in range(2):
        for address in ("http://a:1", "http://b:2/"):
            scraper.ask(address)
    assert {subject for _, subject, _ in scraper.samples()} == {"a:1", "b:2"}
    proxies.now += OLD_SECONDS / 2

    assert {subject for _, subject, _ in scraper.samples()} == {"b:2"}
    assert [record.message for record in caplog.records] == [
        "proxy does not tell its metrics address=http://a:1: nobody is there"
    ]
    proxies.texts["http://a:1/metrics"] = TEXT
    scraper.ask("http://a:1")
    assert {subject for _, subject, _ in scraper.samples()} == {"a:1", "b:2"}


class _Metrics(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/metrics" else 404)
        self.end_headers()
        self.wfile.write(TEXT.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_it_is_asked_over_http() -> None:
    """The text of /metrics; another status is an error like a connection that is refused."""
    with HTTPServer(("127.0.0.1", 0), _Metrics) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}"

            assert get(f"{address}/metrics") == TEXT
            with pytest.raises(OSError, match="404"):
                get(f"{address}/other")
        finally:
            server.shutdown()
            thread.join()
