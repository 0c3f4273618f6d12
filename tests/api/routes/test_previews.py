"""A pair judged again with rules that are given: a stored one, or two answers of the request."""

import json
from typing import Any

import pytest

from gnomon.compare.cases import judge_case, read_case
from tests.api.calling import Api, FakeReader
from tests.api.world import DAY
from tests.ingest.events import NETWORK

PATH = "/v1/compare/preview"
RANGE = {"from": DAY["from_"], "to": DAY["to"]}
PAIR = {
    "network": "evm:1",
    "method": "eth_getTransactionReceipt",
    "params": ["0x" + "1" * 64],
    "head": {"latest": 200, "finalized": 150},
    "primary": {
        "id": 1,
        "jsonrpc": "2.0",
        "result": {"blockNumber": "0x64", "gasUsed": "0x1", "blockTimestamp": "0x9"},
    },
    "shadow": {"id": 1, "jsonrpc": "2.0", "result": {"blockNumber": "0x64", "gasUsed": "0x2"}},
}


def posted(api: Api, **wanted: Any) -> dict[str, Any]:
    answer = api.post(PATH, wanted)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()
    return found


@pytest.fixture
def alone() -> Api:
    """An application without a store."""
    return Api(FakeReader(RuntimeError("asked")))


@pytest.mark.clickhouse
def test_a_stored_pair_is_judged_as_it_was(api: Api) -> None:
    """With the rules in force: the verdict, the findings and the versions that are stored."""
    found = posted(api, request_id="r6", shadow="s1")
    stored = api.get("/v1/findings", request_id="r6", **DAY).json()["items"]

    assert found["stored"] == {
        name: found[name] for name in ("outcome", "class", "mask_version", "tolerance_version")
    }  # fmt: skip
    assert (found["outcome"], found["class"], found["network"], found["elsewhere"]) == (
        "mismatch",
        "value",
        NETWORK,
        None,
    )
    names = ("path", "generic_path", "class", "n_paths", "primary_value", "shadow_value")
    assert sorted(tuple(f[name] for name in names) for f in found["findings"]) == sorted(
        tuple(f[name] for name in names) for f in stored
    )


@pytest.mark.clickhouse
def test_a_stored_pair_is_judged_with_other_rules(api: Api) -> None:
    """A mask and a tolerance each say what they do to it; the shadow need not be named where there is one."""
    found = posted(api, request_id="r6", masks=["b.1", "b.2", "c"], tolerate=["value@a"])

    assert (found["outcome"], found["stored"]["outcome"]) == ("tolerated", "mismatch")
    assert [(m["mask"], m["source"], m["is_on"], [h["path"] for h in m["hides"]]) for m in found["masks"]] == [
        ("b.1", "request", True, ["$.result.b[1]"]),
        ("b.2", "request", True, ["$.result.b[1]"]),
        ("c", "request", True, []),
    ]
    assert [[f["path"] for f in t["forgives"]] for t in found["tolerances"]] == [["$.result.a"]]
    assert [(d["path"], d["state"]) for d in found["differences"]] == [
        ("$.result.a", "tolerated"), ("$.result.b[1]", "masked"), ("$.result.b[2]", "masked"),
    ]  # fmt: skip


@pytest.mark.clickhouse
def test_rules_are_tried_on_all_stored_pairs(api: Api) -> None:
    """What is not in force yet, counted over the findings of the method in the range; the range is half-open."""
    found = posted(api, request_id="r6", masks=["b.*"], elsewhere=True, **RANGE)["elsewhere"]
    cleared = posted(api, request_id="r6", masks=["b.*", "a"], elsewhere=True, **RANGE)["elsewhere"]
    empty = posted(api, request_id="r6", masks=["a"], elsewhere=True, **{**RANGE, "to": "2026-09-21T00:00:00Z"})

    (shadow,) = found["shadows"]
    assert (found["from"], found["is_complete"]) == (RANGE["from"].replace("Z", ".000Z"), True)
    assert shadow == {
        "shadow_upstream": "s1", "pairs": 20, "cleared": 0, "touched": 20,
        "kinds": [{"generic_path": "$.result.b[*]", "class": "value", "pairs": 20}],
    }  # fmt: skip
    assert cleared["shadows"][0]["cleared"] == 20
    assert empty["elsewhere"]["shadows"] == []


@pytest.mark.clickhouse
def test_pairs_without_texts_have_their_verdicts(api: Api) -> None:
    """Equal bytes are identical by their digests; a shadow that never answered is missing."""
    assert posted(api, request_id="r3")["outcome"] == "identical"
    assert posted(api, request_id="r1")["outcome"] == "missing"


@pytest.mark.clickhouse
@pytest.mark.parametrize("wanted", [{"request_id": "none"}, {"request_id": "r6", "shadow": "s9"}])
def test_a_pair_that_is_not_there_is_404(api: Api, wanted: dict[str, str]) -> None:
    """And says where pairs are."""
    answer = api.post(PATH, wanted)

    assert (answer.status, answer.problem) == (404, "not-found")
    assert "/v1/comparisons" in answer.json()["detail"]


def test_given_answers_are_judged_as_the_command_does(alone: Api) -> None:
    """`gnomon diff --cases` says the same of the same line; the chain's preset is shown, and is on."""
    bare = posted(alone, pair=PAIR, masks=[])
    verdict = judge_case(read_case(json.dumps(PAIR).encode()))
    preset = posted(alone, pair=PAIR)

    assert (bare["outcome"], bare["class"], bare["finality"]) == (verdict.outcome, verdict.class_, verdict.finality)
    assert [one["path"] for one in bare["findings"]] == list(verdict.paths)
    assert [m["is_on"] for m in bare["masks"]] == [False, False]
    assert [(m["mask"], m["is_on"], len(m["hides"])) for m in preset["masks"]] == [
        ("blockTimestamp", True, 1), ("logs.*.blockTimestamp", True, 0),
    ]  # fmt: skip
    assert [one["path"] for one in preset["findings"]] == ["$.result.gasUsed"]


def test_numbers_of_given_answers_keep_every_digit(alone: Api) -> None:
    """The texts of the request are compared, not what a double would make of them."""
    a, b = b"10000000000000000000001", b"10000000000000000000002"
    body = b'{"pair":{"method":"x","primary":{"result":%b},"shadow":{"result":%b}}}' % (a, b)
    answer = alone.call("POST", PATH, body=body)

    assert answer.json()["outcome"] == "mismatch"
    assert answer.json()["findings"][0]["primary_value"] == "10000000000000000000001"


def test_a_wire_text_may_be_given(alone: Api) -> None:
    """What is no JSON is no answer: the shadow's is missing."""
    pair = {"method": "x", "primary_raw": '{"result":1}', "shadow_raw": "<html>"}

    assert posted(alone, pair=pair)["outcome"] == "missing"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/request_id"),
        ({"request_id": "r1", "pair": PAIR}, "/request_id"),
        ({"shadow": "s1", "pair": PAIR}, "/shadow"),
        ({"pair": None}, "/pair"),
        ({"pair": []}, "/pair"),
        ({"pair": {**PAIR, "ignore_fields": []}}, "/pair/ignore_fields"),
        ({"pair": {"primary": {"result": 1}}}, "/pair"),
        ({"pair": {**PAIR, "head": {"latest": -1}}}, "/pair"),
        ({"pair": {**PAIR, "shadow": [PAIR["shadow"]]}}, "/pair/shadow"),
        ({"pair": PAIR, "masks": ["a", "a..b"]}, "/masks/1"),
        ({"pair": PAIR, "masks": ["**"]}, "/masks/0"),
        ({"pair": PAIR, "masks": "a"}, "/masks"),
        ({"pair": PAIR, "masks": ["a"] * 101}, "/masks"),
        ({"pair": PAIR, "tolerate": ["nonsense"]}, "/tolerate/0"),
        ({"pair": PAIR, "tolerate": [7]}, "/tolerate/0"),
        ({"pair": PAIR, "masc": []}, ""),
        ({"pair": PAIR, "from": "yesterday"}, "/from"),
    ],
)
def test_what_cannot_be_judged_names_the_member(alone: Api, body: object, pointer: str) -> None:
    """422, before the store is asked."""
    answer = alone.post(PATH, body)

    assert (answer.status, answer.problem) == (422, "invalid-body")
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 5000], ids=["empty", "half", "no text", "deep"])
def test_a_body_that_is_no_json_is_refused(alone: Api, body: bytes) -> None:
    """In the API's one shape."""
    assert alone.call("POST", PATH, body=body).problem == "invalid-body"


def test_a_pair_nested_too_deep_is_refused(alone: Api) -> None:
    """Named, and nothing falls over."""
    text = b"[" * 50_000 + b"]" * 50_000
    answer = alone.call("POST", PATH, body=b'{"pair":{"primary":{"result":' + text + b'},"shadow":{"result":1}}}')

    assert answer.problem == "invalid-body"


def test_a_large_body_is_refused(alone: Api) -> None:
    """Above gnomon.api.limits.maxRequestBytes."""
    assert alone.call("POST", PATH, body=b" " * (1 << 20) + b"{}").problem == "too-large"
