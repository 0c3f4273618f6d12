"""
Read YAML text into a tree that remembers lines, and knows what the text said before any type was guessed.

YAML 1.1 guesses are a trap in configuration files: `off` becomes false, `010` becomes 8, `1:30` becomes 90, a
second key of the same name silently wins. Here a scalar keeps its text; `resolve` gives it a type by the rules of
YAML 1.2 only where the reader of a key asks for one, and a repeated key is a problem. JSON is YAML.

Environment: `${NAME}` and `$NAME` in a scalar are replaced by the variable, `$$` is a dollar sign. Replacement happens
in scalars after parsing, so a value can never add structure to the file. A variable that is not set is a problem where
the value is read: what has no effect here, such as a cache's address or the code of a policy, may name any.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from gnomon.config.errors import Problem

MAX_NODES = 200_000
"""More values than this, counted after aliases are followed, is no configuration but an attack or a mistake."""

_VARIABLE = re.compile(r"\$(?:\$|\{([^}]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_BRACED = re.compile(r"\$\$|\$\{([^}\n]*)\}")
_OPEN, _CLOSE = "\ue0b0", "\ue0b1"
"""Stand for the braces of `${NAME}` while the text is YAML: `{uri: ${NAME}}` is meant as it is written."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)\Z")
_PREFIXED = re.compile(r"[-+]?0(?:x[0-9A-Fa-f_]+|o[0-7_]+|b[01_]+)\Z")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9_]+\Z")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*)?\.?[0-9]+(?:[eE][-+]?[0-9]+)?\Z|[-+]?[0-9][0-9_]*\.(?:[eE][-+]?[0-9]+)?\Z")
_MERGE_TAG = "tag:yaml.org,2002:merge"


@dataclass(slots=True)
class Scalar:
    text: str
    path: str
    line: int
    is_plain: bool
    """Written without quotes, so its type is open."""
    from_environment: bool = False
    """A variable was put in, so its type is open even in quotes."""
    lacks: tuple[str, ...] = ()
    """What is wrong with its variables."""


@dataclass(slots=True)
class Sequence:
    path: str
    line: int
    items: "list[Node]" = field(default_factory=list)


@dataclass(slots=True)
class Table:
    path: str
    line: int
    items: "dict[str, Node]" = field(default_factory=dict)
    key_lines: dict[str, int] = field(default_factory=dict)


Node = Scalar | Sequence | Table

Resolved = str | int | float | bool | None


def resolve(scalar: Scalar) -> Resolved:
    """
    Return the typed value of a scalar: null, true/false, integers (also 0x, 0o, 0b), floats, else its text.

    Raises:
        ValueError: for an integer with a leading zero, which YAML 1.1 and 1.2 read differently.

    >>> resolve(Scalar("off", "", 1, True)), resolve(Scalar("0x10", "", 1, True)), resolve(Scalar("7", "", 1, False))
    ('off', 16, '7')
    """
    text = scalar.text
    if not (scalar.is_plain or scalar.from_environment):
        return text
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE"):
        return True
    if text in ("false", "False", "FALSE"):
        return False
    if _LEADING_ZERO.match(text):
        raise ValueError(
            f"{text} has a leading zero: YAML versions differ on it, write {text.lstrip('+-').lstrip('0_') or '0'}"
        )
    if len(text) < 64:
        if _INTEGER.match(text):
            return int(text.replace("_", ""))
        if _PREFIXED.match(text):
            return int(text.replace("_", ""), 0)
        if _FLOAT.match(text):
            return float(text.replace("_", ""))
    return text


def parse(text: str, environment: Mapping[str, str]) -> tuple[Table | None, list[Problem]]:
    """
    Return the file's top-level mapping and everything wrong with its form.

    Args:
        text: YAML or JSON.
        environment: where `${NAME}` is looked up.

    Returns:
        The tree, or None where the text is not YAML or not a mapping; and the problems found so far.
    """
    problems: list[Problem] = []
    if _OPEN not in text and _CLOSE not in text:
        text = _BRACED.sub(lambda m: m[0] if m[0] == "$$" else f"${_OPEN}{m[1]}{_CLOSE}", text)
    try:
        documents = list(_compose(text))
    except yaml.YAMLError as error:
        return None, [_syntax(error)]
    except RecursionError:
        return None, [Problem("", "nested too deeply")]
    if len(documents) > 1:
        problems.append(Problem("", "more than one YAML document in the file", documents[1].start_mark.line + 1))
    if not documents:
        return None, [Problem("", "the file is empty")]
    builder = _Builder(environment, problems)
    try:
        root = builder.build(documents[0], "")
    except _TooLarge:
        return None, [*problems, Problem("", f"more than {MAX_NODES} values once aliases are followed")]
    if not isinstance(root, Table):
        return None, [*problems, Problem("", "the file must be a mapping with the key `projects`", 1)]
    return root, problems


def _compose(text: str) -> Iterator[yaml.Node]:
    loader = yaml.SafeLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                yield node
    finally:
        loader.dispose()


def _syntax(error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    said = ", ".join(part for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part)
    line = mark.line + 1 if mark is not None else None
    return Problem("", f"not YAML: {said or str(error).splitlines()[0]}", line)


class _TooLarge(Exception):
    pass


class _Builder:
    """Turn PyYAML's nodes into ours: expand variables, follow merges, refuse repeated keys and endless aliases."""

    def __init__(self, environment: Mapping[str, str], problems: list[Problem]) -> None:
        self.environment = environment
        self.problems = problems
        self.count = 0
        self.open: set[int] = set()

    def build(self, node: yaml.Node, path: str) -> Node:
        self.count += 1
        if self.count > MAX_NODES:
            raise _TooLarge
        line = node.start_mark.line + 1
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path, line)
        if id(node) in self.open:
            self.problems.append(Problem(path, "an alias that contains itself", line))
            return Table(path, line)
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                items = [self.build(item, f"{path}[{index}]") for index, item in enumerate(node.value)]
                return Sequence(path, line, items)
            assert isinstance(node, yaml.MappingNode)
            return self.mapping(node, path, line)
        finally:
            self.open.discard(id(node))

    def mapping(self, node: yaml.MappingNode, path: str, line: int) -> Table:
        built = Table(path, line)
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            key_line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(Problem(path, "a key must be text", key_line))
                continue
            if key_node.tag == _MERGE_TAG and key_node.style is None:
                merged.extend(value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node])
                continue
            key = self.whole(_with_braces(key_node.value), path, key_line)
            here = join(path, key)
            if key in built.items:
                self.problems.append(Problem(here, f"given twice, first on line {built.key_lines[key]}", key_line))
                continue
            built.key_lines[key] = key_line
            built.items[key] = self.build(value_node, here)
        for source in merged:
            other = self.build(source, path)
            if not isinstance(other, Table):
                self.problems.append(Problem(path, "`<<` must name a mapping", line))
                continue
            for key, value in other.items.items():
                if key not in built.items:
                    built.items[key] = value
                    built.key_lines[key] = other.key_lines[key]
        return built

    def scalar(self, node: yaml.ScalarNode, path: str, line: int) -> Scalar:
        text, changed, lacks = self.expand(self.whole(_with_braces(node.value), path, line))
        return Scalar(text, path, line, is_plain=node.style is None, from_environment=changed, lacks=lacks)

    def whole(self, text: str, path: str, line: int) -> str:
        """Return the text with JSON's pairs of escapes (`\\ud83d\\ude00`) joined to the one character they mean."""
        if not _SURROGATE.search(text):
            return text
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            self.problems.append(Problem(path, "half of a character: a \\u escape without its pair", line))
            return _SURROGATE.sub("", text)

    def expand(self, text: str) -> tuple[str, bool, tuple[str, ...]]:
        """Return the text with variables put in, whether there were any, and what is wrong with them."""
        if "$" not in text:
            return text, False, ()
        changed = False
        lacks: list[str] = []

        def replace(match: re.Match[str]) -> str:
            nonlocal changed
            if match.group(0) == "$$":
                return "$"
            name = match.group(1) if match.group(1) is not None else match.group(2)
            if not _NAME.match(name):
                lacks.append(f"`${{{name}}}` is not the name of an environment variable")
                return ""
            value = self.environment.get(name)
            if value is None:
                lacks.append(f"environment variable {name} is not set")
                return ""
            changed = True
            return value

        return _VARIABLE.sub(replace, text), changed, tuple(lacks)


def _with_braces(text: str) -> str:
    return text.replace(f"${_OPEN}", "${").replace(_CLOSE, "}") if _OPEN in text else text


def join(path: str, key: str) -> str:
    """Return the path of a member: `a.b`, or `a["odd key"]` where the key is no plain word."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", key):
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def lines_by_path(root: Table) -> dict[str, int]:
    """Return the line on which each value is given; of a value under a key, the line of the key."""
    lines: dict[str, int] = {}

    def walk(node: Node) -> None:
        lines.setdefault(node.path, node.line)
        if isinstance(node, Table):
            for key, child in node.items.items():
                lines.setdefault(child.path, node.key_lines[key])
                walk(child)
        elif isinstance(node, Sequence):
            for child in node.items:
                walk(child)

    walk(root)
    return lines
