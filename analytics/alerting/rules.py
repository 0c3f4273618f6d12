"""
Alert rules: what is asked, how often, and from which value on somebody is told.

    rules:
      - name: FallbackSpend
        sql: SELECT account AS subject, sum(usd) AS value FROM gnomon.attempts
             WHERE tier = 'fallback' AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)} GROUP BY account
        window: 10m          # from = to - window
        every: 15s           # a crossing is told within this time
        above: 5.0           # or `below`
        for: 0s              # how long it must last
        severity: page       # page, ticket, info; or PagerDuty's critical, error, warning
        receivers: [ops]
        runbook: …           # what it means and what to do
        summary: "…"         # one line; {subject}, {value}, {threshold}, {window} and the columns of the row
        more: gnomon query … # the command that shows more; the same names, and {from}, {to}
    defaults: {receivers: [ops]}   # who gets the default rules of this package

A row's `subject` says what it is about (none = one subject), `value` how much; further columns are texts for `summary`
and `more`. A subject that is no longer returned resolves. Beside `from` and `to` a statement may bind what the
configuration says of accounts (`analytics.accounts`). A user's rule replaces the default one of its name; one without
`sql` changes only what it names.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import resources
from pathlib import Path
from typing import Final, Literal, get_args

import yaml

from analytics.alerting.errors import AlertRuleError
from gnomon.config.model import Settings
from gnomon.config.scalars import parse_duration

Severity = Literal["page", "ticket", "info", "critical", "error", "warning"]
SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)

BOUND: Final[Mapping[str, str]] = {
    "from": "DateTime64(3)",
    "to": "DateTime64(3)",
    "accounts": "Array(String)",
    "budgets": "Array(String)",
    "cycle_from": "Array(String)",
    "cycle_to": "Array(String)",
}
"""What a statement may bind, with its type."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")
_TIME_TYPE = re.compile(r"DateTime64\([0-9](, ?'UTC')?\)")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\s*:\s*([^{}]+)\}")
_MEMBERS: Final = frozenset(
    {
        "name", "sql", "window", "every", "above", "below", "for", "severity", "receivers", "runbook", "summary",
        "more",
    }
)  # fmt: skip
MIN_EVERY_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule."""

    name: str
    sql: str
    threshold: float
    is_above: bool = True
    """Fires above the threshold; else below it. The threshold itself never fires."""
    window: timedelta = timedelta(minutes=10)
    every: timedelta = timedelta(seconds=15)
    lasts: timedelta = timedelta()
    """How long the threshold must be crossed before it fires."""
    severity: Severity = "ticket"
    receivers: tuple[str, ...] = ()
    runbook: str = ""
    summary: str = ""
    more: str = ""
    is_default: bool = False

    def is_crossed(self, value: float) -> bool:
        """Return whether a value is beyond the threshold; no number (NaN) never is."""
        return value > self.threshold if self.is_above else value < self.threshold

    @property
    def period(self) -> timedelta:
        """Between two looks: half of `every`, so that storing, asking and telling have their time within it."""
        return self.every / 2

    @property
    def placeholders(self) -> frozenset[str]:
        """The names that the statement binds."""
        return frozenset(name for name, _ in _PLACEHOLDER.findall(self.sql))


@dataclass(frozen=True, slots=True)
class RuleFile:
    """What one file says."""

    rules: tuple[Rule, ...]
    changes: Mapping[str, Mapping[str, object]]
    """Name of a default rule → the members that the file gives it."""
    default_receivers: tuple[str, ...]


def parse(text: str, source: str, *, is_default: bool = False) -> RuleFile:
    """
    Return the rules of a YAML text.

    Raises:
        AlertRuleError: with every fault and its place.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise AlertRuleError(source, [f"no YAML: {' '.join(str(error).split())}"]) from error
    problems: list[str] = []
    if not isinstance(document, dict) or not set(document) <= {"rules", "defaults"}:
        raise AlertRuleError(source, ["want a mapping with the member `rules` (and `defaults`)"])
    entries = [] if document.get("rules") is None else document["rules"]
    defaults = {} if document.get("defaults") is None else document["defaults"]
    if not isinstance(entries, list):
        raise AlertRuleError(source, ["rules: want a list"])
    if not isinstance(defaults, dict) or not set(defaults) <= {"receivers"}:
        problems.append("defaults: want a mapping with the member `receivers`")
        defaults = {}
    rules: list[Rule] = []
    changes: dict[str, Mapping[str, object]] = {}
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        place = f"rules[{index}]"
        if not isinstance(entry, dict):
            problems.append(f"{place}: want a mapping")
            continue
        name = entry.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            problems.append(f"{place}.name: want a name of letters, digits, _ and -, not {name!r}")
            continue
        place = f"{place} ({name})"
        if name in seen:
            problems.append(f"{place}: two rules have this name")
        seen.add(name)
        if "sql" not in entry and not is_default and name in _default_names():
            changes[name] = entry
            _changed(_by_name(shipped())[name], entry, place, problems)
            continue
        empty = Rule(name, "", 0.0, is_default=is_default)
        if "sql" not in entry:
            problems.append(f"{place}.sql: is missing, and no default rule has this name")
        if ("above" in entry) == ("below" in entry):
            problems.append(f"{place}: one of `above` and `below` is needed")
        rules.append(_changed(empty, entry, place, problems))
    receivers = _texts(defaults.get("receivers"), "defaults.receivers", problems)
    if problems:
        raise AlertRuleError(source, problems)
    return RuleFile(tuple(rules), changes, receivers)


def shipped() -> tuple[Rule, ...]:
    """Return the default rules."""
    files = (resources.files("analytics") / "alerts").iterdir()
    texts = sorted((file.name, file.read_text(encoding="utf-8")) for file in files if file.name.endswith(".yaml"))
    return tuple(rule for name, text in texts for rule in parse(text, name, is_default=True).rules)


def in_force(settings: Settings) -> tuple[Rule, ...]:
    """
    Return the rules of an installation.

    Raises:
        AlertRuleError: a file cannot be read or used, or names a receiver that is not there.
    """
    alerts = settings.gnomon.alerts
    return configured(alerts.rules, Path(alerts.folder), [str(receiver.get("name")) for receiver in alerts.receivers])


def configured(files: Sequence[str], folder: Path, receivers: Iterable[str]) -> tuple[Rule, ...]:
    """
    Return the rules of an installation: the default ones as the user's files change them, then the user's own.

    Args:
        files: as configured, looked up in `folder`.
        receivers: the names that there are.

    Raises:
        AlertRuleError: a file cannot be read or used, or names a receiver that is not there.
    """
    rules = _by_name(shipped())
    known = set(receivers)
    owner: dict[str, str] = {}
    for file in files:
        try:
            text = (folder / file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise AlertRuleError(file, [f"cannot be read: {error}"]) from error
        said = parse(text, file)
        problems: list[str] = []
        for name in [*(rule.name for rule in said.rules), *said.changes]:
            if owner.setdefault(name, file) != file:
                problems.append(f"rule {name} stands in {owner[name]} too")
        if said.default_receivers:
            for name, rule in rules.items():
                if rule.is_default and not rule.receivers:
                    rules[name] = replace(rule, receivers=said.default_receivers)
        for name, change in said.changes.items():
            rules[name] = _changed(rules[name], change, name, problems)
        rules.update({rule.name: rule for rule in said.rules})
        for name in sorted({name for rule in rules.values() for name in rule.receivers} - known):
            there = ", ".join(sorted(known)) or "none"
            problems.append(f"no receiver is called `{name}`; gnomon.alerts.receivers has: {there}")
        if problems:
            raise AlertRuleError(file, problems)
    return tuple(rules.values())


def _by_name(rules: Iterable[Rule]) -> dict[str, Rule]:
    return {rule.name: rule for rule in rules}


def _default_names() -> frozenset[str]:
    return frozenset(rule.name for rule in shipped())


def _changed(rule: Rule, entry: Mapping[str, object], place: str, problems: list[str]) -> Rule:
    """Return the rule with the members that an entry gives it."""
    for unknown in sorted(str(key) for key in entry if key not in _MEMBERS):
        problems.append(f"{place}.{unknown}: unknown member; there are {', '.join(sorted(_MEMBERS))}")
    if "sql" in entry:
        rule = replace(rule, sql=_sql(entry["sql"], f"{place}.sql", problems))
    for member, is_above in (("above", True), ("below", False)):
        if member in entry:
            rule = replace(rule, threshold=_number(entry[member], f"{place}.{member}", problems), is_above=is_above)
    if "window" in entry:
        rule = replace(rule, window=_period(entry["window"], f"{place}.window", problems, 0.001))
    if "every" in entry:
        rule = replace(rule, every=_period(entry["every"], f"{place}.every", problems, MIN_EVERY_SECONDS))
    if "for" in entry:
        rule = replace(rule, lasts=_period(entry["for"], f"{place}.for", problems, 0.0))
    if "severity" in entry:
        found = [severity for severity in SEVERITIES if severity == entry["severity"]]
        if found:
            rule = replace(rule, severity=found[0])
        else:
            problems.append(f"{place}.severity: want one of {', '.join(SEVERITIES)}, not {entry['severity']!r}")
    if "receivers" in entry:
        rule = replace(rule, receivers=_texts(entry["receivers"], f"{place}.receivers", problems))
    for member in ("runbook", "summary", "more"):
        if member in entry:
            value = entry[member]
            if not isinstance(value, str):
                problems.append(f"{place}.{member}: want a text, not {value!r}")
                continue
            text = " ".join(value.split())
            if member == "runbook":
                rule = replace(rule, runbook=text)
            elif member == "summary":
                rule = replace(rule, summary=text)
            else:
                rule = replace(rule, more=text)
    return rule


def _sql(value: object, place: str, problems: list[str]) -> str:
    if not isinstance(value, str) or not value.strip():
        problems.append(f"{place}: want a SELECT")
        return ""
    for name, kind in _PLACEHOLDER.findall(value):
        wanted = BOUND.get(name)
        if wanted is None:
            problems.append(f"{place}: {{{name}}} is nothing that is bound; there are {', '.join(BOUND)}")
        elif not (_TIME_TYPE.fullmatch(kind.strip()) if name in ("from", "to") else kind.strip() == wanted):
            problems.append(f"{place}: {{{name}:{kind}}}: want {wanted}")
    return value.strip().rstrip(";").rstrip()


def _number(value: object, place: str, problems: list[str]) -> float:
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)  # YAML reads 2e-05, which JSON may write, as a text
        except ValueError:
            number = float("nan")
        if number == number:
            return number
    problems.append(f"{place}: want a number, not {value!r}")
    return 0.0


def _period(value: object, place: str, problems: list[str], least_seconds: float) -> timedelta:
    try:
        seconds = parse_duration(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else -1.0
    except ValueError:
        seconds = -1.0
    if seconds < least_seconds:
        least = f" of {least_seconds:g} s or more" if least_seconds >= 1 else ""
        problems.append(f"{place}: want a duration{least} (10m, 15s), not {value!r}")
        return timedelta(seconds=1)
    return timedelta(seconds=seconds)


def _texts(value: object, place: str, problems: list[str]) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(dict.fromkeys(value))
    problems.append(f"{place}: want a list of names, not {value!r}")
    return ()
