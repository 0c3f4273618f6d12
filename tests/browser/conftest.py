"""The dashboard on a port, over the night, and a browser in front of it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, sync_playwright

from tests.api.pages.conftest import night, site
from tests.api.pages.reading import Site
from tests.browser import tools


@contextmanager
def listening(door: Any) -> Iterator[str]:
    """Serve an application on a port until the block ends; give its address."""
    config = uvicorn.Config(door, port=0, log_config=None, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            thread.join(0.05)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join(30)


@pytest.fixture(scope="session")
def served(site: Site) -> Iterator[str]:
    """The address of the dashboard."""
    with listening(site.api.door) as address:
        yield address


@pytest.fixture(scope="module")
def browser(served: str) -> Iterator[Browser]:
    """One browser for the tests of a module: as long as Playwright is there, its event loop runs in this thread."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=tools.browser(), args=["--no-sandbox"])
        yield found
        found.close()


__all__ = ["night", "site"]
