"""The gate judges the engine's own trees; what is not on a list is refused."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.gate import ALLOWED_FORMATS, Gate, NotAllowed, Parsed, check_tree, decode_answer
from analytics.gate_functions import ALLOWED, is_allowed
from analytics.store import Store
from tests.analytics.embedded.attacks import ALLOWED as NEEDED
from tests.analytics.embedded.attacks import ATTACKS
from tests.analytics.server import ClickHouse

FUNCTIONS = frozenset({"file", "sum", "plus", "sleep", "hostname"})


def select(expression: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the tree of `SELECT expression`."""
    return {"type": "SelectWithUnionQuery", "list_of_selects": [{"type": "SelectQuery", "select": expression}], **more}


def function(name: str, *arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "Function",
        "name": name,
        "arguments": {"type": "ExpressionList", "children": list(arguments)},
        **more,
    }


ONE = {"type": "Literal", "value": {"field_type": "UInt64", "value": 1}}


@pytest.mark.parametrize(
    "tree",
    [
        select(ONE),
        select(function("plus", ONE, ONE)),
        select({"type": "Identifier", "name": "method"}),
        select({"type": "Identifier", "name": "t.file", "name_parts": ["t", "file"]}),
        select({"type": "TableIdentifier", "name": "gnomon.requests", "name_parts": ["gnomon", "requests"]}),
        select({"type": "TableIdentifier", "name": "requests"}),
        select({"type": "TableIdentifier", "name": "system.one", "name_parts": ["system", "one"]}),
        select(ONE, format_ast={"type": "Identifier", "name": "JSONEachRow"}),
        select(function("lambda", ONE, alias="twice"), where=function("twice", ONE)),
        select({"type": "QueryParameter", "name": "x", "param_type": "Array(String)"}),
    ],
)
def test_harmless_trees_pass(tree: dict[str, Any]) -> None:
    """A column may have a function's name where it is qualified."""
    check_tree(tree, FUNCTIONS, ALLOWED_FORMATS)


@pytest.mark.parametrize(
    ("tree", "part"),
    [
        ({"type": "InsertQuery"}, "no SELECT"),
        ({}, "no SELECT"),
        (select({"type": "SomethingNew"}), "SomethingNew"),
        (select(function("file", ONE)), "function file"),
        (select(function("FILE", ONE)), "function FILE"),
        (select(function("brandNewFunction", ONE)), "function brandNewFunction"),
        (select(function("arrayMap", {"type": "Identifier", "name": "file"})), "bare name"),
        (select(function("lambda", ONE, alias="file"), where=function("file", ONE)), "function file"),
        (select(function("sumState", ONE)), "function sumState"),
        (select({"type": "ColumnsApplyTransformer", "func_name": "file"}), "ColumnsApplyTransformer"),
        (select(ONE, table_function=function("url")), "table function url"),
        (select(ONE, table_function=function("plus")), "table function plus"),
        (select(function("numbers", ONE)), "function numbers"),
        (select({"type": "TableIdentifier", "name": "a.b", "name_parts": ["gnomon_core", "requests"]}), "table"),
        (select({"type": "TableIdentifier", "name": "/etc/passwd"}), "table"),
        (select({"type": "TableIdentifier", "name": "x", "name_parts": ["system", "processes"]}), "table"),
        (select({"type": "TableIdentifier", "name": "x", "name_parts": ["a", "gnomon", "requests"]}), "table"),
        (select({"type": "TableIdentifier", "name": "", "children": [ONE]}), "bound parameter"),
        (select({"type": "QueryParameter", "name": "x", "param_type": "Identifier"}), "Identifier"),
        (select(ONE, out_file=ONE), "INTO OUTFILE"),
        (select(ONE, settings_ast={"type": "SetQuery"}), "SETTINGS"),
        (select(ONE, settings={"type": "SetQuery"}), "SETTINGS"),
        (select(ONE, format_ast={"type": "Identifier", "name": "Template"}), "FORMAT Template"),
        (select(ONE, format_ast=function("file", ONE)), "FORMAT"),
        (select({"type": "Literal", "value": {"value": "AggregateFunction(sum, UInt8)"}}), "AggregateFunction"),
        (select({"type": "Literal", "value": "Array(AggregateFunction(sum, UInt8))"}), "AggregateFunction"),
    ],
)
def test_every_other_part_is_named(tree: dict[str, Any], part: str) -> None:
    """The message says what is at fault."""
    with pytest.raises(NotAllowed, match=part):
        check_tree(tree, FUNCTIONS, ALLOWED_FORMATS)


@given(st.integers(1, 4000))
def test_depth_is_no_way_out(depth: int) -> None:
    """A dangerous part is found at any depth."""
    tree: dict[str, Any] = function("file", ONE)
    for _ in range(depth):
        tree = function("plus", tree)

    with pytest.raises(NotAllowed, match="file"):
        check_tree(select(tree), FUNCTIONS, ALLOWED_FORMATS)


def test_a_tree_too_deep_to_read_is_refused() -> None:
    """Not an error of ours."""
    import json

    with pytest.raises(NotAllowed, match="deeply"):
        decode_answer(json.dumps(["[" * 100_000, 1]).encode())


def test_what_the_tree_leaves_out_is_refused() -> None:
    """The text printed from the tree is not the text."""
    with pytest.raises(NotAllowed, match="cannot be checked"):
        Gate(lambda _: Parsed(select(ONE), is_whole=False), lambda: FUNCTIONS).check("SELECT 1 NEW CLAUSE")


def test_only_allowed_texts_are_remembered() -> None:
    """A text is parsed once when it is allowed, each time when it is not."""
    asked: list[str] = []

    def parse(sql: str) -> Parsed:
        asked.append(sql)
        return Parsed(select(function(sql, ONE)), is_whole=True)

    gate = Gate(parse, lambda: FUNCTIONS)
    for _ in range(3):
        gate.check("plus")
        with pytest.raises(NotAllowed):
            gate.check("file")

    assert sorted(asked) == ["file", "file", "file", "plus"]


@pytest.mark.parametrize("name", ["count", "countIf", "quantileExactIf", "sumMap", "sumArrayIf", "medianIf", "CAST"])
def test_combinators_of_aggregates_are_known(name: str) -> None:
    """Any number of them, behind an allowed aggregate."""
    assert is_allowed(name)


@pytest.mark.parametrize(
    "name", ["sumState", "sumMerge", "sumIfState", "fileIf", "plusIf", "sleepIf", "aggThrow", "aggThrowIf", ""]
)
def test_combinators_open_nothing_else(name: str) -> None:
    """Neither states nor functions that are no aggregates."""
    assert not is_allowed(name)


@pytest.mark.parametrize(
    "name",
    """file url s3 remote mysql executable python aiGenerate dictGet joinGet getSetting getServerSetting getMacro
    hostName FQDN sleep sleepEachRow throwIf evalMLMethod catboostEvaluate addressToLine demangle filesystemAvailable
    hasColumnInTable initializeAggregation finalizeAggregation runningAccumulate serverUUID tcpPort currentProfiles
    showCertificate getClientHTTPHeader chdb logTrace generateSerialID formatRow""".split(),  # noqa: SIM905
)
def test_dangerous_functions_are_not_on_the_list(name: str) -> None:
    """Whoever adds one must take it out of this test."""
    assert name.lower() not in ALLOWED


@pytest.fixture(scope="module")
def store(clickhouse: ClickHouse) -> Iterator[Store]:
    with clickhouse.store() as connected:
        yield connected


def engine_gate(store: Store) -> Gate:
    from analytics import gate

    return Gate(
        lambda sql: gate.decode_answer(b"\n".join(store.lines(gate.TREE_QUERY, gate.ROW_FORMAT, {"q": sql}))),
        lambda: gate.decode_functions(b"\n".join(store.lines(gate.FUNCTIONS_QUERY, gate.ROW_FORMAT))),
    )


@pytest.mark.clickhouse
@pytest.mark.parametrize("sql", NEEDED)
def test_the_gate_lets_needed_statements_through(store: Store, sql: str) -> None:
    """Against the engine's real trees."""
    engine_gate(store).check(sql)


@pytest.mark.clickhouse
def test_the_gate_alone_stops_almost_every_attack(store: Store) -> None:
    """What passes it is what the role is there for, and no more."""
    from analytics.store import StoreError

    passed = []
    judge = engine_gate(store)
    for sql in ATTACKS:
        try:
            judge.check(sql)
        except (NotAllowed, StoreError):
            continue
        passed.append(sql)

    assert passed == [
        "SELECT 1 IN gnomon_core.sink_epochs",
        "SELECT 1 IN (gnomon_core.sink_epochs)",
        "SELECT gnomon_core.requests.at FROM gnomon.requests",
    ]
