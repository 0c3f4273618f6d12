"""
What can be wrong with a price book.

    UsageError
    └── PriceBookError
"""

from collections.abc import Sequence

from gnomon.errors import UsageError


class PriceBookError(UsageError):
    """A book cannot be used; `problems` holds each fault with its place."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        super().__init__("; ".join(f"price book {source}: {problem}" for problem in problems))
        self.source = source
        self.problems = tuple(problems)
