"""
Where Apache Kafka's jars are: a folder in the user's cache, filled by Maven from `deploy/kafka/pom.xml`.

The folder is named by what the pom says, so that another version gets another folder.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.services import ROOT

POM: Final = ROOT / "deploy" / "kafka" / "pom.xml"
OLDEST_JAVA: Final = 17
INSTALL_SECONDS: Final = 300.0


def folder() -> Path:
    """Return the folder for the versions in the pom; it is there only when it is whole."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "gnomon" / "kafka" / hashlib.sha256(POM.read_bytes()).hexdigest()[:12]


def missing() -> str | None:
    """Return what keeps a broker from running here and how to get it, or None."""
    if java_version() < OLDEST_JAVA:
        return f"no Java {OLDEST_JAVA} or newer: apt-get install openjdk-17-jre-headless"
    if not folder().is_dir():
        return "no jars of Apache Kafka: make broker"
    return None


def java_version() -> int:
    """Return the major version of the `java` on the path; 0 when there is none."""
    java = shutil.which("java")
    if java is None:
        return 0
    ran = subprocess.run([java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=False)
    for line in ran.stderr.splitlines():
        name, _, value = line.strip().partition(" = ")
        if name == "java.specification.version":
            return int(value.removeprefix("1."))
    return 0


def install() -> None:
    """
    Copy the jars into the folder, unless they are there.

    Raises:
        SystemExit: no Maven here, or it failed; its last lines are told.
    """
    target = folder()
    if target.is_dir():
        return
    maven = shutil.which("mvn")
    if maven is None:
        raise SystemExit("no Maven: apt-get install maven")
    work = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        ran = subprocess.run(
            [maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={work}"],
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
        if ran.returncode:
            raise SystemExit("Maven failed:\n" + "\n".join(ran.stdout.splitlines()[-15:]))
        try:
            work.rename(target)
        except OSError:
            if not target.is_dir():  # else somebody else finished first: theirs is as good
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    install()
    print(folder())
    sys.exit(missing())
