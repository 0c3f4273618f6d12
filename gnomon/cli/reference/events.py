"""Every event with its members, from `gnomon.events.contract`: types from the classes, texts from beside the fields."""

import ast
import inspect
import typing
from typing import Any, Final, Literal

import msgspec

from gnomon.cli.reference.markdown import code, table, unit
from gnomon.events import contract, topics

EVENTS: Final = typing.get_args(contract.AnyEvent)
PARTS: Final = (contract.Attempt, contract.Answer, contract.Heads, contract.Head)
"""Structures that events carry."""

_HEAD = """\
# Events

What the proxy says of every request, and what every consumer reads. The list is `gnomon/events/contract.py`.

An event is one JSON object. It lies in the proxy's log and, in a cluster, on a Kafka topic. Members at their default
are left out. Unknown members are ignored by readers. `type` says which event it is.

* Times `at` are nanoseconds since 1970, UTC, by the proxy's clock. Durations are microseconds, by a clock that never
  goes back.
* A number that is not known is absent. A word that is not known is empty.
* `event_id` is `proc:seq`. `proc` names the worker process (16 hex digits), `seq` counts its events from 0
  without a gap. A gap is a loss; the same id twice is one event.
* Bodies are raw JSON, byte for byte. What is no JSON is in base64 (`body_base64`).

"""


def render() -> str:
    """Return the page."""
    lines = [_HEAD, "## Topics and keys", "", *_topics(), ""]
    lines += ["## Members of every event", "", _doc(contract.Event), "", *_members(contract.Event, ()), ""]
    common = tuple(field.name for field in msgspec.structs.fields(contract.Event))
    for one in EVENTS:
        tag = one.__struct_config__.tag
        lines += [f"## {tag}", "", _doc(one), "", *_members(one, common), ""]
    for part in PARTS:
        lines += [f"## Part {part.__name__}", "", _doc(part), "", *_members(part, ()), ""]
    lines += ["## Closed vocabularies", "", "An unknown value is a fault, not an extension.", ""]
    for name, values in vocabularies().items():
        lines.append(f"* `{name}`: {', '.join(code(value) if value else 'empty' for value in values)}")
    return "\n".join([*lines, ""])


def vocabularies() -> dict[str, tuple[str, ...]]:
    """Return the closed lists of words by their name."""
    return {
        name: typing.get_args(value) for name, value in vars(contract).items() if typing.get_origin(value) is Literal
    }


def meanings(structure: type[msgspec.Struct]) -> dict[str, str]:
    """Return field → the text beside it; fields without one are left out."""
    (tree,) = ast.parse(inspect.getsource(structure)).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            found[field.target.id] = " ".join(below.value.value.split())
    return found


def _doc(structure: type) -> str:
    return " ".join((structure.__doc__ or "").split())


def _members(structure: type[msgspec.Struct], without: tuple[str, ...]) -> list[str]:
    texts = meanings(structure)
    rows = []
    for field in msgspec.structs.fields(structure):
        if field.name in without:
            continue
        measure = "ns" if field.name == "at" else unit(field.name)
        rows.append([code(field.encode_name), _type(field.type), _default(field), measure, texts.get(field.name, "")])
    return table(["member", "type", "default", "unit", "meaning"], rows)


def _type(kind: Any) -> str:
    """
    Return a type as the page names it.

    >>> _type(int | None), _type(tuple[str, ...]), _type(dict[str, int])
    ('integer', 'list of text', 'map of text to integer')
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return next(code(name) for name, values in vocabularies().items() if values == arguments)
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"map of {_type(arguments[0])} to {_type(arguments[1])}"
    if arguments:
        return _type(next(one for one in arguments if one is not type(None)))
    words = {str: "text", int: "integer", bool: "yes or no", msgspec.Raw: "JSON"}
    return words.get(kind) or f"[{kind.__name__}](#part-{kind.__name__.lower()})"


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "always there"
    value = field.default if field.default is not msgspec.NODEFAULT else None
    if isinstance(value, bool):
        return "no" if not value else "yes"
    return (
        code(str(value)) if isinstance(value, str | int) and value not in ("", 0) else str(value) if value == 0 else ""
    )


def _topics() -> list[str]:
    keys = {
        topics.RESPONSES: "request id",
        topics.ATTEMPTS: "upstream",
        topics.HEADS: "network",
        topics.BREAKERS: "upstream",
    }
    rows = [
        [code(name), keys[name], ", ".join(f"[{tag}](#{tag})" for tag in tags)] for name, tags in by_topic().items()
    ]
    return [
        *table(["topic", "key", "events"], rows),
        "",
        f"Events with the same key keep their order. What could not be read goes to `{topics.DEAD_LETTERS}`.",
        f"`{topics.COMPARISONS}` and `{topics.ALERTS}` are made and not written to yet.",
        "`gnomon.events.kafka.topicPrefix` stands before each name.",
    ]


def by_topic() -> dict[str, list[str]]:
    """Return topic → types of events on it, as `gnomon.events.topics` sends them."""
    found: dict[str, list[str]] = {}
    for one in EVENTS:
        found.setdefault(topics.topic(_specimen(one)), []).append(one.__struct_config__.tag)
    return found


def _specimen(kind: type[msgspec.Struct]) -> Any:
    """Return an event of a type with nothing in it but what must be there."""
    values = {str: "", int: 0, contract.Attempt: contract.Attempt(upstream="")}
    given = {}
    for field in msgspec.structs.fields(kind):
        if field.required:
            given[field.name] = values.get(field.type, "")
    return kind(**given)
