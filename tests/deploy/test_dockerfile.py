"""The image has what it needs, nothing that lies about, and runs as nobody in particular."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gnomon import rooms
from tests.deploy.tools import run, tool
from tests.services import ROOT

DOCKERFILE = ROOT / "Dockerfile"
LINES = re.sub(r"\\\n\s*", " ", re.sub(r"(?m)^#.*\n", "", DOCKERFILE.read_text("utf-8"))).splitlines()
STEPS = [tuple(line.split(" ", 1)) for line in LINES if line.strip()]
"""Instruction and the rest, one line each."""


def given(instruction: str) -> list[str]:
    """Return what an instruction is given, each time."""
    return [step[1] for step in STEPS if step[0] == instruction]


@pytest.mark.containers
def test_the_linter_finds_nothing() -> None:
    """hadolint, with every rule on."""
    status, found, messages = run([tool("hadolint"), "--no-color", DOCKERFILE])

    assert status == 0, found + messages


@pytest.mark.containers
def test_the_linter_can_find_something(tmp_path: Path) -> None:
    """A base that is not pinned is an error."""
    (tmp_path / "Dockerfile").write_text("FROM python:latest\nUSER 1\n")
    status, found, _ = run([tool("hadolint"), "--no-color", tmp_path / "Dockerfile"])

    assert (status, "DL3007" in found) == (1, True)


def test_what_is_copied_is_there_and_no_more_is_sent() -> None:
    """Each source is in the clone and let through by .dockerignore, which lets nothing else through."""
    copied = {source for text in given("COPY") if not text.startswith("--from") for source in shlex.split(text)[:-1]}
    patterns = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    patterns = [line for line in patterns if line and not line.startswith("#")]

    assert patterns[0] == "*"
    assert {line.removeprefix("!") for line in patterns if line.startswith("!")} == copied
    assert [source for source in copied if not (ROOT / source).exists()] == []


def test_every_room_is_in_the_image() -> None:
    """`gnomon` and the rooms that it looks for at its start."""
    folders = {text.split()[0] for text in given("COPY") if (ROOT / text.split()[0]).is_dir()}

    assert folders == {"gnomon", *rooms.ROOMS}


def test_the_packages_are_those_of_a_cluster_as_tested() -> None:
    """Without the embedded ClickHouse; versions by constraints.txt, nothing is compiled."""
    install = next(text for text in given("RUN") if "requirements.txt" in text)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = re.search(r"for n in \(([^)]*)\)", install)

    assert named is not None
    assert set(re.findall(r"'(\w+)'", named[1])) == {"proxy", "ingest", "kafka", "api"} <= set(extras)
    assert "-c constraints.txt" in install
    assert "--only-binary :all:" in install


def test_the_list_of_packages_is_what_the_command_in_it_prints(tmp_path: Path) -> None:
    """The step that makes requirements.txt, run here."""
    install = next(text for text in given("RUN") if "requirements.txt" in text)
    command = shlex.split(install.partition(" > ")[0])
    assert command[:2] == ["/opt/gnomon/bin/python", "-c"]
    ran = subprocess.run([sys.executable, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert set(project["dependencies"]) <= set(ran.stdout.splitlines())
    assert any(line.startswith("aiokafka") for line in ran.stdout.splitlines())
    assert not any(line.startswith("chdb") for line in ran.stdout.splitlines())


def test_it_runs_as_a_user_without_rights() -> None:
    """By number, so that a cluster can check it; after the last step that needs root."""
    assert given("USER") == ["10001:10001"]
    last = [step[0] for step in STEPS]
    assert last.index("USER") > max(i for i, name in enumerate(last) if name in ("RUN", "COPY"))


def test_the_entry_point_is_our_command() -> None:
    """Without a shell between, so that signals reach it; run as a process it says what it can do."""
    assert given("ENTRYPOINT") == ['["gnomon"]']
    assert given("CMD") == ['["--help"]']
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert "gnomon" in scripts
    ran = subprocess.run(
        [Path(sys.prefix) / "bin" / "gnomon", "--help"], capture_output=True, text=True, check=False, timeout=60
    )

    assert ran.returncode == 0, ran.stderr
    assert "ingest" in ran.stdout


def test_stages_begin_with_the_same_exact_base() -> None:
    """A Python of the line that the constraints were made with, to the last digit."""
    (base,) = given("ARG")
    match = re.fullmatch(r"PYTHON_IMAGE=python:(3\.\d+)\.\d+-slim-\w+", base)

    assert match is not None
    assert [text.split()[0] for text in given("FROM")] == ["${PYTHON_IMAGE}"] * 2
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]["python_version"]
    assert match[1] == wanted
