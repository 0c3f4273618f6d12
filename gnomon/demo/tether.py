"""Run a foreign program that must not outlive its parent: `python -m gnomon.demo.tether PROGRAM ARGUMENT…`."""

import os
import sys

from gnomon.process import die_with_parent


def main(argv: list[str]) -> None:
    """Ask the kernel to end this process with its parent, then become the program: the request survives `exec`."""
    die_with_parent()
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main(sys.argv[1:])
