"""
Alerts: the service that asks the rules and tells the receivers, and what one does with rules by hand.

  gnomon alerts                                  the service (a child of `gnomon up`)
  gnomon alerts list                             every rule in force, and where it goes
  gnomon alerts test FallbackSpend               would it fire now? its rows, and nobody is told
  gnomon alerts test FallbackSpend --at 2026-12-01T10:00:00Z --format json
  gnomon alerts silence HeadLag --for 2h --comment "node is synced anew"
  gnomon alerts silence HeadLag --subject 'evm:1/*' --for 2h
  gnomon alerts silences
  gnomon alerts unsilence ID
  gnomon alerts export > gnomon.rules.yaml       the same rules for Prometheus

docs/alerts.md says what each default rule means. `--format json` of `test` is one object for each row, as a webhook
gets it, with state `firing`, `pending` or `inactive`. Exit status 0 whether a rule fires or not, 1 when ClickHouse
cannot be asked.
"""

import argparse
import getpass
import secrets
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gnomon.errors import GnomonError, UsageError
from gnomon.process import die_with_parent

if TYPE_CHECKING:
    from analytics.alerting.history import History
    from analytics.alerting.rules import Rule
    from gnomon.config.model import ClickHouseSettings, Settings

ACTIONS: Final = ("run", "list", "test", "silence", "silences", "unsilence", "export")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=ACTIONS, default="run", help="what to do (default: run)")
    parser.add_argument("name", nargs="?", metavar="RULE", help="a rule's name; for unsilence, the silence's id")
    parser.add_argument("--at", metavar="T", default="now", help="test: the end of the window (ISO 8601, now, now-2h)")
    parser.add_argument("--subject", metavar="S", default="*", help="silence: which subject; * and ? are wildcards")
    parser.add_argument("--for", dest="lasts", metavar="D", default="1h", help="silence: how long (default: 1h)")
    parser.add_argument("--comment", metavar="TEXT", default="", help="silence: why")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table", help="how rows come out")
    parser.add_argument("--config", metavar="FILE", default="gnomon.yaml", help="configuration (default: gnomon.yaml)")
    parser.add_argument("--data", metavar="DIR", default="gnomon-data", help="data folder (default: gnomon-data)")
    parser.add_argument("--health-port", metavar="PORT", type=int, help="instead of gnomon.health.alertsPort")
    parser.add_argument("--clickhouse-url", metavar="URL", help="instead of gnomon.clickhouse.url")
    parser.add_argument("--allow-insecure", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    die_with_parent()
    import msgspec

    from analytics.alerting.rules import in_force
    from gnomon.config.load import load

    settings = load(args.config, allow_insecure=args.allow_insecure)
    clickhouse = settings.gnomon.clickhouse
    if args.clickhouse_url:
        clickhouse = msgspec.structs.replace(clickhouse, url=args.clickhouse_url)
    rules = in_force(settings)
    if args.action == "run":
        if args.name is not None:
            raise UsageError(f"`gnomon alerts run` takes no name; did you mean `gnomon alerts test {args.name}`?")
        from gnomon.cli.alert_service import serve

        return serve(args, settings, clickhouse, rules)
    if args.action == "export":
        from analytics.alerting.export import prometheus

        sys.stdout.write(prometheus(rules))
        return 0
    if args.action == "list":
        return _list(args, rules)
    if args.action == "test":
        return _test(args, settings, clickhouse, _named(rules, args.name))
    if args.action == "silence":
        return _silence(args, clickhouse, rules)
    return _silences(args, clickhouse) if args.action == "silences" else _unsilence(args, clickhouse)


def _named(rules: "tuple[Rule, ...]", name: str | None) -> "Rule":
    if name is None:
        raise UsageError("give the RULE's name; `gnomon alerts list` has them")
    for rule in rules:
        if rule.name == name:
            return rule
    import difflib

    near = difflib.get_close_matches(name, [rule.name for rule in rules], 3, 0.4)
    hint = f"did you mean {', '.join(near)}?" if near else "`gnomon alerts list` has them"
    raise UsageError(f"there is no rule {name!r}; {hint}")


def history(clickhouse: "ClickHouseSettings", data_dir: Path) -> "History":
    """Return the history, with the writer's rights; raises what `analytics.alerting.opening.connect` raises."""
    from analytics.alerting.history import History
    from analytics.alerting.opening import connect

    return History(connect(clickhouse, data_dir))


# --- by hand ----------------------------------------------------------------------------------------------------------


def _list(args: argparse.Namespace, rules: "tuple[Rule, ...]") -> int:
    from gnomon.cli.query import write
    from gnomon.config.scalars import format_duration

    names = ["rule", "severity", "condition", "for", "window", "every", "receivers", "default"]
    rows = [
        (
            rule.name, rule.severity, f"{'above' if rule.is_above else 'below'} {rule.threshold:g}",
            *(format_duration(span.total_seconds()) for span in (rule.lasts, rule.window, rule.every)),
            ", ".join(rule.receivers), rule.is_default,
        )
        for rule in rules
    ]  # fmt: skip
    write(names, ["String"] * len(names), rows, output_format=args.format, out=sys.stdout)
    return 0


def _test(args: argparse.Namespace, settings: "Settings", clickhouse: "ClickHouseSettings", rule: "Rule") -> int:
    from analytics.alerting.asking import Asker, dry_run
    from analytics.alerting.evaluate import Change
    from analytics.alerting.messages import message, webhook
    from analytics.questions import moment
    from gnomon.cli.query import write

    at = moment("--at", args.at, datetime.now(UTC))
    try:
        held, readings = dry_run(rule, Asker(clickhouse, settings.gnomon.pricing.accounts), at)
    except ValueError as error:
        raise GnomonError(f"rule {rule.name}: {error}") from error
    rows = []
    for reading in sorted(readings, key=lambda r: r.subject):
        one = held.get(reading.subject)
        state = one.phase if one is not None else "inactive"
        change = Change(at, rule.name, state, reading.subject, 0.0 if reading.value is None else reading.value,
                        rule.threshold, rule.severity, one.since if one else at, reading.labels)  # fmt: skip
        body = webhook(message(change, rule))
        rows.append({**body, "value": reading.value})
    if args.format == "table":
        names = ["rule", "state", "subject", "value", "threshold", "since"]
    else:
        names = ["rule", "state", "subject", "value", "threshold", "severity", "since", "at", "fingerprint",
                 "runbook", "query"]  # fmt: skip
    numbers = {"value": "Float64", "threshold": "Float64"}
    types = [numbers.get(name, "String") for name in names]
    write(names, types, [[row[name] for name in names] for row in rows], output_format=args.format, out=sys.stdout)
    return 0


def _silence(args: argparse.Namespace, clickhouse: "ClickHouseSettings", rules: "tuple[Rule, ...]") -> int:
    from analytics.alerting.silences import Silence
    from gnomon.config.scalars import parse_duration

    if args.name is None:
        raise UsageError("give the RULE to silence, or a pattern such as '*'")
    if not any(c in args.name for c in "*?["):
        _named(rules, args.name)
    try:
        lasts = timedelta(seconds=parse_duration(args.lasts))
    except ValueError as error:
        raise UsageError(f"--for: {error}") from error
    if lasts <= timedelta():
        raise UsageError("--for must be longer than 0")
    now = datetime.now(UTC)
    silence = Silence(secrets.token_hex(4), args.name, args.subject, now, now + lasts, args.comment, getpass.getuser())
    history(clickhouse, Path(args.data)).silence(silence, now)
    print(f"{silence.id}: silent until {silence.ends_at:%Y-%m-%d %H:%M:%S} UTC; end it: gnomon alerts unsilence "
          f"{silence.id}")  # fmt: skip
    return 0


def _silences(args: argparse.Namespace, clickhouse: "ClickHouseSettings") -> int:
    from gnomon.cli.query import write

    names = ["id", "rule", "subject", "starts_at", "ends_at", "comment", "author"]
    rows = [
        (s.id, s.rule, s.subject, *(f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in (s.starts_at, s.ends_at)), s.comment, s.author)
        for s in history(clickhouse, Path(args.data)).silences(datetime.now(UTC))
    ]
    write(names, ["String"] * len(names), rows, output_format=args.format, out=sys.stdout)
    return 0


def _unsilence(args: argparse.Namespace, clickhouse: "ClickHouseSettings") -> int:
    from dataclasses import replace

    now = datetime.now(UTC)
    kept = history(clickhouse, Path(args.data))
    found = [silence for silence in kept.silences(now) if silence.id == args.name]
    if not found:
        raise GnomonError(f"there is no silence {args.name!r} in force; `gnomon alerts silences` has them")
    kept.silence(replace(found[0], ends_at=now), now)
    return 0
