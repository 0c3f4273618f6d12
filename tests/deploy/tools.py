"""What reads Dockerfile and docker-compose.yml: hadolint, the Compose specification's schema, Docker Compose itself."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.services import ROOT

COMPOSE_FILE = ROOT / "docker-compose.yml"
HINT = "make containers"


def compose() -> Path | None:
    """Return the binary of Docker Compose, which the package brings beside its script."""
    spec = importlib.util.find_spec("compose")
    found = Path(spec.origin).with_name("docker-compose") if spec and spec.origin else None
    return found if found and found.is_file() else None


def tool(name: str) -> Path | None:
    """Return a command of this environment."""
    found = Path(sys.prefix) / "bin" / name
    return found if found.is_file() else None


def missing() -> str | None:
    """Return what is not here and how to get it, or None."""
    names = {"hadolint": tool("hadolint"), "check-jsonschema": tool("check-jsonschema"), "Docker Compose": compose()}
    lacking = [name for name, path in names.items() if path is None]
    return f"no {', '.join(lacking)}: {HINT}" if lacking else None


def run(command: Sequence[str | Path | None], environment: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Return status, stdout and stderr of a command in the clone."""
    ran = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr


def effective(
    *profiles: str, environment: Mapping[str, str] | None = None, file: Path = COMPOSE_FILE
) -> dict[str, Any]:
    """Return the compose file as Docker Compose understands it."""
    chosen = [part for profile in profiles for part in ("--profile", profile)]
    project = ["--project-directory", str(ROOT), "--env-file", "/dev/null"]
    command: list[str | Path | None] = [compose(), "-f", file, *project, *chosen, "config", "--format", "json"]
    status, text, messages = run(command, environment)
    assert status == 0, messages
    parsed: dict[str, Any] = json.loads(text)
    return parsed
