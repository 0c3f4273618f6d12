"""eRPC's matcher syntax, as far as it speaks of methods."""

import fnmatch
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gnomon.config.patterns import PatternError, alternatives, compiled, matches


@pytest.mark.parametrize(
    ("pattern", "method", "expected"),
    [
        ("arbtrace_call | eth_*", "eth_call", True),
        ("arbtrace_call|eth_*", "arbtrace_call", True),
        ("arbtrace_call | eth_*", "net_version", False),
        ("!alchemy_*", "eth_call", True),
        ("!alchemy_*", "alchemy_getAssetTransfers", False),
        ("!!eth_call", "eth_call", True),
        ("eth_* & !eth_send*", "eth_call", True),
        ("eth_* & !eth_send*", "eth_sendTransaction", False),
        ("eth_call | trace_* & !trace_filter", "eth_call", True),
        ("eth_call | trace_* & !trace_filter", "trace_filter", False),
        ("(eth_call | trace_*) & !trace_filter", "trace_filter", False),
        ("(eth_call | trace_*) & !trace_filter", "trace_block", True),
        ("!(eth_call | eth_getLogs)", "eth_getLogs", False),
        ("!(eth_call | eth_getLogs)", "eth_getCode", True),
        ("eth_get?ogs", "eth_getLogs", True),
        ("eth_get?ogs", "eth_getogs", False),
        ("condenser_api.*", "condenser_api.get_block", True),
        ("condenser_api.*", "condenser_apiXget_block", False),
        ("<empty>", "", True),
        ("<empty> | eth_call", "eth_call", True),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_signs_mean_what_erpc_says(pattern: str, method: str, expected: bool) -> None:
    """Not binds closer than and, and closer than or; a dot is a dot."""
    assert matches(pattern, method) is expected


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("|", "a name is missing before `|`"),
        ("eth_call |", "a name is missing at its end"),
        ("& eth_call", "a name is missing before `&`"),
        ("!", "a name is missing at its end"),
        ("(eth_call", "a `)` is missing"),
        ("eth_call)", "`)` is one too many"),
        ("()", "a name is missing before `)`"),
        (">=0x10", "no name of a method"),
        ("eth call", "no name of a method"),
        ("(" * 60 + "a" + ")" * 60, "nested too deeply"),
        ("!" * 5000 + "a", "nested too deeply"),
    ],
)
def test_what_is_no_pattern_says_why(pattern: str, said: str) -> None:
    """Nothing is guessed, and nothing but our error leaves."""
    with pytest.raises(PatternError) as caught:
        compiled(pattern)

    assert said in str(caught.value)


@given(st.text(alphabet="ab*?.", min_size=1, max_size=12), st.text(alphabet="ab.", max_size=12))
@example("a*a", "a")
@example("ab*b*bc", "abbc")
def test_wildcards_are_those_of_the_shell(pattern: str, method: str) -> None:
    """`*` and `?` mean what the standard library's matcher takes them for."""
    assert matches(pattern, method) == fnmatch.fnmatchcase(method, pattern)


@given(st.text(alphabet="ab|&!()*<> ", max_size=20))
def test_any_text_is_a_pattern_or_an_error(pattern: str) -> None:
    """No text ends in another exception."""
    try:
        compiled(pattern)("ab")
    except PatternError:
        return


def test_no_pattern_takes_long() -> None:
    """Many stars over a long name take steps, not time without end."""
    started = time.monotonic()

    assert not matches("*a" * 60 + "b", "a" * 4000)
    assert time.monotonic() - started < 2


def test_a_plain_or_is_taken_apart() -> None:
    """So that each method group has a breaker of its own; what is more than a plain or stays whole."""
    assert alternatives("eth_call | trace_*") == ["eth_call", "trace_*"]
    assert alternatives("eth_* & !(eth_call | eth_getLogs)") == ["eth_* & !(eth_call | eth_getLogs)"]
