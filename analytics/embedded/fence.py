"""
The fence of the exactly-once sink: an insert runs only for the key's newest owner, and one at a time.

A sink marks each insert with `/*fence:KEY EPOCH*/`. KEY is `LOG_ID:TOPIC:PARTITION`; EPOCH is the owner's, greater than
all before it. The front holds one lock per key around "check, insert", so a new owner's epoch row queues behind a
running insert of the old one, and whatever the old one sends afterwards (a late request, a paused process that goes
on) is refused. The first statement of a key in the front's life asks the table, later ones a dictionary.

This module is pure: the caller holds the lock, runs the SQL and tells what happened.
"""

from dataclasses import dataclass, field
from typing import Literal

from analytics.embedded.configuration import CORE_DATABASE

EPOCHS_TABLE = (CORE_DATABASE, "sink_epochs")

CHECK_SQL = (
    "SELECT max(epoch) FROM gnomon_core.sink_epochs "
    "WHERE log_id = {log_id:String} AND topic = {topic:String} AND part = {part:UInt32} FORMAT TabSeparated"
)
"""The greatest epoch of a key; 0 when it has none."""

Decision = Literal["ask", "run", "fenced"]


class BadKey(ValueError):
    """A fence key that is not `LOG_ID:TOPIC:PARTITION`."""


def check_parameters(key: str) -> dict[str, str]:
    """
    Return the parameters of `CHECK_SQL` for a key.

    Raises:
        BadKey: the key has another form.

    >>> check_parameters("6f0a:gnomon.responses.v1:0")
    {'log_id': '6f0a', 'topic': 'gnomon.responses.v1', 'part': '0'}
    """
    log_id, _, rest = key.partition(":")
    topic, _, part = rest.rpartition(":")
    if not log_id or not topic or not part.isdecimal():
        raise BadKey(f"fence key {key!r} is not LOG_ID:TOPIC:PARTITION")
    return {"log_id": log_id, "topic": topic, "part": part}


@dataclass(slots=True)
class Fence:
    """The greatest epoch of each key that this front knows of."""

    epochs: dict[str, int] = field(default_factory=dict)

    def decide(self, key: str, epoch: int, target: tuple[str, ...]) -> Decision:
        """
        Say what to do with an insert of `epoch` for `key` into `target`; the caller holds the key's lock.

        An epoch row must be greater than what is known, any other insert must equal it: an epoch that was never
        written down is nobody's.
        """
        known = self.epochs.get(key)
        if known is None:
            return "ask"
        if target == EPOCHS_TABLE:
            return "run" if epoch > known else "fenced"
        return "run" if epoch == known else "fenced"

    def learn(self, key: str, epoch: int) -> None:
        """Take what the table says about `key`."""
        self.epochs[key] = epoch

    def stored(self, key: str, epoch: int, target: tuple[str, ...]) -> None:
        """The insert is done."""
        if target == EPOCHS_TABLE:
            self.epochs[key] = epoch

    def unknown(self, key: str, target: tuple[str, ...]) -> None:
        """The insert failed: an epoch row may or may not be there, so the table is asked again."""
        if target == EPOCHS_TABLE:
            self.epochs.pop(key, None)
