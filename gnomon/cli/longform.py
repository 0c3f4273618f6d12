"""
DeepDiff's view of two values, as text. It decides nothing.

DeepDiff may take minutes over some pairs and cannot be interrupted safely, so it runs in a process of its own
(`python -m gnomon.cli.longform`), which is ended when its time is up.
"""

import subprocess
import sys
from typing import Any

from gnomon.compare import exact


class OutOfTime(Exception):
    """DeepDiff did not come to an end."""


class Failed(Exception):
    """DeepDiff gave up; the message is the last line it wrote."""


def deepdiff(primary: exact.Value, shadow: exact.Value, seconds: float) -> str:
    """
    Return DeepDiff's text of two decoded values.

    Raises:
        OutOfTime: it took longer than `seconds`.
        Failed: it gave up (nesting, memory).
    """
    texts = [exact.text_of(value).encode("utf-8", "surrogatepass") for value in (primary, shadow)]
    command = [sys.executable, "-P", "-m", "gnomon.cli.longform"]
    try:
        done = subprocess.run(command, input=b"\n".join(texts), capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise OutOfTime from None
    if done.returncode:
        raise Failed((done.stderr.decode(errors="replace").strip().splitlines() or ["it was ended"])[-1])
    return done.stdout.decode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    """Return a value of types that DeepDiff knows."""
    if isinstance(value, exact.Number):
        return value.value() if value.value() is not None else value.text
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(element) for element in value] if isinstance(value, list) else value


def main() -> None:
    """Read two JSON texts, one a line; write what DeepDiff says of them."""
    from deepdiff import DeepDiff

    a, b = (_plain(exact.decode(line)) for line in sys.stdin.buffer.read().split(b"\n"))
    text = str(DeepDiff(a, b, verbose_level=2, max_diffs=100_000).pretty())
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))


if __name__ == "__main__":
    main()
