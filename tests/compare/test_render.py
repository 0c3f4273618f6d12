import json
import re

import pytest

from gnomon.compare.judge import Answer, Question, Verdict, judge
from gnomon.compare.render import columns, render

ANSI = re.compile(r"\x1b\[\d+m")


def _verdict(a: object, b: object) -> Verdict:
    texts = [json.dumps(value).encode() for value in (a, b)]
    primary, shadow = (Answer(kind="result", fragment=text) for text in texts)
    return judge(Question(method="eth_call", params=[{}, "0x1"]), primary, shadow)


def test_the_first_line_says_it_all() -> None:
    """Outcome, class, finality, method."""
    text = render(_verdict({"a": 1}, {"a": 2}), method="eth_call")

    assert text.splitlines()[0] == "mismatch · value · unknown · eth_call"
    assert "$.result.a  value" in text


def test_a_list_of_the_same_difference_is_folded() -> None:
    """One block with a count and the first path."""
    text = render(_verdict([{"a": 1}] * 50, [{"a": 2}] * 50))

    assert "$.result[*].a  value  ×50" in text
    assert "first at $.result[0].a" in text
    assert "$.result[1]" not in text


def test_more_findings_than_fit_are_counted() -> None:
    """At the limit all are shown; past it the rest is a number."""
    verdict = _verdict({f"m{n}": 1 for n in range(12)}, {f"m{n}": 2 for n in range(12)})

    assert "more kinds" not in render(verdict, max_findings=12)
    assert "… and 2 more kinds of difference" in render(verdict, max_findings=10)


@pytest.mark.parametrize("width", [20, 60, 100, 300])
def test_colours_change_nothing_but_colour(width: int) -> None:
    """Without them there is no escape, with them the text is the same; lines keep to the width where they can."""
    verdict = _verdict({"a": "0x" + "1" * 90, "b": None}, {"a": "0x" + "2" * 90})
    plain = render(verdict, width=width)

    assert "\x1b" not in plain
    assert ANSI.sub("", render(verdict, width=width, is_coloured=True)) == plain
    if width >= 60:
        assert all(len(line) <= width for line in plain.splitlines())


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_small_difference_in_a_long_value_is_pointed_at(width: int) -> None:
    """By carets below it, at any width; a hash that is another altogether has none."""
    a = "0x" + "ab" * 5000
    lines = render(_verdict(a, a[:7000] + "X" + a[7001:]), width=width).splitlines()
    index = next(i for i, line in enumerate(lines) if "X" in line)

    assert lines[index + 1].index("^") == lines[index].index("X")
    assert lines[index + 1].count("^") == 1
    assert all(len(line) <= width for line in lines[3:])
    assert "^" not in render(_verdict("0x" + "ab" * 32, "0x" + "cd" * 32), width=width)


def test_columns_stay_straight_beside_wide_characters() -> None:
    """What takes two columns counts as two, what combines with its neighbour as none."""
    rows = [
        line.partition("│")[0]
        for line in render(
            _verdict(["日本語", "e\u0301", "😀" * 40, "plain"], ["a", "b", "c", "d"]), width=80
        ).splitlines()
        if "│" in line
    ]

    assert len({columns(row) for row in rows}) == 1


def test_lists_of_another_length_show_their_lengths() -> None:
    """Where they are too long to be counted by eye."""
    text = render(_verdict(list(range(300)), list(range(299))))

    assert "(300 elements)" in text
    assert "(299 elements)" in text


def test_an_answer_cannot_paint_the_terminal() -> None:
    """Escapes inside values and names are shown, not obeyed."""
    text = render(_verdict({"\x1b[31mx": "\x1b[2J\n\u009b"}, {"\x1b[31mx": "\r\x07"}))

    assert not any(c in text for c in "\x1b\x07\r\x9b")


@pytest.mark.parametrize("outcome", ["identical", "undecided", "missing", "incomparable", "tolerated", "error"])
def test_every_outcome_has_words(outcome: str) -> None:
    """Also without findings."""

    assert outcome in render(Verdict(outcome=outcome, reason="too_deep"))  # type: ignore[arg-type]
