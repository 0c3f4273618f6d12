"""
A run that dies: `python -m tests.ingest.repricing.dying URL USER PASSWORD STEP`.

It is killed by SIGKILL before its STEPth step, and exits 0 where it is through before that.
"""

import os
import signal
import sys

from ingest.engine import Engine
from ingest.repricing import run
from ingest.repricing.run import Repricing
from tests.ingest.repricing.world import BEGIN, END, NEW, charger


def main(url: str, user: str, password: str, step: str) -> int:
    left = int(step)

    def at_step(_: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    run.DAYS_PER_CHANGE = 1
    Repricing(Engine(url, user, password), charger(NEW), BEGIN, END, at_step=at_step).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
