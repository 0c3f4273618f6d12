"""
What travels for a record that cannot: its size, why, and its beginning.

Consumers find no event in it (its type is none) and put it to the dead letters, where people look. It keeps the number
and the time of what it stands for, so that no gap shows where nothing is unknown.
"""

import base64
import re
from typing import Final

import msgspec

from gnomon.events.contract import VERSION

HEAD_BYTES: Final = 16 << 10
"""How much of the record it shows."""
TYPE: Final = "dead_letter"
_ID: Final = re.compile(rb'"event_id":"([0-9a-f]{1,32}:[0-9]{1,20})"')
_AT: Final = re.compile(rb'"at":([0-9]{1,19})\b')


class StandIn(msgspec.Struct, omit_defaults=True, tag=TYPE, tag_field="type"):
    """A record instead of a record."""

    v: int
    event_id: str = ""
    at: int = 0
    network: str = ""
    reason: str = ""
    n_bytes: int = 0
    head_base64: str = ""


def stand_in(record: bytes, reason: str) -> bytes:
    """Return what is sent instead of a record that the cluster refuses for `reason`."""
    event_id, at = _ID.search(record, 0, 512), _AT.search(record, 0, 512)
    return msgspec.json.encode(
        StandIn(
            v=VERSION,
            event_id=event_id[1].decode() if event_id else "",
            at=int(at[1]) if at else 0,
            reason=reason,
            n_bytes=len(record),
            head_base64=base64.b64encode(record[:HEAD_BYTES]).decode(),
        )
    )
