"""
What requests ask: the method's entry in the table, and the block.

The same questions come again and again, a mirrored one at once: those of usual length are looked at once and kept.
"""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Raw

from gnomon.rpc.blocks import BlockRef, request_block
from gnomon.rpc.methods import Method, lookup

_KEPT = 20_000
_KEPT_BYTES = 256
"""Of parameters; longer ones (calls, transactions) hardly come again."""


class Asked(NamedTuple):
    """One question."""

    method: Method
    ref: BlockRef


class _Known(dict[tuple[str, bytes], Asked]):
    def __missing__(self, question: tuple[str, bytes]) -> Asked:
        name, params = question
        method = lookup(name)
        asked = Asked(method, request_block(method, params))
        if len(params) <= _KEPT_BYTES:
            if len(self) >= _KEPT:
                self.clear()
            self[question] = asked
        return asked


_known = _Known()


def asked_of(methods: Iterable[str], params: Iterable[bytes | Raw]) -> list[Asked]:
    """Return what each of the requests asks, by their methods and raw parameters."""
    return list(map(_known.__getitem__, zip(methods, map(bytes, params), strict=True)))
