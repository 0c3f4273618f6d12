"""Any text is settings or our one named error: never another exception, never silence about a wrong value."""

import contextlib
import json
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from gnomon.config.errors import ConfigError
from gnomon.config.keys import SECTIONS
from gnomon.config.load import loads
from tests.config.test_load import ENVIRONMENT, FIXTURES

TEAM = yaml.safe_load((FIXTURES / "team.yaml").read_text("utf-8"))
KEYS = sorted({key.name for section in SECTIONS.values() for key in section.keys})

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["5s", "-1ms", "0", "on", "evm:1", "http://h", "alchemy://k", "$X", "${", "1MiB", "*", "tier:fallback"]
    ),
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key or index) of a document."""
    found: list[tuple[Any, Any]] = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        found.append((value, key))
        found += places(inner)
    return found


def load_or_refuse(text: str, *, allow_insecure: bool) -> None:
    with contextlib.suppress(ConfigError):
        loads(text, environment=ENVIRONMENT, allow_insecure=allow_insecure)


@given(st.text(max_size=80), st.booleans())
def test_any_text(text: str, allow_insecure: bool) -> None:
    """Noise."""
    load_or_refuse(text, allow_insecure=allow_insecure)


@given(ANYTHING, st.booleans())
def test_any_document(document: object, allow_insecure: bool) -> None:
    """Known keys at wrong places with wrong values."""
    load_or_refuse(json.dumps(document), allow_insecure=allow_insecure)


@given(st.data())
def test_a_good_file_with_any_value_anywhere(data: st.DataObject) -> None:
    """A whole configuration with up to three of its values replaced by anything."""
    document = json.loads(json.dumps(TEAM))
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(range(len(places(document)))).map(lambda i: places(document)[i]))
        container[key] = data.draw(ANYTHING)
    load_or_refuse(json.dumps(document), allow_insecure=data.draw(st.booleans()))
