"""
Silences: a rule, or a rule and a subject, of which nobody is told for a while. What changes meanwhile is kept in the
history; what still fires when the silence ends is told then.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Silence:
    id: str
    rule: str
    """A name or a pattern (`*`, `?`); `*` = every rule."""
    subject: str
    """A subject or a pattern; `*` = every subject."""
    starts_at: datetime
    ends_at: datetime
    """Exclusive."""
    comment: str = ""
    author: str = ""

    def covers(self, rule: str, subject: str, at: datetime) -> bool:
        """Return whether nobody is to be told of a rule and subject at an instant."""
        return (
            self.starts_at <= at < self.ends_at and fnmatchcase(rule, self.rule) and fnmatchcase(subject, self.subject)
        )


def is_silenced(silences: Iterable[Silence], rule: str, subject: str, at: datetime) -> bool:
    """Return whether any silence covers a rule and subject at an instant."""
    return any(silence.covers(rule, subject, at) for silence in silences)
