"""
Rows of one table kept by columns: made of whole columns, added up, thinned out, and sent without ever being rows.

The words of a row (its columns of low cardinality) are kept together: each combination once, and for each row the
number of its own. What depends on them alone is found out once per combination, and they travel as they are kept.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress, repeat
from typing import Any, overload

from msgspec import Struct
from msgspec.structs import astuple

from ingest.native import Coded, Numbering, smallest
from ingest.tables import Row, Table

Label = tuple[str, ...]
Members = Mapping[str, Sequence[Any]]


def members(structs: Sequence[Struct]) -> Members:
    """Return each member of structs of one type, by its name; nothing where there is no struct."""
    if not structs:
        return {}
    return dict(zip(structs[0].__struct_fields__, zip(*map(astuple, structs), strict=True), strict=True))


class Block(Sequence[Row]):
    """Some rows of one table, in no order. As a sequence it gives tuples in the order of the table's columns."""

    __slots__ = ("_values", "labels", "numbers", "table")

    def __init__(self, table: Table, columns: Mapping[str, Sequence[Any]]) -> None:
        """
        Args:
            table: whose rows they are.
            columns: by name, all of one length; others than the table's are passed over, none at all is no row.
        """
        self.table = table
        numbering = Numbering()
        words = [columns[name] for name in table.word_places] if columns else []
        numbers = [numbering[label] for label in zip(*words, strict=True)] if words else []
        self.labels: list[Label] = list(numbering)
        """Each combination of the table's words."""
        self.numbers: array[int] = smallest(numbers, len(numbering))
        """For each row the place of its words among the labels."""
        self._values: dict[str, Sequence[Any]] = {name: columns[name] if columns else () for name in table.values}

    @classmethod
    def of_rows(cls, table: Table, rows: Iterable[Row]) -> "Block":
        """Return rows, as tuples in the order of the table's columns, as a block."""
        return cls(table, dict(zip(table.names, zip(*rows, strict=True), strict=False)))

    @classmethod
    def joined(cls, table: Table, blocks: Sequence["Block"]) -> "Block":
        """Return the rows of several blocks as one."""
        if len(blocks) == 1:
            return blocks[0]
        whole = cls(table, {})
        numbering = Numbering()
        numbers: list[int] = []
        for block in blocks:
            places = [numbering[label] for label in block.labels]
            numbers += map(places.__getitem__, block.numbers)
        whole.labels = list(numbering)
        whole.numbers = smallest(numbers, len(numbering))
        for name in table.values:
            whole._values[name] = list(chain.from_iterable([block._values[name] for block in blocks]))
        return whole

    def where(self, is_chosen: Sequence[bool]) -> "Block":
        """Return the rows that are chosen."""
        some = Block(self.table, {})
        some.labels = self.labels
        some.numbers = array(self.numbers.typecode, compress(self.numbers, is_chosen))
        some._values = {name: list(compress(values, is_chosen)) for name, values in self._values.items()}
        return some

    @property
    def times(self) -> Sequence[int]:
        """The time that decides the partition of each row."""
        return self._values[self.table.columns[0].name]

    @property
    def offsets(self) -> Sequence[int]:
        """The offset of each row's event."""
        return self._values["off"]

    def column(self, name: str) -> Sequence[Any]:
        """Return one column."""
        place = self.table.word_places.get(name)
        if place is None:
            return self._values[name]
        return Coded([label[place] for label in self.labels], self.numbers)

    def columns(self) -> list[Sequence[Any]]:
        """Return all columns in the table's order."""
        return [self.column(column.name) for column in self.table.columns]

    def __len__(self) -> int:
        return len(self._values["off"])

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return list(self)[index]

    def __iter__(self) -> Iterator[Row]:
        return zip(*self.columns(), strict=True)


def each(values: Sequence[Any], counts: Sequence[int]) -> Sequence[Any]:
    """Return each value as often as its count says."""
    if counts.count(1) == len(counts):
        return values
    return list(chain.from_iterable(map(repeat, values, counts)))


@dataclass(slots=True)
class Rows:
    """What a batch of consecutive events becomes."""

    first: int
    next: int
    tables: dict[str, Block] = field(default_factory=dict)
    """Table → rows. The rollups' are made by the sink, from those of their sources."""
    hours: dict[int, int] = field(default_factory=dict)
    """Hour (ms since 1970; 0 = unknown) → number of events."""
    seen: dict[str, int] = field(default_factory=dict)
    """Process → greatest number of an event of it in the batch, where repetitions are looked for."""
