"""
Bodies of answers become rows of `bodies`, a set by day and hash.

Which of equal rows stays does not matter; a batch has each once, so that what many pairs share is sent once.
"""

import base64
from collections.abc import Iterable
from zlib import crc32

from gnomon.events.contract import NO_BODY, Answer
from ingest.batch import Group
from ingest.blocks import Block
from ingest.reading import Pair, Request
from ingest.tables import BODIES, DAY_MS

UNSTORED_PREFIX = "personal_"
"""Bodies and parameters of these methods are never stored: they hold keys and passwords."""

Source = tuple[Answer, Request | Pair, int]
"""An answer, its event, and the event's offset."""


def of_pairs(group: Group) -> list[Source]:
    """Return the answers of pairs whose bytes differ (`shadow.keepBodies: diverged`)."""
    return [
        (answer, event, off)
        for off, event in zip(group.offsets, group.events, strict=True)
        if event.primary.digest != event.shadow.digest
        for answer in (event.primary, event.shadow)
    ]


def of_requests(group: Group, share: float = 1.0) -> list[Source]:
    """
    Return the answers that were served.

    Args:
        group: of requests.
        share: below 1, so many of those that were mirrored, chosen by digest.
    """
    return [
        (event.answer, event, off)
        for off, event in zip(group.offsets, group.events, strict=True)
        if share >= 1 or _is_sampled(event, share)
    ]


def _is_sampled(event: Request, share: float) -> bool:
    if "mirrored" not in event.shadows.values() or not event.answer.digest:
        return False
    return crc32(event.answer.digest.encode()) < share * (1 << 32)


def body_rows(sources: Iterable[Source]) -> Block:
    """Return a row for each answer whose body travels and may be stored."""
    rows = []
    for answer, event, off in sources:
        body, is_head_only = _body(answer)
        if body and answer.digest and not event.method.startswith(UNSTORED_PREFIX):
            rows.append((event.at // 1_000_000, answer.digest, answer.n_bytes, is_head_only, body, event.event_id, off))
    return Block.of_rows(BODIES, rows)


def _body(answer: Answer) -> tuple[bytes, bool]:
    """Return the body; of one that did not travel whole, its head, which stands under the digest of the whole."""
    if answer.body is not NO_BODY and (body := bytes(answer.body)):
        return body, False
    try:
        return base64.b64decode(answer.body_base64, validate=True), True
    except ValueError:
        return b"", True


def distinct(bodies: Block) -> Block:
    """Return the first row of each body and day."""
    keys = [(at // DAY_MS, digest) for at, digest in zip(bodies.times, bodies.column("hash"), strict=True)]
    first = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
    if len(first) == len(keys):
        return bodies
    return bodies.where([first[key] == index for index, key in enumerate(keys)])
