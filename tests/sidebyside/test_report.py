"""What a comparison found, each thing once."""

import json

from gnomon.compare.judge import Answer, Kind, Question, judge
from gnomon.sidebyside.markdown import markdown
from gnomon.sidebyside.report import Report, conclusion, render
from gnomon.sidebyside.sampling import Ask


def add(report: Report, primary: tuple[Kind, object], shadow: tuple[Kind, object], unserved_by: str = "") -> None:
    """Judge one pair and count it."""
    sides = [Answer(kind=kind, fragment=json.dumps(value).encode()) for kind, value in (primary, shadow)]
    verdict = judge(Question(method="eth_x"), sides[0], sides[1])
    report.add(Ask("eth_x", b"[]", "eth_x"), verdict, is_final=False, unserved_by=unserved_by)


def found(report: Report) -> list[tuple[str, str, int]]:
    """Return paths, classes and counts of the findings."""
    return [(finding.generic_path, finding.class_, finding.n) for finding in report.findings]


def test_two_refusals_of_different_code_are_one_finding() -> None:
    """Their words differ too, which says nothing more."""
    report = Report("a", "b")
    add(report, ("error", {"code": -32602, "message": "no"}), ("error", {"code": -38012, "message": "fee too low"}))

    assert found(report) == [("$.error.code", "error_code", 1)]


def test_two_refusals_of_one_code_differ_in_their_words() -> None:
    """Which is a finding."""
    report = Report("a", "b")
    add(report, ("error", {"code": 3, "message": "no"}), ("error", {"code": 3, "message": "never"}))

    assert found(report) == [("$.error.message", "error_message", 1)]


def test_a_method_that_one_does_not_know_is_said_once() -> None:
    """With how often it was asked; every pair is counted."""
    report = Report("a", "b")
    unknown: tuple[Kind, object] = ("error", {"code": -32601, "message": "not found"})
    for answer in (1, 2):
        add(report, ("result", answer), unknown, "shadow")

    assert found(report) == []
    assert report.outcomes["error"] == 2
    assert "not served by shadow: eth_x (2 questions)" in render(report)


def test_a_member_spelled_another_way_shows_both_names() -> None:
    """A storage slot with and without its prefix is one difference, not a missing member and another one."""
    report = Report("a", "b")
    slot = "0" * 63 + "2"
    add(report, ("result", {"storage": {f"0x{slot}": "0x1"}}), ("result", {"storage": {slot: "0x1"}}))

    assert found(report) == [("$.result.storage[*]", "encoding", 1)]
    example = report.findings[0].example
    assert (json.loads(example["primary"]), json.loads(example["shadow"])) == (f"0x{slot}", slot)


def test_questions_in_vain_are_part_of_the_conclusion() -> None:
    """A clean report over a few answers does not hide that most were refused."""
    report = Report("a", "b")
    quota: tuple[Kind, object] = ("error", {"code": -32005, "message": "monthly quota"})
    add(report, ("result", 1), ("result", 1))
    for _ in range(3):
        add(report, ("result", 1), quota)

    assert conclusion(report) == "No difference in 1 compared answers. 3 of 4 questions were not answered by both."


def test_why_an_endpoint_gave_no_answer_is_told() -> None:
    """With the count, the commonest first, in both forms of the report."""
    report = Report("a", "b", ended_by="http://b has stopped answering")
    report.silences.update(
        {"shadow gave no answer: HTTP 502": 7, **{f"shadow gave no answer: {n}": 1 for n in range(6)}}
    )

    for text in (render(report), markdown(report)):
        assert "hadow gave no answer: HTTP 502 (7 times)" in text
        assert "and 2 more reasons" in text
        assert "ended early: http://b has stopped answering" in text
