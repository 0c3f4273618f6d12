"""
Which block a request or an answer speaks of.

A reference is a number, a tag (`latest`, `pending`, …), a hash, or nothing. Of several references (a range) the highest
number counts, and a tag beside it is kept: a range up to a tag is of the newest block. Positions come from the method
table; a value of another kind at a position is passed over (`trace_call` has its block at 1 or at 2).

The functions accept anything: parameters that are malformed, or no JSON at all, give the empty reference.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import DecodeError, Raw, Struct, ValidationError
from msgspec.json import Decoder

from gnomon.rpc.methods import BlockPath, Method

MAX_BLOCK_NUMBER = (1 << 64) - 1
"""Above it a number is no block (it would not fit a column either)."""

HEAD_TAGS = frozenset(("latest", "pending", "safe", "finalized"))
"""Tags that move; `earliest` does not."""

_HASH_CHARACTERS = 66
_MAX_TAG_CHARACTERS = 32


class BlockRef(Struct, frozen=True):
    """What a request says about its block."""

    number: int | None = None
    """The highest number named; None where there is none."""
    tag: str = ""
    """The tag named, `latest` included; empty where there is none."""
    hash: str = ""
    is_range: bool = False
    """More than one reference was named, or the method covers a range."""
    is_left_out: bool = False
    """The method takes a block, none was named, and that means the newest."""

    @property
    def is_moving(self) -> bool:
        """Return whether the answer may change as the chain grows: a moving tag, or the default that stands for one."""
        return self.tag in HEAD_TAGS or self.is_left_out


NO_BLOCK = BlockRef()
_LEFT_OUT = BlockRef(is_left_out=True)
_split = Decoder(list[Raw] | None).decode
_decode = Decoder().decode


def request_block(method: Method, params: object) -> BlockRef:
    """
    Return the block that a request names.

    Args:
        method: its entry in the method table.
        params: the `params` member: raw JSON text (bytes, memoryview, Raw) or decoded. Raw text is split at its top
            level, and only the positions that may name a block are decoded.
    """
    paths = method.block_paths
    if not paths:
        return NO_BLOCK
    if isinstance(params, (bytes, bytearray, memoryview, Raw)):
        try:
            elements: Sequence[object] = _split(params) or ()
        except (DecodeError, UnicodeDecodeError, RecursionError):
            if memoryview(params).nbytes:
                return NO_BLOCK
            elements = ()
    elif isinstance(params, (list, tuple)):
        elements = params
    elif params is None:
        elements = ()
    else:
        return NO_BLOCK
    if len(paths) == 1 and len(paths[0]) == 1:
        index = paths[0][0]
        found = (
            parse_reference(_plain(elements[index])) if isinstance(index, int) and index < len(elements) else NO_BLOCK
        )
        return _LEFT_OUT if found is NO_BLOCK and method.is_head_default else found
    return _highest(method, [parse_reference(value) for value in _values(paths, elements)])


def _values(paths: Sequence[BlockPath], elements: Sequence[object]) -> list[object]:
    """Return the value at each position that exists."""
    values: list[object] = []
    decoded: dict[int | str, object] = {}
    for path in paths:
        index = path[0]
        if not isinstance(index, int) or index >= len(elements):
            continue
        if index not in decoded:
            decoded[index] = _plain(elements[index])
        value = decoded[index]
        if len(path) > 1:
            value = value.get(path[1]) if isinstance(value, Mapping) else None
        values.append(value)
    return values


def _highest(method: Method, references: list[BlockRef]) -> BlockRef:
    """Return the references of one request as one: the highest number, a moving tag before `earliest`, any hash."""
    number: int | None = None
    tag = hash_ = ""
    found = [reference for reference in references if reference is not NO_BLOCK]
    for reference in found:
        if reference.number is not None and (number is None or reference.number > number):
            number = reference.number
        hash_ = hash_ or reference.hash
        if reference.tag and (not tag or tag == "earliest"):
            tag = reference.tag
    if not found:
        return _LEFT_OUT if method.is_head_default or method.is_range else NO_BLOCK
    if method.is_range and not hash_ and not tag and references[1:2] == [NO_BLOCK]:
        tag = "latest"  # execution-apis: a left-out toBlock is the newest block
    return BlockRef(number, tag, hash_, is_range=len(found) > 1 or (method.is_range and not hash_))


def _plain(element: object) -> object:
    if isinstance(element, Raw):
        try:
            return _decode(element)
        except (DecodeError, UnicodeDecodeError, RecursionError):
            return None
    return element


def parse_reference(value: object) -> BlockRef:
    """
    Return the reference that one value stands for; `NO_BLOCK` where it is none.

    >>> parse_reference("0x10").number, parse_reference("latest").tag, parse_reference({"blockNumber": "0x2"}).number
    (16, 'latest', 2)
    """
    if isinstance(value, str):
        number = parse_number(value)
        if number is not None:
            return BlockRef(number)
        if len(value) == _HASH_CHARACTERS and value.startswith(("0x", "0X")):
            return BlockRef(hash=value.lower())
        if value.isascii() and value.isalpha() and len(value) <= _MAX_TAG_CHARACTERS:
            return BlockRef(tag=value.lower())
        return NO_BLOCK
    if isinstance(value, Mapping):  # EIP-1898
        for member in ("blockHash", "blockNumber", "blockTag"):
            if value.get(member) is not None:
                inner = value[member]
                return NO_BLOCK if isinstance(inner, Mapping) else parse_reference(inner)
        return NO_BLOCK
    number = parse_number(value)
    return NO_BLOCK if number is None else BlockRef(number)


def parse_number(value: object) -> int | None:
    """Return a block number written as hex text, decimal text or a JSON integer; None where it is none."""
    if isinstance(value, str):
        # int() alone would accept "0x_1", signs and white space
        if not value.isalnum() or not value.isascii() or len(value) >= _HASH_CHARACTERS:
            return None
        try:
            number = int(value, 16) if value.startswith(("0x", "0X")) else int(value)
        except ValueError:
            return None
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        return None
    return number if 0 <= number <= MAX_BLOCK_NUMBER else None


class _Number(Struct):
    number: Any = None


class _BlockNumber(Struct):
    blockNumber: Any = None


_number_of = Decoder(_Number).decode
_block_number_of = Decoder(_BlockNumber).decode
_block_numbers_of = Decoder(list[_BlockNumber]).decode


def _first_block_number(fragment: Any) -> object:
    receipts = _block_numbers_of(fragment)
    return receipts[0].blockNumber if receipts else None


_RESPONSE_READERS: dict[BlockPath, Callable[[Any], object]] = {
    (): _decode,
    ("number",): lambda fragment: _number_of(fragment).number,
    ("blockNumber",): lambda fragment: _block_number_of(fragment).blockNumber,
    (0, "blockNumber"): _first_block_number,
}


def response_block(method: Method, fragment: bytes | bytearray | memoryview | Raw) -> int | None:
    """
    Return the block number that a result names, for the methods whose table entry says where; else None.

    Args:
        method: its entry in the method table.
        fragment: the raw text of the result. Only the one member is built, the rest is skipped over.
    """
    path = method.response_block_path
    if path is None:
        return None
    try:
        return parse_number(_RESPONSE_READERS[path](fragment))
    except (ValidationError, DecodeError, UnicodeDecodeError, RecursionError):
        return None
