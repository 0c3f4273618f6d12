"""Blocks in the Native format: bytes as they must be, and read back by the engine itself."""

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest import native
from ingest.engine import Mark
from ingest.native import Column
from tests.ingest.engine_process import EngineProcess, migrated_engine


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, b"\x00"), (1, b"\x01"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02"), (2**21, b"\x80\x80\x80\x01")],
)
def test_a_varint_has_seven_bits_a_byte(number: int, expected: bytes) -> None:
    """Least significant first, the high bit says that more follows."""
    assert expected == native.varint(number)


def test_a_block_is_counts_then_columns() -> None:
    """Columns, rows, then name, type and values of each."""
    columns = [Column("a", "UInt16", native.numbers("H")), Column("b", "String", native.texts)]

    found = native.block(columns, [[1, 258], ["x", "é"]])

    assert found == b"\x02\x02" + b"\x01a\x06UInt16\x01\x00\x02\x01" + b"\x01b\x06String\x01x\x02\xc3\xa9"


@given(st.lists(st.one_of(st.text(max_size=200), st.text("ab", min_size=3, max_size=3)), max_size=30))
def test_texts_of_one_length_are_written_like_any(items: list[str]) -> None:
    """A length, then the bytes, for each."""
    expected = b"".join(native.encode_text(item) for item in items)

    assert expected == native.texts(items)
    assert expected == native.raws([item.encode() for item in items])


@given(st.lists(st.text("ab", max_size=2)))
def test_words_are_their_kinds_once_and_a_number_each(items: list[str]) -> None:
    """Read back, they are the texts."""
    known = native.coded(items)

    assert items == list(known) == [known[i] for i in range(len(items))]
    assert items[1:] == list(known[1:])
    assert len(set(items)) == len(known.kinds)
    assert native.words(items) == native.words(known)


@pytest.mark.parametrize(("n_kinds", "code"), [(1, "B"), (256, "B"), (257, "H"), (65_536, "H"), (65_537, "I")])
def test_numbers_of_kinds_are_as_short_as_they_can_be(n_kinds: int, code: str) -> None:
    """The last of them fits."""
    assert native.smallest([0, n_kinds - 1], n_kinds).typecode == code


@given(st.lists(st.one_of(st.none(), st.integers(-(10**38) + 1, 10**38 - 1))))
def test_amounts_are_a_null_map_and_little_endian_numbers(items: list[int | None]) -> None:
    """16 bytes each, 0 where there is none."""
    found = native.nullable_amounts(items)

    assert found[: len(items)] == bytes(item is None for item in items)
    values = found[len(items) :]
    assert [item or 0 for item in items] == [
        int.from_bytes(values[i : i + 16], "little", signed=True) for i in range(0, len(values), 16)
    ]


@pytest.mark.parametrize(("code", "value"), [("H", 65_536), ("I", 2**32), ("Q", -1), ("q", 2**63)])
def test_a_number_that_does_not_fit_is_refused(code: str, value: int) -> None:
    """Never stored as another number."""
    with pytest.raises(OverflowError):
        native.numbers(code)([value])


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    with migrated_engine(tmp_path_factory.mktemp("engine")) as process:
        yield process


KINDS: list[tuple[str, str, native.Encoder, Sequence[Any], list[str]]] = [
    ("t", "DateTime64(3, 'UTC')", native.numbers("q"), [0, 1_790_000_000_123, 4_102_444_799_999],
     ["1970-01-01 00:00:00.000", "2026-09-21 14:13:20.123", "2099-12-31 23:59:59.999"]),
    ("u16", "UInt16", native.numbers("H"), [0, 1, 65_535], ["0", "1", "65535"]),
    ("u32", "UInt32", native.numbers("I"), [0, 1, 2**32 - 1], ["0", "1", "4294967295"]),
    ("u64", "UInt64", native.numbers("Q"), [0, 1, 2**64 - 1], ["0", "1", "18446744073709551615"]),
    ("nu", "Nullable(UInt64)", native.nullable_numbers("Q"), [None, 0, 2**64 - 1],
     ["\\N", "0", "18446744073709551615"]),
    ("ni", "Nullable(Int64)", native.nullable_numbers("q"), [None, -(2**63), 5], ["\\N", "-9223372036854775808", "5"]),
    ("b", "Bool", native.bools, [True, False, True], ["true", "false", "true"]),
    ("s", "String", native.texts, ["", "é\t", "x" * 300], ["", "é\t", "x" * 300]),
    ("w", "LowCardinality(String)", native.words, ["a", "", "a"], ["a", "", "a"]),
    ("w2", "LowCardinality(String)", native.words, native.Coded(["x", "nobody's", "", "x"], array("H", [3, 0, 2])),
     ["x", "x", ""]),
    ("w4", "LowCardinality(String)", native.words, native.Coded(["x", "y"], array("I", [1, 0, 1])), ["y", "x", "y"]),
    ("r", "String", native.raws, [b"", b"\x00", b"ab"], ["", "\0", "ab"]),
    ("m", "Nullable(Decimal(38, 12))", native.nullable_amounts, [None, -1, 10**38 - 1],
     ["\\N", "-0.000000000001", "99999999999999999999999999.999999999999"]),
    ("l", "Array(LowCardinality(String))", native.word_lists, [(), ("a",), ("b", "a")], ["[]", "['a']", "['b','a']"]),
    ("c", "Map(String, UInt64)", native.counters, [{}, {"x": 1}, {"y": 2, "x": 3}], ["{}", "{'x':1}", "{'y':2,'x':3}"]),
    ("h", "Map(UInt32, UInt64)", native.histograms, [{}, {7: 1}, {9: 2, 8: 2**63}],
     ["{}", "{7:1}", "{9:2,8:9223372036854775808}"]),
]  # fmt: skip
WIRE = {"Array(LowCardinality(String))": "Array(String)"}


@pytest.mark.clickhouse
def test_the_engine_reads_every_kind_as_it_was_meant(process: EngineProcess) -> None:
    """Edges of each type, nulls, empty and long values, through the fenced insert."""
    engine = process.connect()
    names = ", ".join(f"`{name}` {type_}" for name, type_, *_ in KINDS)
    engine.command(f"CREATE TABLE gnomon_core.kinds (i UInt16, {names}) ENGINE = MergeTree ORDER BY i")
    columns = [Column("i", "UInt16", native.numbers("H"))]
    columns += [Column(name, WIRE.get(type_, type_), encode) for name, type_, encode, _, _ in KINDS]
    mark = Mark("ab", "kinds", 0, 1)
    engine.insert(
        "sink_epochs",
        [Column("log_id", "String", native.texts), Column("topic", "String", native.texts),
         Column("part", "UInt16", native.numbers("H")), Column("epoch", "UInt64", native.numbers("Q")),
         Column("at", "DateTime64(3, 'UTC')", native.numbers("q"))],
        [["ab"], ["kinds"], [0], [1], [0]],
        mark,
    )  # fmt: skip
    engine.insert("kinds", columns, [[0, 1, 2], *[values for *_, values, _ in KINDS]], mark)

    for name, *_, expected in KINDS:
        assert [[text] for text in expected] == engine.rows(f"SELECT `{name}` FROM gnomon_core.kinds ORDER BY i"), name
