"""
The gate: which SQL an untrusted reader may run, judged on the engine's own syntax tree.

One of two layers. The gate stops what a role cannot (a scalar `file()`, INTO OUTFILE, settings); the role stops what
the gate cannot see (`1 IN other.table` is a plain identifier in the tree). Neither is enough alone.

Everything is an allow-list: kinds of nodes, functions, table functions, tables, output formats. The tree comes from
`parseQueryToJSON` of the engine that will run the text, so there is no second parser to differ from it; and the tree is
printed again and compared with the text, so that nothing of the statement is missing from the tree.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from analytics.gate_functions import is_allowed

READ_DATABASE = "gnomon"

TREE_QUERY = (
    "SELECT parseQueryToJSON({q:String}) AS tree, "
    "replaceRegexpAll(formatQuerySingleLine({q:String}), '[() ]', '') = "
    "replaceRegexpAll(formatQuerySingleLine(formatQueryFromJSON(tree)), '[() ]', '') AS is_whole"
)
"""
One row: the tree as a JSON text, and 1 when the tree is the whole statement. Brackets are left out of the comparison:
redundant ones are not kept in the tree.
"""

FUNCTIONS_QUERY = "SELECT name FROM system.functions"
"""All functions of the engine: an identifier of such a name may be a call in disguise (`arrayMap(file, …)`)."""

ROW_FORMAT = "JSONCompactEachRow"
"""In which both queries are asked."""

ALLOWED_TABLE_FUNCTIONS = frozenset({"numbers", "zeros", "values", "generateseries", "generate_series"})

ALLOWED_SYSTEM_TABLES = frozenset(
    {
        "one",
        "numbers",
        "settings",
        "databases",
        "tables",
        "columns",
        "functions",
        "formats",
        "data_type_families",
        "time_zones",
    }
)
"""Constants, and what the engine itself filters by grants; clients ask these before anything else."""

ALLOWED_FORMATS = frozenset(
    {
        "arrow", "arrowstream", "avro", "bsoneachrow", "csv", "csvwithnames", "csvwithnamesandtypes", "json",
        "jsoncolumns", "jsoncolumnswithmetadata", "jsoncompact", "jsoncompactcolumns", "jsoncompacteachrow",
        "jsoncompacteachrowwithnames", "jsoncompacteachrowwithnamesandtypes", "jsoncompactstrings",
        "jsoncompactstringseachrow", "jsoncompactstringseachrowwithnames",
        "jsoncompactstringseachrowwithnamesandtypes", "jsoneachrow", "jsonlines", "jsonobjecteachrow",
        "jsonstrings", "jsonstringseachrow", "markdown", "msgpack", "native", "ndjson", "null", "orc",
        "parquet", "pretty", "prettycompact", "prettycompactmonoblock", "prettycompactnoescapes",
        "prettyjsoneachrow", "prettymonoblock", "prettyndjson", "prettynoescapes", "prettyspace",
        "prettyspacenoescapes", "rowbinary", "rowbinarywithnames", "rowbinarywithnamesandtypes",
        "tabseparated", "tabseparatedraw", "tabseparatedrawwithnames", "tabseparatedrawwithnamesandtypes",
        "tabseparatedwithnames", "tabseparatedwithnamesandtypes", "tsv", "tsvraw", "tsvrawwithnames",
        "tsvrawwithnamesandtypes", "tsvwithnames", "tsvwithnamesandtypes", "values", "vertical", "xml",
    }
)  # fmt: skip
"""Lower case; none of them reads a schema or template file."""

_ALLOWED_NODES = frozenset(
    {
        "ArrayJoin", "Asterisk", "ColumnsExceptTransformer", "ColumnsListMatcher", "ColumnsRegexpMatcher",
        "ColumnsReplaceTransformer", "ColumnsReplaceTransformerReplacement", "ColumnsTransformerList",
        "DataType", "ExpressionList", "Function", "Identifier", "InterpolateElement", "Literal",
        "OrderByElement", "QualifiedAsterisk", "QualifiedColumnsListMatcher", "QualifiedColumnsRegexpMatcher",
        "QueryParameter", "SampleRatio", "SelectIntersectExceptQuery", "SelectQuery", "SelectWithUnionQuery",
        "Subquery", "TableExpression", "TableIdentifier", "TableJoin", "TablesInSelectQuery",
        "TablesInSelectQueryElement", "WindowDefinition", "WindowListElement", "WithElement",
    }
)  # fmt: skip
_ROOTS = frozenset({"SelectWithUnionQuery", "SelectIntersectExceptQuery"})
_FORBIDDEN_MEMBERS = {
    "out_file": "INTO OUTFILE",
    "settings": "SETTINGS",
    "settings_ast": "SETTINGS",
    "compression": "COMPRESSION",
    "compression_level": "COMPRESSION",
    "stream_settings": "STREAM",
}
_CACHED = 512
NO_SELECT = "a statement that is no SELECT; system.tables and system.columns say what there is"


_NAMES_A_FUNCTION = frozenset({"arrayreduce", "arrayreduceinranges"})
"""They call the aggregate function that a text names."""


_NAMES_A_TYPE = frozenset(
    {"cast", "_cast", "accuratecast", "accuratecastornull", "accuratecastordefault", "reinterpret"}
)
"""They make a value of the type that a text names; of an aggregate state's it would go to the engine's own decoder."""


class NotAllowed(Exception):
    """The statement is refused; the text names the part."""

    def __init__(self, part: str) -> None:
        super().__init__(part.encode("utf-8", "backslashreplace").decode())  # a name may hold any bytes


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the engine's parser says about a text."""

    tree: Mapping[str, Any]
    is_whole: bool
    """The tree printed again gives the text printed again."""


class Gate:
    """Judges texts; remembers its latest verdicts. May be used from several threads."""

    def __init__(
        self,
        parse: Callable[[str], Parsed],
        functions: Callable[[], frozenset[str]],
        formats: frozenset[str] = ALLOWED_FORMATS,
    ) -> None:
        """
        Args:
            parse: runs `TREE_QUERY`; its errors (syntax) pass through.
            functions: runs `FUNCTIONS_QUERY`, asked once: lower-case names.
            formats: names that a FORMAT clause may have, lower case; empty where the caller decides on the format.
        """
        self._parse = parse
        self._ask_functions = functions
        self._functions: frozenset[str] | None = None
        self._formats = formats
        self._allowed: OrderedDict[str, None] = OrderedDict()
        self._lock = Lock()

    def check(self, sql: str) -> None:
        """
        Return when a reader may run the text.

        Raises:
            NotAllowed: with the part that is at fault.
        """
        with self._lock:
            if sql in self._allowed:
                self._allowed.move_to_end(sql)
                return
            if self._functions is None:
                self._functions = self._ask_functions()
            functions = self._functions
        parsed = self._parse(sql)
        check_tree(parsed.tree, functions, self._formats)
        if not parsed.is_whole:
            raise NotAllowed("a clause that cannot be checked")
        with self._lock:
            self._allowed[sql] = None
            if len(self._allowed) > _CACHED:
                self._allowed.popitem(last=False)


def decode_answer(answer: bytes) -> Parsed:
    """
    Return what `TREE_QUERY` answered.

    Raises:
        NotAllowed: the tree is nested too deeply to be read.
    """
    try:
        # A text of the statement may hold any bytes ('\\xff'); no name on a list does.
        tree, is_whole = json.loads(answer.decode("utf-8", "surrogateescape"))
        return Parsed(json.loads(tree), bool(is_whole))
    except RecursionError:
        raise NotAllowed("a statement nested so deeply") from None


def decode_functions(answer: bytes) -> frozenset[str]:
    """Return what `FUNCTIONS_QUERY` answered."""
    return frozenset(str(json.loads(line)[0]).lower() for line in answer.splitlines())


def check_tree(tree: Mapping[str, Any], functions: frozenset[str], formats: frozenset[str]) -> None:
    """
    Return when the tree has nothing but allowed parts.

    Args:
        tree: of `parseQueryToJSON`.
        functions: all functions of the engine, lower case.
        formats: names that a FORMAT clause may have, lower case.

    Raises:
        NotAllowed: with the part that is at fault.
    """
    root = tree.get("type")
    if root not in _ROOTS:
        raise NotAllowed(NO_SELECT)
    named_queries = {str(node.get("name")) for _, node in _nodes(tree) if node.get("type") == "WithElement"}
    lambdas = {
        str(node["alias"]).lower()
        for _, node in _nodes(tree)
        if node.get("type") == "Function" and node.get("name") == "lambda" and "alias" in node
    }
    for place, node in _nodes(tree):
        for member, clause in _FORBIDDEN_MEMBERS.items():
            if node.get(member) not in (None, False, ""):
                raise NotAllowed(f"{clause} in the statement")
        kind = node.get("type")
        if kind is None:
            continue  # the value of a literal
        if place == "format_ast":
            name = str(node.get("name", ""))
            if kind != "Identifier" or name.lower() not in formats:
                raise NotAllowed(f"FORMAT {name}")
            continue
        if kind not in _ALLOWED_NODES:
            raise NotAllowed(f"{kind} in the statement")
        if kind == "Function":
            _check_function(str(node.get("name")), place, functions, lambdas)
            if str(node.get("name")).lower() in _NAMES_A_FUNCTION:
                _check_named_function(node)
            elif str(node.get("name")).lower() in _NAMES_A_TYPE:
                _check_named_type(node)
        elif kind == "TableIdentifier":
            _check_table(node, named_queries)
        elif kind == "Identifier":
            _check_identifier(node, functions)
        elif kind == "QueryParameter":
            if "identifier" in str(node.get("param_type", "")).lower():
                raise NotAllowed("a bound parameter of type Identifier")
            _check_type(str(node.get("param_type", "")))
        elif kind == "Literal":
            _check_literal(node)


def _check_function(name: str, place: str, functions: frozenset[str], lambdas: set[str]) -> None:
    if place == "table_function":
        if name.lower() not in ALLOWED_TABLE_FUNCTIONS:
            raise NotAllowed(f"table function {name}")
        return
    if is_allowed(name) or (name.lower() in lambdas and name.lower() not in functions):
        return
    raise NotAllowed(f"function {name}")


def _check_named_function(node: Mapping[str, Any]) -> None:
    arguments = node.get("arguments")
    first = arguments["children"][0] if isinstance(arguments, dict) and arguments.get("children") else {}
    value = first.get("value") if first.get("type") == "Literal" else None
    if not isinstance(value, dict) or value.get("field_type") != "String":
        raise NotAllowed(f"{node.get('name')} of a function whose name is no text")
    name = str(value.get("value")).partition("(")[0].strip()
    if not is_allowed(name):
        raise NotAllowed(f"function {name}")


def _check_named_type(node: Mapping[str, Any]) -> None:
    arguments = node.get("arguments")
    children = arguments.get("children") if isinstance(arguments, dict) else None
    second = children[1] if children and len(children) > 1 else {}
    value = second.get("value") if second.get("type") == "Literal" else None
    if not isinstance(value, dict) or value.get("field_type") != "String":
        raise NotAllowed(f"{node.get('name')} to a type whose name is no text")
    _check_type(str(value.get("value")))


def _check_type(text: str) -> None:
    if "\\" in text:  # a name in backquotes may be spelled in escapes
        raise NotAllowed("a type whose name has a backslash")
    if "AggregateFunction" in text.replace("SimpleAggregateFunction", ""):
        raise NotAllowed("a value of type AggregateFunction")


def _check_table(node: Mapping[str, Any], named_queries: set[str]) -> None:
    if node.get("children"):
        raise NotAllowed("a bound parameter as table name")
    name = str(node.get("name", ""))
    parts = [str(part) for part in node.get("name_parts") or [name]]
    if len(parts) == 1 and (parts[0] in named_queries or parts[0].isidentifier()):
        return  # a WITH query, or a view of the reader's own database
    if len(parts) == 2 and parts[0] == READ_DATABASE and parts[1].isidentifier():
        return
    if len(parts) == 2 and parts[0] == "system" and parts[1] in ALLOWED_SYSTEM_TABLES:
        return
    raise NotAllowed(f"table {'.'.join(parts)} (views of database {READ_DATABASE} only)")


def _check_identifier(node: Mapping[str, Any], functions: frozenset[str]) -> None:
    name = str(node.get("name", ""))
    if "name_parts" not in node and name.lower() in functions and not is_allowed(name):
        raise NotAllowed(f"function {name} by its bare name")


def _check_literal(node: Mapping[str, Any]) -> None:
    value = node.get("value")
    text = json.dumps(value) if isinstance(value, dict) else str(value)
    if "AggregateFunction" in text.replace("SimpleAggregateFunction", ""):
        raise NotAllowed("a value of type AggregateFunction")


def _nodes(tree: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every object of the tree with the name of the member that holds it."""
    stack: list[tuple[str, Any]] = [("", tree)]
    while stack:
        place, value = stack.pop()
        if isinstance(value, dict):
            yield place, value
            stack.extend((str(name), member) for name, member in value.items())
        elif isinstance(value, list):
            stack.extend((place, member) for member in value)
