import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.events.contract import ErrorClass
from gnomon.rpc.error_texts import TEXTS
from gnomon.rpc.errors import VERDICTS, classify, classify_status, fingerprint

REVERT_DATA = "0x08c379a0" + "0" * 62 + "20"


@pytest.mark.parametrize(
    ("code", "message", "data", "expected"),
    [
        (3, "execution reverted", None, "revert"),
        (3, "execution reverted: rate limit exceeded", None, "revert"),
        (3, "too many results", "0x", "revert"),
        (3, "block not found", REVERT_DATA, "revert"),
        (3, "EVM error: OutOfGas", None, "halt"),
        (-32000, "execution reverted: monthly quota exceeded", None, "revert"),
        (-32000, "anything at all", REVERT_DATA, "revert"),
        (-32000, "daily limit", "0x4e487b71" + "0" * 63 + "1", "revert"),
        (-32005, "limit exceeded", REVERT_DATA, "revert"),
        (-32603, "Internal JSON-RPC error.", {"message": "x", "data": REVERT_DATA}, "revert"),
        (-32603, "VM Exception while processing transaction: reverted with reason string 'a'", None, "revert"),
        (-32000, "VM Exception while processing transaction: revert", {"0xab": {"error": "revert"}}, "revert"),
        (-32015, "VM execution error.", "Reverted 0x", "revert"),
        (-32015, "VM execution error.", None, "halt"),
        (-32000, "reverted by a custom error", "0x12345678", "revert"),
        (-32000, "out of gas", None, "halt"),
        (-32000, "stack underflow (0 <=> 2)", None, "halt"),
        (-32000, "insufficient funds for gas * price + value", None, "halt"),
        (-32003, "transaction rejected", None, "halt"),
        (-32003, "response too large", None, "range_limit"),
        (-32000, "nonce too low: next nonce 5, tx nonce 4", None, "nonce"),
        (-32000, "already known", None, "nonce"),
        (-32010, "AlreadyKnown", None, "nonce"),
        (-38011, "x", None, "nonce"),
        (-32602, "invalid argument 0: hex string without 0x prefix", None, "invalid_params"),
        (-32602, "invalid block range params", None, "invalid_params"),
        (-32602, "rate limit exceeded", None, "invalid_params"),
        (-32602, "query exceeds max results 20000", None, "range_limit"),
        (-32602, "Log response size exceeded. You can make requests with up to a 2K range", None, "range_limit"),
        (-32602, "block range extends beyond current head block", None, "unknown_block"),
        (-32600, "Under the Free tier plan, make requests with up to a 10 block range", None, "range_limit"),
        (-32600, "Must be authenticated!", None, "unauthorized"),
        (-32600, "Invalid Request", None, "invalid_params"),
        (-32601, "the method debug_x does not exist/is not available", None, "method_not_found"),
        (-32601, "rate limit exceeded", None, "method_not_found"),
        (-32004, "Method not supported", None, "method_not_found"),
        (-32000, "the method trace_block does not exist/is not available", None, "method_not_found"),
        (-32005, "rate limit exceeded", None, "rate_limited"),
        (-32005, "query returned more than 10000 results", None, "range_limit"),
        (-32005, "daily request count exceeded, request rate limited", None, "rate_limited"),
        (-32005, "Monthly capacity limit exceeded. Visit the billing page", None, "quota"),
        (429, "Your app has exceeded its compute units per second capacity", None, "rate_limited"),
        (-32007, "15/second request limit reached", None, "rate_limited"),
        (-32016, "over rate limit", None, "rate_limited"),
        (-32012, "x", None, "range_limit"),
        (-32000, "missing trie node 992eac (path )", None, "missing_data"),
        (-32603, "Internal error", "Nethermind.Trie.MissingTrieNodeException: Node A", "missing_data"),
        (-32000, "required historical state unavailable (reexec=128)", None, "missing_data"),
        (4444, "pruned history unavailable", None, "missing_data"),
        (-32000, "header not found", None, "unknown_block"),
        (-32001, "block not found: 0x5", None, "unknown_block"),
        (-32603, "hash 6aeb0ed4da019c8943739db7 is not currently canonical", None, "unknown_block"),
        (-32002, "No response or no available upstream for eth_getBlockByNumber", None, "no_upstream"),
        (-32002, "request timed out", None, "timeout"),
        (-32000, "execution timeout", None, "timeout"),
        (-32603, "Internal error", None, "internal"),
        (-32000, "", None, "internal"),
        (-32001, "Nonce too low", None, "nonce"),
        (-32006, "Nonce too high", None, "nonce"),
        (-32004, "Upfront cost exceeds account balance", None, "halt"),
        (-32005, "Transaction gas limit exceeds block gas limit", None, "halt"),
        (-32009, "Gas price below configured minimum gas price", None, "halt"),
        (-32016, "The execution failed due to an exception.", "Out of gas", "halt"),
        (11, "message execution failed (exit=[33], revert reason=[Error(abc)])", None, "revert"),
        (-32603, "CONTRACT_REVERT_EXECUTED", None, "revert"),
        (-32000, "invalid reward percentile: #1:90.0 >= #2:50.0", None, "invalid_params"),
        (-32010, "backend offline", None, "no_upstream"),
        (-32600, "batch requests are disabled", None, "method_not_found"),
        (-32000, "requested height 200 must be less than or equal to the height 100", None, "unknown_block"),
        (-32602, "invalid height: cannot query with height in the future", None, "unknown_block"),
        (12345, "who knows", None, "internal"),
        (None, "who knows", None, "internal"),
    ],
)  # fmt: skip
def test_an_error_is_classed_by_code_and_structure_before_text(
    code: int | None, message: str, data: object, expected: str
) -> None:
    """The wordings and codes of real nodes and providers; a contract's own text never makes a service error."""
    verdict = classify(code, message, data, 200, "eth_getLogs" if "range" in expected else "eth_call")

    assert expected == verdict.error_class
    assert (expected in VERDICTS) == verdict.is_verdict == (not verdict.is_no_answer)


@pytest.mark.parametrize(
    ("status", "code", "message", "expected"),
    [
        (429, -32000, "slow", "rate_limited"),
        (429, -32000, "monthly quota used up", "quota"),
        (402, -32000, "anything", "quota"),
        (401, -32000, "anything", "unauthorized"),
        (429, 3, "execution reverted", "revert"),
        (500, -32000, "execution reverted", "revert"),
        (429, -32000, "execution reverted", "revert"),
        (502, -32602, "invalid argument", "invalid_params"),
        (500, -32603, "boom", "internal"),
    ],
)
def test_a_whole_answer_counts_as_what_it_is_under_any_status(
    status: int, code: int, message: str, expected: str
) -> None:
    """The HTTP status speaks only where the code says nothing."""

    assert expected == classify(code, message, None, status, "eth_call").error_class


def test_a_limit_on_ranges_is_no_verdict_only_for_methods_over_ranges() -> None:
    """Under "invalid params" the same words are a limit for logs and a wrong parameter for a balance."""
    message = "block range too large"

    assert classify(-32602, message, None, 200, "eth_getLogs").error_class == "range_limit"
    assert classify(-32602, message, None, 200, "eth_getBalance").error_class == "invalid_params"


def test_a_sender_limit_of_the_sequencer_is_not_tried_elsewhere() -> None:
    """Whoever forwards the transaction, the sequencer counts the sender."""
    verdict = classify(-32005, "sender is over rate limit", None, 200, "eth_sendRawTransaction")

    assert (verdict.error_class, verdict.try_elsewhere) == ("rate_limited", False)


@given(st.none() | st.integers(-40000, 1000), st.text(), st.recursive(
    st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=4), inner)
))  # fmt: skip
def test_any_error_has_a_class_of_the_vocabulary(code: int | None, message: str, data: object) -> None:
    """No code, text or data is without a class, and it is a verdict or no answer, never both."""
    verdict = classify(code, message, data)

    assert verdict.error_class in typing.get_args(ErrorClass)
    assert verdict.is_verdict != verdict.is_no_answer


def test_classes_of_texts_are_listed_once() -> None:
    """A code's narrowing finds exactly one pattern for a class."""

    assert len(TEXTS) == len({error_class for _, error_class in TEXTS})


@pytest.mark.parametrize(
    ("status", "expected"),
    [(200, "parse"), (204, "parse"), (301, "status"), (400, "status"), (401, "unauthorized"), (402, "quota"),
     (403, "unauthorized"), (404, "status"), (429, "rate_limited"), (500, "status"), (502, "status")],
)  # fmt: skip
def test_an_answer_that_is_no_json_rpc_is_classed_by_its_status(status: int, expected: str) -> None:
    """An HTML page with status 200 is a parse failure."""

    assert expected == classify_status(status)


def test_a_fingerprint_is_free_of_what_varies() -> None:
    """Two errors that differ in hashes and numbers only have one name."""
    one = fingerprint(-32000, "missing trie node 992eacd1f3b44a51b91065 (path ) at block 0x12")
    two = fingerprint(-32000, "missing trie node 112eacd1f3b44a51b91066 (path ) at block 0x13")

    assert one == two == "-32000:missing trie node # (path ) at block #"
