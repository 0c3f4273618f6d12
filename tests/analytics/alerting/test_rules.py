"""Alert rules as files: what is read, what is refused, and how a user's file changes the default rules."""

from datetime import timedelta
from pathlib import Path

import pytest

from analytics.alerting.errors import AlertRuleError
from analytics.alerting.rules import Rule, configured, parse, shipped

SQL = "SELECT account AS subject, sum(usd) AS value FROM gnomon.attempts WHERE at >= {from:DateTime64(3)}"
FULL = f"""
rules:
  - {{name: FallbackSpend, sql: "{SQL} AND at < {{to:DateTime64(3)}}", window: 10m, every: 15s, above: 5.0, for: 1m30s,
      severity: page, receivers: [ops], runbook: "look at\\n it"}}
"""


def installed(tmp_path: Path, *texts: str, receivers: tuple[str, ...] = ("ops", "x")) -> dict[str, Rule]:
    """Return the rules of an installation with these files."""
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.yaml").write_text(text)
    return {r.name: r for r in configured([f"{n}.yaml" for n in range(len(texts))], tmp_path, receivers)}


def test_a_rule_is_read_as_the_contract_writes_it() -> None:
    """Every member of the public form."""
    (rule,) = parse(FULL, "f").rules

    assert rule == Rule(
        "FallbackSpend", SQL + " AND at < {to:DateTime64(3)}", 5.0, True, timedelta(minutes=10), timedelta(seconds=15),
        timedelta(seconds=90), "page", ("ops",), "look at it",
    )  # fmt: skip
    assert rule.placeholders == {"from", "to"}


@pytest.mark.parametrize(("text", "expected"), [("2e-05", 2e-05), ("1e6", 1e6), ("-0.5", -0.5), ("0", 0.0)])
def test_a_threshold_is_any_number(text: str, expected: float) -> None:
    """Also as JSON writes small ones, which YAML takes for a text."""
    assert parse(f"rules: [{{name: A, sql: S, above: {text}}}]", "f").rules[0].threshold == expected


def test_looks_leave_time_for_telling() -> None:
    """`every: 15s` asks each 7.5 s, so that a crossing is told within 15."""
    (rule,) = parse(FULL, "f").rules

    assert rule.period == timedelta(seconds=7.5)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{sql: S, above: 1}", "rules[0].name: want a name"),
        ("{name: 'a b', sql: S, above: 1}", "rules[0].name: want a name"),
        ("{name: A, above: 1}", "rules[0] (A).sql: is missing"),
        ("{name: A, sql: S}", "one of `above` and `below` is needed"),
        ("{name: A, sql: S, above: 1, below: 0}", "one of `above` and `below` is needed"),
        ("{name: A, sql: S, above: many}", "rules[0] (A).above: want a number"),
        ("{name: A, sql: S, above: .nan}", "rules[0] (A).above: want a number"),
        ("{name: A, sql: S, above: 1, window: 0s}", "rules[0] (A).window: want a duration"),
        ("{name: A, sql: S, above: 1, every: 10ms}", "rules[0] (A).every: want a duration of 1 s or more"),
        ("{name: A, sql: S, above: 1, for: -1s}", "rules[0] (A).for: want a duration"),
        ("{name: A, sql: S, above: 1, severity: loud}", "rules[0] (A).severity: want one of page"),
        ("{name: A, sql: S, above: 1, receiver: [ops]}", "rules[0] (A).receiver: unknown member"),
        ("{name: A, sql: S, above: 1, receivers: ops}", "rules[0] (A).receivers: want a list"),
        ("{name: A, sql: 'SELECT {at:DateTime64(3)}', above: 1}", "{at} is nothing that is bound"),
        ("{name: A, sql: 'SELECT {from:String}', above: 1}", "want DateTime64(3)"),
        ("{name: A, sql: '', above: 1}", "want a SELECT"),
    ],
)
def test_a_slip_is_named_with_its_place(entry: str, message: str) -> None:
    """The file, the rule, the member."""
    with pytest.raises(AlertRuleError) as caught:
        parse(f"rules: [{entry}]", "mine.yaml")

    assert message in str(caught.value)
    assert str(caught.value).startswith("alert rules mine.yaml: ")


@pytest.mark.parametrize("text", ["- a", "rule: []", "rules: {}", "{", "defaults: []\nrules: [1]"])
def test_what_is_no_rule_file_is_refused(text: str) -> None:
    """Not an exception of the parser's."""
    with pytest.raises(AlertRuleError):
        parse(text, "f")


def test_all_slips_come_at_once() -> None:
    """Nobody corrects a file one error at a time."""
    with pytest.raises(AlertRuleError) as caught:
        parse("rules: [{name: A, sql: S}, {name: A, sql: S, above: x}]", "f")

    assert len(caught.value.problems) == 3


def test_files_add_to_the_default_rules(tmp_path: Path) -> None:
    """A rule of a new name stands beside them."""
    rules = installed(tmp_path, f'rules: [{{name: Mine, sql: "{SQL}", below: 1}}]')

    assert set(rules) == {rule.name for rule in shipped()} | {"Mine"}
    assert not rules["Mine"].is_above
    assert not rules["Mine"].is_default


def test_a_rule_of_the_same_name_replaces_the_default_one(tmp_path: Path) -> None:
    """All of it: what the user does not name is not inherited."""
    rule = installed(tmp_path, FULL)["FallbackSpend"]

    assert (rule.more, rule.summary, rule.receivers, rule.is_default) == ("", "", ("ops",), False)


def test_without_sql_only_what_is_named_changes(tmp_path: Path) -> None:
    """So that a threshold can be set without a copy of the statement."""
    default = next(rule for rule in shipped() if rule.name == "HeadLag")
    rule = installed(tmp_path, "rules: [{name: HeadLag, above: 12, receivers: [x]}]")["HeadLag"]

    assert (rule.threshold, rule.receivers, rule.sql, rule.lasts) == (12, ("x",), default.sql, default.lasts)


def test_default_rules_reach_nobody_unless_named(tmp_path: Path) -> None:
    """`defaults.receivers` names who gets those that have none of their own."""
    assert all(not rule.receivers for rule in shipped())
    rules = installed(tmp_path, "{defaults: {receivers: [ops]}, rules: [{name: HeadLag, receivers: [x]}]}")

    assert rules["HeadLag"].receivers == ("x",)
    assert rules["PaidShare"].receivers == ("ops",)


def test_an_unknown_receiver_is_an_error(tmp_path: Path) -> None:
    """An alert for nobody is worse than a refused file."""
    with pytest.raises(AlertRuleError, match=r"no receiver is called `opz`; gnomon\.alerts\.receivers has: ops, x"):
        installed(tmp_path, FULL.replace("[ops]", "[opz]"))


def test_one_rule_in_two_files_is_an_error(tmp_path: Path) -> None:
    """Which of them would be in force is not left to the order of a list."""
    with pytest.raises(AlertRuleError, match=r"FallbackSpend stands in 0\.yaml too"):
        installed(tmp_path, FULL, FULL)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """With why it cannot be read."""
    with pytest.raises(AlertRuleError, match=r"none\.yaml: cannot be read"):
        configured(["none.yaml"], tmp_path, [])


def test_the_default_rules_say_what_to_do() -> None:
    """Each has a summary, a section of docs/alerts.md, and the command that shows more."""
    headings = (Path(__file__).parents[3] / "docs" / "alerts.md").read_text("utf-8").lower()
    for rule in shipped():
        assert rule.summary, rule.name
        assert rule.more.startswith("gnomon "), rule.name
        assert rule.runbook.startswith(f"docs/alerts.md#{rule.name.lower()}."), rule.name
        assert f"\n### {rule.name.lower()}\n" in headings, rule.name
