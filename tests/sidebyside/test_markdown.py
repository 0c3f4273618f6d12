"""The report to paste into a bug thread."""

import json
import subprocess

from gnomon.compare.judge import Answer, Question, judge
from gnomon.sidebyside.markdown import MAX_FINDINGS, markdown
from gnomon.sidebyside.report import Report
from gnomon.sidebyside.sampling import Ask


def report(*pairs: tuple[object, object], method: str = "eth_x", params: object = ()) -> Report:
    """Return the report of some pairs of results."""
    found = Report("http://a", "http://b|c")
    for a, b in pairs:
        primary, shadow = (Answer(kind="result", fragment=json.dumps(result).encode()) for result in (a, b))
        verdict = judge(Question(method=method), primary, shadow)
        found.add(Ask(method, json.dumps(params).encode()), verdict, is_final=True)
    return found


def test_shows_each_kind_with_its_values_and_how_to_see_it_again() -> None:
    """A table of the kinds, then for each an example and the command."""
    text = markdown(report(({"a": 1}, {"a": 2}), ({"a": 1}, {"a": 3}), ({"b": 1}, {})))

    assert "3 questions: 3 mismatch. They differ on final data" in text
    assert "| 2 | `eth_x` | `$.result.a` | value |" in text
    assert "| 1 | `eth_x` | `$.result.b` | missing_field |" in text
    assert "shadow   (absent)" in text
    assert "http://b\\|c" in text


def test_nothing_in_the_answers_breaks_out_of_its_block() -> None:
    """Back quotes in a path or a value stand in longer fences; a pipe does not split the table's row."""
    text = markdown(report(({"a|`b": "```\n# x"}, {"a|`b": 1})))

    assert "\n````\n" in text
    row = next(line for line in text.splitlines() if line.startswith("| 1 |"))
    assert row.replace("\\|", "").count("|") == 5


def test_the_command_asks_what_was_asked() -> None:
    """Quotes in the parameters do not end the shell's text."""
    text = markdown(report((1, 2), params=["it's", '"$HOME"']))
    line = next(line for line in text.splitlines() if "curl" in line)
    said = subprocess.run(
        ["sh", "-c", line.replace("curl -s", "printf '%s\\n'")], capture_output=True, text=True, check=True
    )

    assert json.loads(said.stdout.splitlines()[-1])["params"] == ["it's", '"$HOME"']


def test_a_long_report_is_cut_and_says_so() -> None:
    """Every kind stands in the table."""
    text = markdown(report(*(({f"m{i}": 1}, {f"m{i}": 2}) for i in range(MAX_FINDINGS + 3))))

    assert text.count("curl -s") == MAX_FINDINGS
    assert text.endswith("… and 3 more kinds, without their values.")
    assert "$.result.m27" in text
