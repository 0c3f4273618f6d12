"""
Where the next page begins, as an opaque text.

A cursor holds the place of the last row by its keys, so rows that come or go meanwhile neither repeat nor hide any; the
range that `now` meant on the first page; and a digest of the question, its parameters and the rest, so that one that
was cut, changed or sent with other parameters is told from one of ours. It grants nothing: who may not ask may not ask
with a cursor either.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from api.errors import Refused

VERSION: Final = 1
MAX_CHARACTERS: Final = 4096


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in the answer to a question."""

    start: str
    """The bound value of `from`."""
    end: str
    """The bound value of `to` on the first page."""
    key: tuple[str, ...]
    """Of the last row: `at` as it is bound, then the question's further key columns."""


def encode(cursor: Cursor, question: str, given: Mapping[str, str]) -> str:
    """
    Return the text of a cursor.

    Args:
        question: which.
        given: the parameters of the request, without the cursor and the page's length.
    """
    place = [cursor.start, cursor.end, *cursor.key]
    members = json.dumps([VERSION, _digest(place, question, given), *place], separators=(",", ":"))
    return base64.urlsafe_b64encode(members.encode()).rstrip(b"=").decode()


def decode(text: str, question: str, given: Mapping[str, str], n_keys: int) -> Cursor:
    """
    Return the cursor of a text.

    Args:
        question, given: as in `encode`.
        n_keys: columns of the question's key, `at` included.

    Raises:
        Refused: it is none of ours, or of another question or parameters.
    """
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        members = json.loads(raw)
    except (binascii.Error, ValueError, RecursionError):
        raise _bad() from None
    if not isinstance(members, list) or not all(isinstance(one, str) for one in members[1:]):
        raise _bad()
    if len(members) != 4 + n_keys or members[0] != VERSION:
        raise _bad()
    place = [str(one) for one in members[2:]]
    if members[1] != _digest(place, question, given):
        raise _bad()
    return Cursor(place[0], place[1], tuple(place[2:]))


def _bad() -> Refused:
    return Refused(
        "bad-cursor",
        "the cursor is not one of this question with these parameters; send `next_cursor` as it came, with the "
        "parameters of its first page",
        errors=[{"parameter": "cursor", "detail": "is not valid here"}],
    )


def _digest(place: Sequence[str], question: str, given: Mapping[str, str]) -> str:
    said = json.dumps([VERSION, question, sorted(given.items()), list(place)])
    return hashlib.blake2b(said.encode(), digest_size=12, person=b"gnomon cursor").hexdigest()
