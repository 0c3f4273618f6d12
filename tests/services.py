"""
Which outside services are there, for tests that are marked to need one.

Where CI is set a missing service is a failure: a suite that skips what it cannot reach says nothing. Elsewhere it is a
visible skip with its reason.
"""

import importlib.util
import os
from collections.abc import Callable, Mapping
from pathlib import Path

Probe = Callable[[], str | None]
"""Returns None when the service can be used, else what is missing and how to get it."""


def has_clickhouse() -> str | None:
    """The embedded engine."""
    return None if importlib.util.find_spec("chdb") else "chdb is not installed: pip install 'gnomon[embedded]'"


def has_nodes() -> str | None:
    """Real EVM nodes from npm, in the folders that the demo looks in."""
    from gnomon.demo.installation import folders, locate

    return None if locate(folders(dict(os.environ))) else "no anvil with hardhat or ganache: set GNOMON_NODES"


def has_kafka() -> str | None:
    """The broker that `tests.broker.choice` finds."""
    from tests.broker.choice import missing

    return missing()


def has_containers() -> str | None:
    """The readers of Dockerfile and docker-compose.yml; no Docker engine."""
    from tests.deploy.tools import missing

    return missing()


def has_browser() -> str | None:
    """Chromium, Playwright and axe-core."""
    from tests.browser.tools import missing

    return missing()


def has_command() -> str | None:
    """The product as child processes: the package and everything that `gnomon up` starts."""
    return has_clickhouse()


PROBES: Mapping[str, Probe] = {
    "clickhouse": has_clickhouse,
    "nodes": has_nodes,
    "kafka": has_kafka,
    "e2e": has_command,
    "browser": has_browser,
    "containers": has_containers,
}
"""Marker → probe; an unmarked test may use none of these."""


def is_ci() -> bool:
    """Return whether a missing service must fail the test."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


ROOT = Path(__file__).parent.parent
"""The clone."""
