"""
The engine without our front, with any configuration: a process that runs the statements on its standard input.

For what a server would be told and the embedded ClickHouse never is: its users, its clusters, its Keeper.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def run(folder: Path, config: str, statements: Sequence[str]) -> list[tuple[str, str]]:
    """Return for each statement what it gave (TabSeparated) and its error; one of the two is empty."""
    (folder / "config.xml").write_text(config)
    ran = subprocess.run(
        [sys.executable, "-m", "tests.analytics.bare_engine", str(folder)],
        input=json.dumps(list(statements)),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return [(given, error) for given, error in json.loads(ran.stdout.splitlines()[-1])]


def main(folder: Path) -> None:
    import chdb.session

    session = chdb.session.Session(f"{folder / 'data'}?config-file={folder / 'config.xml'}")
    answers = []
    for statement in json.load(sys.stdin):
        try:
            answers.append((str(session.query(statement, "TabSeparated")), ""))
        except Exception as error:
            answers.append(("", str(error)))
    print("\n" + json.dumps(answers), flush=True)
    # Replicated tables would look for their Keeper until it ends.
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
