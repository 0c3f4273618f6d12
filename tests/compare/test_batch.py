import json
from typing import Any

from gnomon.compare.batch import judge_batch
from gnomon.compare.envelope import Response, read
from gnomon.compare.judge import Question, Verdict

REQUESTS = [
    {"id": 1, "method": "eth_chainId", "params": []},
    {"id": "two", "method": "eth_getBalance", "params": ["0x00", "0x5a"]},
    {"id": 3, "method": "web3_clientVersion", "params": []},
]
QUESTION = Question(params=REQUESTS, latest=100, finalized=90)


def _responses(*results: tuple[Any, Any]) -> list[Response]:
    found = read(json.dumps([{"id": rpc_id, "result": result} for rpc_id, result in results]).encode())
    assert isinstance(found, list)
    return found


def _judged(*results: tuple[Any, Any]) -> Verdict:
    primary = _responses((1, "0x1"), ("two", "0x5"), (3, "Geth"))
    return judge_batch(QUESTION, primary, _responses(*results))


def test_responses_are_paired_by_id_whatever_their_order() -> None:
    """A batch in another order is the same."""

    assert _judged((3, "Geth"), (1, "0x1"), ("two", "0x5")).outcome == "identical"


def test_the_gravest_element_gives_the_outcome_and_paths_name_the_place() -> None:
    """Each element is judged by its own method; the place is the primary's."""
    verdict = _judged((3, "Besu"), (1, "0x1"), ("two", "0x6"))

    assert (verdict.outcome, verdict.class_, verdict.finality) == ("mismatch", "value", "unknown")
    assert verdict.paths == ("$[1].result", "$[2].result")
    assert [finding.generic_path for finding in verdict.findings] == ["$[*].result", "$[*].result"]
    assert _judged((3, "Besu"), (1, "0x1"), ("two", "0x5")).outcome == "incomparable"


def test_a_response_that_only_one_side_gave_is_an_error_of_the_other() -> None:
    """Whichever side it is; the values stand on their side."""
    verdict = _judged((1, "0x1"), (3, "Geth"))

    assert (verdict.outcome, verdict.class_, verdict.paths) == (
        "error",
        "error_vs_result",
        ("$[1].error", "$[1].result"),
    )
    assert (verdict.findings[0].primary_value, verdict.findings[0].shadow_value) == ('"0x5"', "null")
    assert _judged((1, "0x1"), ("two", "0x5"), (3, "Geth"), (4, "0x1")).outcome == "error"


def test_finality_is_that_of_all_elements() -> None:
    """Where they agree."""
    requests = [{"id": 1, "method": "eth_getBalance", "params": ["0x00", "0x5b"]}]
    question = Question(params=requests, latest=100, finalized=90)

    assert judge_batch(question, _responses((1, 1)), _responses((1, 2))).finality == "unfinalized"


def test_an_empty_batch_and_broken_requests_get_a_verdict() -> None:
    """Nothing against nothing is identical; requests that are no list name no method."""
    assert judge_batch(QUESTION, [], []).outcome == "identical"
    assert judge_batch(Question(params={"x": [1]}), _responses((1, 1)), _responses((1, 2))).outcome == "mismatch"
    assert judge_batch(Question(params=[5, {"id": [1]}]), _responses((1, 1)), _responses((1, 1))).outcome == "identical"
