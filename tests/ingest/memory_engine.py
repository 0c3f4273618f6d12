"""
A ClickHouse in memory, as far as the sink sees one: tables as lists, the fence of the embedded front, and failures.

An insert is atomic per partition and not across partitions: with a failure in the midst of it, any subset of its
partitions may be there. `plan` says what happens to each coming insert.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ingest.engine import Engine, Mark
from ingest.errors import EngineRefused, Fenced, UnknownOutcome
from ingest.native import Column, block
from ingest.tables import DATABASE, TABLES, Row

Fate = Literal["stored", "lost", "stored_unknown", "torn"]


class MemoryEngine(Engine):
    """Takes the place of `ingest.engine.Engine`."""

    def __init__(
        self,
        fate: Callable[[], Fate] = lambda: "stored",
        refuses: Callable[[str, Sequence[Sequence[Any]]], bool] = lambda table, values: False,
    ) -> None:
        """
        Args:
            fate: of each coming insert.
            refuses: tells which inserts (table, values) ClickHouse says no to, for a value in them.
        """
        super().__init__("http://127.0.0.1:1")
        self._refuses = refuses
        self.tables: dict[str, list[Row]] = {name: [] for name in TABLES}
        self.progress: list[Row] = []
        self.epochs: dict[str, int] = {}
        self._fate = fate
        self.partitions_per_insert: list[int] = []

    def rows(self, sql: str, parameters: object = None) -> list[list[str]]:
        """Answer the questions that the sink asks."""
        key = "/".join(re.findall(r"log_id = '([^']*)' AND topic = '([^']*)' AND part = (\d+)", sql)[0])
        if "max(epoch)" in sql:
            return [[str(self.epochs.get(key, 0))]]
        if "max(next)" in sql:
            return [[str(max((row[5] for row in self.progress if _key(row[:3]) == key), default=0))]]
        if "maxMap(procs)" in sql:
            procs: dict[str, int] = {}
            for row in self.progress:
                if _key(row[:3]) == key:
                    procs |= {proc: max(n, procs.get(proc, 0)) for proc, n in row[10].items()}
            return [[proc, str(n)] for proc, n in procs.items()]
        start = int(re.findall(r"off >= (\d+)", sql)[0])
        floors: dict[tuple[str, int], int] = {}
        for name, table in TABLES.items():
            for row in self.tables[name]:
                off = row[-4]
                if off >= start and _key(row[-3:]) == key:
                    place = name, table.partition(row[0])
                    floors[place] = max(floors.get(place, -1), off)
        return [[name, str(partition), str(off)] for (name, partition), off in floors.items()]

    def insert(
        self,
        table: str,
        columns: Sequence[Column],
        values: Sequence[Sequence[Any]],
        mark: Mark,
        database: str = DATABASE,
    ) -> None:
        """Store rows under the fence, as the next fate has it."""
        assert block(columns, values)
        key = f"{mark.log_id}/{mark.topic}/{mark.part}"
        known = self.epochs.get(key, 0)
        if mark.epoch <= known if table == "sink_epochs" else mark.epoch != known:
            raise Fenced("fenced")
        if self._refuses(table, values):
            raise UnknownOutcome("refused") from EngineRefused(407, "DECIMAL_OVERFLOW")
        fate = self._fate()
        if fate == "lost":
            raise UnknownOutcome("lost")
        rows = list(zip(*values, strict=True))
        if table == "sink_epochs":
            self.epochs[key] = mark.epoch
        elif table == "sink_progress":
            self.progress += rows
        else:
            place = TABLES[table].partition
            partitions = sorted({place(row[0]) for row in rows})
            self.partitions_per_insert.append(len(partitions))
            kept = set(partitions[::2]) if fate == "torn" else set(partitions)
            self.tables[table] += [row for row in rows if place(row[0]) in kept]
        if fate != "stored":
            raise UnknownOutcome(fate)

    def is_alone(self, mark: Mark) -> bool:
        return True


def _key(row: Sequence[Any]) -> str:
    return "/".join(map(str, row))
