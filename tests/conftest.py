"""
What holds for every test.

* A marker (`clickhouse`, `nodes`, `kafka`, `e2e`, `containers`) unlocks a service; without the service the test fails
  in CI and is visibly skipped elsewhere.
* Tests marked `kafka` share one broker (`broker`), each with topics of its own (`topic_prefix`). Those that kill one
  take `own_broker`, which is a JVM whatever the others use.
* No test leaves this machine, or leaves the run's own process with another priority or umask.
* Tests marked `deep` run only when asked for: `-m deep`.
* hypothesis has two profiles, `fast` (default) and `deep` (`--hypothesis-profile=deep`).
"""

import itertools
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.blocker import BLOCKER
from tests.broker import choice, jars
from tests.broker.local import LocalBroker
from tests.services import PROBES, is_ci

settings.register_profile("fast", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fast")

_missing: dict[str, str | None] = {}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail (in CI) or skip a test whose service is not there."""
    for name, probe in PROBES.items():
        if item.get_closest_marker(name) is None:
            continue
        if name not in _missing:
            _missing[name] = probe()
        _need(_missing[name])


def _need(reason: str | None) -> None:
    """Fail (in CI) or skip the test when there is a reason why it cannot run."""
    if reason is None:
        return
    if is_ci():
        pytest.fail(f"CI must run this: {reason}", pytrace=False)
    pytest.skip(reason)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is marked deep when no marker expression names it."""
    if "deep" in (config.option.markexpr or ""):
        return
    deep = [item for item in items if item.get_closest_marker("deep")]
    if deep:
        config.hook.pytest_deselected(items=deep)
        items[:] = [item for item in items if not item.get_closest_marker("deep")]


@pytest.fixture(autouse=True)
def _stays_on_this_machine() -> Iterator[None]:
    with BLOCKER.watching() as blocker:
        yield
    if blocker.refused:
        pytest.fail(f"reached outside this machine: {blocker.refused}", pytrace=False)


@pytest.fixture(autouse=True)
def _leaves_the_process_as_it_was() -> Iterator[None]:
    """A command that is run in this process must not change files of the tests after it, nor slow them down."""
    umask = os.umask(0o022)
    os.umask(umask)
    priority = os.getpriority(os.PRIO_PROCESS, 0)
    yield
    os.umask(umask)
    assert os.getpriority(os.PRIO_PROCESS, 0) == priority, "run in this process, it slows down all tests after it"


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the broker that all tests of a run share."""
    with choice.running(tmp_path_factory.mktemp("kafka") / "broker") as address:
        yield address


@pytest.fixture(scope="session")
def java() -> None:
    """A machine that can run a broker as a JVM."""
    _need(jars.missing())


@pytest.fixture
def own_broker(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker that this test alone has, to be killed, paused and started again."""
    with LocalBroker(tmp_path_factory.mktemp("kafka") / "broker") as local:
        yield local


@pytest.fixture
def topic_prefix() -> str:
    """What this test's topics begin with; nobody else's do, on a broker of others neither."""
    return f"test-{os.getpid()}-{os.urandom(4).hex()}-{next(_n_prefixes)}."


_n_prefixes = itertools.count()
