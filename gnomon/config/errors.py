"""
What is wrong with a configuration, all of it at once.

    UsageError
    ├── ConfigError     the file cannot be used; `problems` holds every reason
    └── TlsError        a listener's certificate or key cannot be used; `member` says which
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gnomon.errors import UsageError


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why a file cannot be used, or one part of it that has no effect."""

    path: str
    """Where, as in `projects[0].upstreams[2].evm.chainId`; empty for the file as a whole."""
    message: str
    line: int | None = None
    """1-based line of the nearest known place; None when there is no text to point at."""

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line is not None else ""
        return f"{where}{self.path}: {self.message}" if self.path else f"{where}{self.message}"


class TlsError(UsageError):
    """A certificate or key cannot be used; `member` is `cert` or `key`, whichever is at fault."""

    def __init__(self, member: str, message: str) -> None:
        super().__init__(message)
        self.member = member


class ConfigError(UsageError):
    """The configuration cannot be used; the message lists every problem, one a line."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n".join([f"{file}: {count}", *(f"  {problem}" for problem in problems)]))
