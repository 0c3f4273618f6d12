import json
from typing import Any

import msgspec
import pytest

from gnomon.compare import masks, tolerances
from gnomon.compare.judge import MAX_DIFFERENCES, MAX_FRAGMENT_BYTES, Answer, Policy, Question, Verdict, judge
from tests.compare.values import ADDRESS, HASH, OTHER_HASH, block, log, receipt

HEAD = {"latest": 100, "finalized": 90}
REVERT = {"code": 3, "message": "execution reverted", "data": "0x08c379a0"}
LIMITED = {"code": -32005, "message": "rate limit exceeded"}
NO_HEADER = {"code": -32000, "message": "header not found"}


def result(value: Any) -> Answer:
    """Return an answer with a result."""
    return Answer(kind="result", fragment=json.dumps(value).encode())


def error(value: Any) -> Answer:
    """Return an answer with an error."""
    return Answer(kind="error", fragment=json.dumps(value).encode())


def _judge(
    method: str, params: list[Any], primary: Answer, shadow: Answer, *ignored: str, tolerate: str = "", **known: Any
) -> Verdict:
    return judge(
        Question(network="evm:1", method=method, params=params, **{**HEAD, **known}),
        primary,
        shadow,
        Policy(masks=masks.compile(ignored), tolerate=tolerances.compile(tolerate.split())),
    )


@pytest.mark.parametrize(
    ("method", "params", "primary", "shadow", "outcome", "class_", "finality", "paths"),
    [
        # equal
        ("eth_getBalance", [ADDRESS, "0x5a"], result("0x1"), result("0x1"), "identical", "none", "finalized", []),
        ("eth_syncing", [], result(False), result(False), "identical", "none", "realtime", []),
        ("eth_call", [{}, "0x5a"], error(REVERT), error(REVERT), "identical", "none", "finalized", []),
        ("eth_call", [{}, "0x5a"], error(LIMITED), error(LIMITED), "incomparable", "none", "finalized", []),
        # empty
        ("eth_call", [{}, "0x5a"], result("0x"), result(None), "identical", "none", "finalized", []),
        (
            "eth_getLogs",
            [{"fromBlock": "0x1", "toBlock": "0x2"}],
            result([]),
            result({}),
            "identical",
            "none",
            "finalized",
            [],
        ),
        ("eth_call", [{}, "0x5a"], result("0x"), result("0x0"), "mismatch", "hex_padding", "finalized", ["$.result"]),
        (
            "eth_getBalance",
            [ADDRESS, "0x5a"],
            result("0x0"),
            result(None),
            "mismatch",
            "empty_vs_data",
            "finalized",
            ["$.result"],
        ),
        (
            "eth_getBlockByNumber",
            ["0x5a", False],
            result([None]),
            result([]),
            "mismatch",
            "empty_vs_data",
            "finalized",
            ["$.result"],
        ),
        # refusals
        (
            "eth_call",
            [{}, "0x5a"],
            result("0x1"),
            error(LIMITED),
            "error",
            "error_vs_result",
            "finalized",
            ["$.error", "$.result"],
        ),
        (
            "eth_blockNumber",
            [],
            error(LIMITED),
            result("0x1"),
            "error",
            "error_vs_result",
            "realtime",
            ["$.error", "$.result"],
        ),
        (
            "eth_call",
            [{}, "0x5a"],
            error(REVERT),
            error(LIMITED),
            "error",
            "error_code",
            "finalized",
            ["$.error.code", "$.error.message", "$.error.data"],
        ),
        (
            "eth_call",
            [{}, "0x5a"],
            error(NO_HEADER),
            error(LIMITED),
            "incomparable",
            "error_code",
            "finalized",
            ["$.error.code", "$.error.message"],
        ),
        # verdicts
        (
            "eth_call",
            [{}, "0x5a"],
            result("0x1"),
            error(REVERT),
            "mismatch",
            "error_vs_result",
            "finalized",
            ["$.error", "$.result"],
        ),
        (
            "eth_call",
            [{}, "0x5a"],
            error(REVERT),
            error(REVERT | {"code": -32000}),
            "mismatch",
            "error_code",
            "finalized",
            ["$.error.code"],
        ),
        (
            "eth_call",
            [{}, "0x5a"],
            error(REVERT),
            error(REVERT | {"data": "0x4e487b71"}),
            "mismatch",
            "value",
            "finalized",
            ["$.error.data"],
        ),
        (
            "eth_call",
            [{}, "0x5a"],
            error("reverted"),
            error("revert"),
            "mismatch",
            "error_message",
            "finalized",
            ["$.error"],
        ),
        # no right answer
        ("web3_clientVersion", [], result("Geth"), result("Besu"), "incomparable", "value", "unknown", ["$.result"]),
        ("eth_gasPrice", [], result("0x1"), result("0x2"), "incomparable", "value", "realtime", ["$.result"]),
        ("eth_blockNumber", [], result("0x64"), result("0x65"), "incomparable", "stale_head", "realtime", ["$.result"]),
        (
            "eth_getTransactionCount",
            [ADDRESS, "pending"],
            result("0x1"),
            result("0x2"),
            "incomparable",
            "value",
            "realtime",
            ["$.result"],
        ),
        (
            "eth_getTransactionCount",
            [ADDRESS, "latest"],
            result("0x1"),
            result("0x2"),
            "mismatch",
            "value",
            "realtime",
            ["$.result"],
        ),
        (
            "eth_getBlockByNumber",
            ["latest", False],
            result(block()),
            result(block(number="0x65")),
            "incomparable",
            "stale_head",
            "realtime",
            ["$.result.number"],
        ),
        (
            "eth_getBlockByNumber",
            ["latest", False],
            result(block()),
            result(block(size="0x1")),
            "mismatch",
            "value",
            "realtime",
            ["$.result.size"],
        ),
        # readings
        (
            "eth_getBlockByNumber",
            ["0x64", False],
            result(block()),
            result(None),
            "mismatch",
            "stale_head",
            "unfinalized",
            ["$.result"],
        ),
        (
            "eth_getBlockByNumber",
            ["0x5a", False],
            result(block()),
            result(None),
            "mismatch",
            "empty_vs_data",
            "finalized",
            ["$.result"],
        ),
        (
            "eth_getTransactionReceipt",
            [HASH],
            result(None),
            result(receipt(0)),
            "mismatch",
            "stale_head",
            "unfinalized",
            ["$.result"],
        ),
        (
            "eth_getLogs",
            [{"fromBlock": "0x50", "toBlock": "0x64"}],
            result([log(0)]),
            result([]),
            "mismatch",
            "stale_head",
            "unfinalized",
            ["$.result"],
        ),
        (
            "eth_getLogs",
            [{"fromBlock": "0x50", "toBlock": "0x64"}],
            result([log(0), log(1)]),
            result([log(0)]),
            "mismatch",
            "array_length",
            "unfinalized",
            ["$.result"],
        ),
        (
            "eth_getBlockByNumber",
            ["0x5a", False],
            result(block()),
            result(block(hash=OTHER_HASH)),
            "mismatch",
            "reorg_block_hash",
            "finalized",
            ["$.result.hash"],
        ),
        # finality
        (
            "eth_getTransactionReceipt",
            [HASH],
            result(receipt(0)),
            result(receipt(0, status="0x0")),
            "mismatch",
            "value",
            "unfinalized",
            ["$.result.status"],
        ),
        (
            "eth_getBlockByNumber",
            ["0x0", False],
            result(block()),
            result(block(size="0x1")),
            "mismatch",
            "value",
            "finalized",
            ["$.result.size"],
        ),
        ("nobody_knowsThis", ["0x1"], result(1), result(2), "mismatch", "value", "unknown", ["$.result"]),
    ],
)
def test_the_verdict_follows_the_rules(
    method: str,
    params: list[Any],
    primary: Answer,
    shadow: Answer,
    outcome: str,
    class_: str,
    finality: str,
    paths: list[str],
) -> None:
    """Each rule of the comparison with a pair that turns on it."""
    verdict = _judge(method, params, primary, shadow)

    assert (verdict.outcome, verdict.class_, verdict.finality) == (outcome, class_, finality)
    assert sorted(verdict.paths) == sorted(paths)
    assert sum(finding.n_paths for finding in verdict.findings) == len(verdict.paths)


@pytest.mark.parametrize(
    ("tag", "heads", "outcome"),
    [
        ("latest", (100, 101), "incomparable"),
        ("latest", (100, 100), "mismatch"),
        ("latest", (100, None), "mismatch"),
        ("latest", (None, None), "mismatch"),
        ("finalized", (100, 101), "incomparable"),
        ("earliest", (100, 101), "mismatch"),
        ("0x5a", (100, 101), "mismatch"),
        (None, (100, 101), "incomparable"),
    ],
)
def test_at_a_moving_tag_different_heads_make_it_incomparable(
    tag: str | None, heads: tuple[int | None, int | None], outcome: str
) -> None:
    """Only where both heads are known; a left-out block moves too, `earliest` and numbers do not."""
    params = [ADDRESS] if tag is None else [ADDRESS, tag]
    verdict = _judge(
        "eth_getBalance", params, result("0x1"), result("0x2"), primary_head=heads[0], shadow_head=heads[1]
    )

    assert verdict.outcome == outcome
    assert (verdict.class_ == "stale_head") == (outcome == "incomparable")


def test_a_masked_difference_is_told_apart_from_an_equal_answer() -> None:
    """`identical_masked` with a count where masks were needed, `identical` where not, `mismatch` past them."""
    params = ["0x5a", True]
    base, masked = result(block()), result(block(size="0x1"))
    other = result(block(size="0x1", gasUsed="0x1"))
    needed = _judge("eth_getBlockByNumber", params, base, masked, "size")
    reordered = result(dict(reversed(block().items())))

    assert (needed.outcome, needed.class_, needed.n_masked, needed.paths) == ("identical_masked", "none", 2, ())
    assert _judge("eth_getBlockByNumber", params, base, reordered, "size").outcome == "identical"
    assert _judge("eth_getBlockByNumber", params, base, other, "size").paths == ("$.result.gasUsed",)


def test_masks_do_not_touch_errors_and_cannot_make_data_empty() -> None:
    """An error's message stays; a result masked down to nothing is not the same as null."""
    other = error(REVERT | {"message": "execution reverted: b"})
    assert _judge("eth_call", [{}, "0x5a"], error(REVERT), other, "message", "error.message").outcome == "mismatch"
    assert _judge("eth_getBlockByNumber", ["0x5a"], result({"a": 1}), result(None), "*").outcome == "mismatch"


@pytest.mark.parametrize(
    ("tolerate", "outcome"),
    [
        ("hex_padding null_vs_absent", "tolerated"),
        ("hex_padding", "mismatch"),
        ("", "mismatch"),
        ("value type", "mismatch"),
    ],
)
def test_a_tolerance_forgives_a_kind_and_keeps_its_name(tolerate: str, outcome: str) -> None:
    """All differences must be of tolerated kinds; class and paths stay."""
    a, b = {"q": "0x1", "n": None}, {"q": "0x01"}
    verdict = _judge("eth_call", [{}, "0x5a"], result(a), result(b), tolerate=tolerate)

    assert (verdict.outcome, verdict.class_) == (outcome, "hex_padding")
    assert verdict.classes == ("hex_padding", "null_vs_absent")
    assert set(verdict.paths) == {"$.result.q", "$.result.n"}


@pytest.mark.parametrize(
    ("primary", "shadow", "outcome"),
    [
        (result(1), Answer(), "missing"),
        (error(REVERT), Answer(), "missing"),
        (Answer(), Answer(), "missing"),
        (Answer(), result(1), "error"),
        (Answer(), error(REVERT), "error"),
        (Answer(), error(LIMITED), "incomparable"),
    ],
)
def test_no_json_rpc_answer_is_told_apart(primary: Answer, shadow: Answer, outcome: str) -> None:
    """From the shadow: missing. From the primary: nothing to compare the shadow's answer with."""

    assert _judge("eth_call", [{}, "0x5a"], primary, shadow).outcome == outcome


def test_equal_digests_stand_for_equal_bytes() -> None:
    """Without any body; of two equal errors the class that is known decides."""
    equal = Answer(kind="result", is_equal=True)
    refused = Answer(kind="error", is_equal=True, error_class="rate_limited")
    reverted = Answer(kind="error", is_equal=True, error_class="revert")

    assert _judge("eth_call", [{}, "0x5a"], equal, equal).outcome == "identical"
    assert _judge("eth_call", [{}, "0x5a"], refused, refused).outcome == "incomparable"
    assert _judge("eth_call", [{}, "0x5a"], reverted, reverted).outcome == "identical"


def test_the_block_of_an_answer_may_be_known_already() -> None:
    """Finality needs no body then."""
    equal = Answer(kind="result", is_equal=True, response_block=90)

    assert _judge("eth_getTransactionReceipt", [HASH], equal, equal).finality == "finalized"


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (b"", b"1", "no_body"),
        (b"{", b"1", "parse"),
        (b"[" * 50_000 + b"]" * 50_000, b"1", "too_deep"),
        (b'"' + b"a" * MAX_FRAGMENT_BYTES + b'"', b"1", "too_large"),
    ],
)
def test_a_limit_or_an_unreadable_text_is_undecided(a: bytes, b: bytes, reason: str) -> None:
    """Never an error, never a guess; the reason is kept."""
    for pair in ((a, b), (b, a)):
        primary, shadow = (Answer(kind="result", fragment=text) for text in pair)
        verdict = _judge("eth_call", [{}, "0x5a"], primary, shadow)

        assert (verdict.outcome, verdict.class_, verdict.reason) == ("undecided", "none", reason)


def test_equal_bytes_are_identical_whatever_they_are() -> None:
    """They are not read, so depth, size and syntax do not matter."""
    for text in (b"{", b"[" * 50_000, b"\xff", b'"' + b"a" * (MAX_FRAGMENT_BYTES + 1) + b'"'):
        answer = Answer(kind="result", fragment=text)

        assert _judge("eth_call", [{}, "0x5a"], answer, answer).outcome == "identical"


def test_too_many_differences_are_a_mismatch_unless_all_seen_are_tolerated() -> None:
    """Past the limit nothing is claimed that was not looked at."""
    a, b = result(["0x1"] * (MAX_DIFFERENCES + 1)), result(["0x01"] * (MAX_DIFFERENCES + 1))
    plain = _judge("eth_call", [{}, "0x5a"], a, b)
    tolerant = _judge("eth_call", [{}, "0x5a"], a, b, tolerate="hex_padding")

    assert (plain.outcome, len(plain.paths)) == ("mismatch", MAX_DIFFERENCES)
    assert (tolerant.outcome, tolerant.reason) == ("undecided", "too_many")


def test_flags_speak_of_the_shadow() -> None:
    """Empty and longer, as the metrics name them."""
    empty = _judge("eth_getBlockByNumber", ["0x5a"], result(block()), result(None))
    longer = _judge("eth_call", [{}, "0x5a"], result("0x1"), result("0x22"))

    assert (empty.is_emptyish, empty.is_larger) == (True, False)
    assert (longer.is_emptyish, longer.is_larger) == (False, True)


def test_any_buffer_holds_an_answer() -> None:
    """bytes, views and raw JSON are the same."""
    text = b'{"a":1}'
    for fragment in (text, memoryview(text), bytearray(text), msgspec.Raw(text)):
        answer = Answer(kind="result", fragment=fragment)

        assert _judge("eth_call", [{}, "0x5a"], answer, result({"a": 1})).outcome == "identical"
