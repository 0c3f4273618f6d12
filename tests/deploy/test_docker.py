"""docker-compose.yml under Docker, where a Docker engine is; it builds the image, which needs a package registry."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.broker.choice import has_docker
from tests.deploy.tools import compose
from tests.services import ROOT

pytestmark = [pytest.mark.deep, pytest.mark.containers, pytest.mark.timeout(1800)]

PROJECT = f"gnomon-test-{os.getpid()}"


def docker(*arguments: str, seconds: float = 900) -> subprocess.CompletedProcess[str]:
    """Run Docker Compose over the file, as a project of our own."""
    plugin = shutil.which("docker") and subprocess.run(
        ["docker", "compose", "version"], capture_output=True, check=False
    )
    program = ["docker", "compose"] if plugin and plugin.returncode == 0 else [str(compose())]
    return subprocess.run(
        [*program, "-p", PROJECT, "--profile", "demo", "--profile", "tools", *arguments],
        cwd=ROOT,
        env={**os.environ, "PROXY_PORT": "0", "API_PORT": "0"},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


@pytest.fixture
def project() -> Iterator[None]:
    """The stack with the demonstration, up and healthy; gone with its volumes afterwards."""
    if not has_docker():
        pytest.skip("no Docker engine answers")
    subprocess.run(["sh", "deploy/compose/make-secrets.sh"], cwd=ROOT, check=True)
    try:
        up = docker("up", "--build", "--detach")
        assert up.returncode == 0, up.stderr + docker("logs", "--tail", "50").stdout
        yield
    finally:
        docker("down", "--volumes", "--timeout", "60")


@pytest.mark.usefixtures("project")
def test_the_stack_comes_up_and_rows_arrive() -> None:
    """Every service is healthy, mismatches are found, and nothing is lost or doubled."""
    sql = "SELECT count() AS n FROM gnomon.comparisons WHERE outcome = 'mismatch'"
    deadline = time.monotonic() + 300
    while True:
        asked = docker("run", "--rm", "cli", "query", "--sql", sql, "--format", "json")
        if asked.returncode == 0 and int(json.loads(asked.stdout)[0]["n"]) > 10:
            break
        assert time.monotonic() < deadline, asked.stderr + docker("logs", "--tail", "50").stdout
        time.sleep(2)
    states = [json.loads(line) for line in docker("ps", "--all", "--format", "json").stdout.splitlines()]
    assert {s["Service"]: s["ExitCode"] for s in states if s["State"] == "exited"} == {"migrate": 0}
    assert {s["Health"] for s in states if s["State"] == "running"} <= {"healthy", ""}
    assert docker("stop", "load").returncode == 0
    assert docker("stop", "proxy").returncode == 0
    while docker("run", "--rm", "cli", "reconcile").returncode != 0:
        assert time.monotonic() < deadline
        time.sleep(2)
