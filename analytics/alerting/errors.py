"""
What can be wrong with alert rules.

    UsageError
    └── AlertRuleError
"""

from collections.abc import Sequence

from gnomon.errors import UsageError


class AlertRuleError(UsageError):
    """Rules cannot be used; `problems` holds each fault with its place."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        super().__init__("; ".join(f"alert rules {source}: {problem}" for problem in problems))
        self.source = source
        self.problems = tuple(problems)
