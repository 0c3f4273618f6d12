"""hypothesis strategies for any event that the contract allows."""

import json
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from gnomon.events.contract import NO_BODY, VERSION, AnyEvent

_TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def fragments(draw: st.DrawFn) -> msgspec.Raw:
    """Return one JSON value as some writer may have spelt it: white space and escapes vary. Or none at all."""
    if draw(st.booleans()):
        return NO_BODY
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: ")]))
    text = json.dumps(draw(_JSON), separators=separators, ensure_ascii=draw(st.booleans()))
    return msgspec.Raw(text.encode("utf-8", "surrogatepass"))


def _of_type(wanted: Any) -> st.SearchStrategy[Any]:
    arguments = get_args(wanted)
    origin = get_origin(wanted)
    if wanted is msgspec.Raw:
        return fragments()
    if wanted is type(None):
        return st.none()
    if wanted is bool:
        return st.booleans()
    if wanted is int:
        return st.integers(-(2**63), 2**63 - 1)
    if wanted is str:
        return _TEXTS
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (types.UnionType, Union):
        return st.one_of([_of_type(argument) for argument in arguments])
    if origin is tuple:
        return st.lists(_of_type(arguments[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(_of_type(arguments[0]), _of_type(arguments[1]), max_size=3)
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return _of_struct(wanted)
    raise NotImplementedError(f"the contract has a type that tests cannot make: {wanted!r}")


def _of_struct(struct: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(struct)
    return st.builds(
        struct,
        **{
            field.name: st.just(VERSION) if field.name == "v" else _of_type(hints[field.name])
            for field in msgspec.structs.fields(struct)
        },
    )


def events() -> st.SearchStrategy[AnyEvent]:
    """Return any event of the present version."""
    return st.one_of([_of_struct(event) for event in get_args(AnyEvent)])
