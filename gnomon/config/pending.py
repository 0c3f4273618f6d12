"""
Settings that are read and not yet in force: what is promised for later, and what it means to meet it now.

A file that uses one is told so. Where the setting guards money or access, that is an error unless `--allow-insecure`;
elsewhere it is a warning. A setting leaves this list in the commit that puts it in force: `test_pending.py` compares
the list with what the services read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Pending:
    weight: Literal["guard", "warning"]
    message: str
    attribute: str
    """The member of the effective settings that no service reads yet."""


def _guard(attribute: str, message: str) -> Pending:
    return Pending("guard", message, attribute)


def _warning(attribute: str, message: str) -> Pending:
    return Pending("warning", message, attribute)


PENDING: Mapping[tuple[str, str], Pending] = {}
"""(section, key) → what is not in force."""
