"""What is said of the packages is what is installed; the files of the house fit each other."""

import re
import shutil
import subprocess
import tomllib
from typing import Any

import pytest

from analytics.alerting.export import prometheus
from analytics.alerting.rules import shipped
from analytics.dashboards import dashboards
from gnomon.cli.reference import PAGES
from gnomon.config import reference as configuration
from tests.services import ROOT

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def project() -> dict[str, Any]:
    parsed: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return parsed


def named() -> set[str]:
    """Return the packages that pyproject.toml names, in lower case."""
    lists = [project()["dependencies"], *project()["optional-dependencies"].values()]
    matches = [NAME.match(requirement) for one in lists for requirement in one]
    return {match.group(0).lower() for match in matches if match} - {"gnomon"}


def test_each_dependency_has_a_line() -> None:
    """`docs/dependencies.md` lists exactly what pyproject.toml names."""
    page = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")]

    assert set(rows) - {"package", "---"} == named()


def test_each_dependency_is_pinned_within_its_bounds() -> None:
    """`constraints.txt` has an exact version of everything named."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = dict(line.lower().split("==") for line in lines if line and not line.startswith("#"))

    assert named() - {name.replace("_", "-") for name in pins} == set()
    assert all(re.fullmatch(r"[0-9][0-9a-z.+]*", version) for version in pins.values())


def test_the_version_is_in_the_changelog_or_unreleased() -> None:
    """The top entry of the changelog is the work in progress or the version of pyproject.toml."""
    headings = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)

    assert headings[0] in ("Unreleased", project()["version"])


DOCUMENTS = sorted(str(file.relative_to(ROOT / "docs")) for file in (ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("file", ["README.md", "CHANGELOG.md", *(f"docs/{name}" for name in DOCUMENTS)])
def test_links_between_documents_lead_somewhere(file: str) -> None:
    """No document points at a file that is not there."""
    source = ROOT / file
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", source.read_text("utf-8"))

    assert [target for target in targets if not (source.parent / target).exists()] == []


def test_every_document_is_in_the_index() -> None:
    """`docs/index.md` leads to each page beside and below it."""
    index = (ROOT / "docs" / "index.md").read_text("utf-8")

    assert [name for name in DOCUMENTS if name != "index.md" and f"({name})" not in index] == []


def test_made_pages_are_up_to_date() -> None:
    """What `make docs` writes is what is committed."""
    made = {f"reference/{name}": render() for name, render in PAGES.items()}
    made["configuration.md"] = configuration.render()
    made["../deploy/prometheus/gnomon.rules.yaml"] = prometheus(shipped())
    made |= {f"../deploy/grafana/dashboards/{one.file}": one.text() for one in dashboards()}
    old = [name for name, text in made.items() if (ROOT / "docs" / name).read_text("utf-8") != text]

    assert old == [], "run `make docs`"


@pytest.mark.parametrize("target", ["demo", "test", "check", "bench", "kafka", "nodes", "docs"])
def test_make_knows_its_targets(target: str) -> None:
    """What README, CI and the head of the Makefile name can be made."""
    ran = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert ran.returncode == 0, ran.stderr


def test_make_names_what_is_missing() -> None:
    """Without a fitting interpreter `make` ends with the line that installs one."""
    make = shutil.which("make")
    assert make is not None
    ran = subprocess.run(
        [make, "setup", "VENV=/nonexistent/venv"],
        cwd=ROOT,
        env={"PATH": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode != 0
    assert "apt-get install" in ran.stderr
