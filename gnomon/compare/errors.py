"""
Errors of the comparison.

    GnomonError
    └── UsageError
        ├── MaskError         a mask that cannot be compiled (a ValueError too, for who parses configuration)
        └── ToleranceError    a tolerance that names no class (a ValueError too)
"""

from gnomon.errors import UsageError


class MaskError(UsageError, ValueError):
    """A mask is no path; the message shows the place in its text."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        self.text = text
        self.position = position
        self.problem = problem
        super().__init__(f"mask {text!r}, character {position + 1}: {problem}\n    {text}\n    {' ' * position}^")


class ToleranceError(UsageError, ValueError):
    """A tolerance names no class of difference."""
