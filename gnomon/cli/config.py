"""
Check a configuration, or print what it means.

  gnomon config validate gnomon.yaml     every problem at once, each with its path and line
  gnomon config dump gnomon.yaml         the settings in force, defaults included, secrets masked
  gnomon config clickhouse gnomon.yaml --out DIR
                                         a ClickHouse server's users and limits: users.d/gnomon.xml, config.d/gnomon.xml

Exit status 0 when the file can be used, 2 when it cannot. Warnings name what has no effect; they change no status.
"""

import argparse
import difflib
import os
import sys
from pathlib import Path

from analytics.alerting.errors import AlertRuleError
from analytics.alerting.rules import in_force
from gnomon.config.dump import dump
from gnomon.config.load import DEFAULT_FILE, load
from gnomon.config.model import Settings
from gnomon.cost.book import Book, configured, shipped
from gnomon.cost.charge import OWN_VENDORS, PriceBooks
from gnomon.cost.errors import PriceBookError
from gnomon.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the two actions and their options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, line in (
        ("validate", "report every problem of a file at once"),
        ("dump", "print the settings in force, secrets masked"),
        ("clickhouse", "write the users and settings of a ClickHouse server"),
    ):
        action = actions.add_parser(name, help=line, description=line.capitalize() + ".")
        action.add_argument("file", metavar="FILE", nargs="?", help=f"the configuration (default {DEFAULT_FILE})")
        action.add_argument("--config", metavar="FILE", dest="config", help="the same, as other commands take it")
        action.add_argument(
            "--allow-insecure",
            action="store_true",
            help="warn, instead of refusing, where the file asks for a guard of money or access that is not in force",
        )
        if name == "clickhouse":
            action.add_argument("--out", metavar="DIR", required=True, help="where the files go")


def run(args: argparse.Namespace) -> int:
    """Run one action; problems leave as `ConfigError`, `PriceBookError`, `AlertRuleError`, which exit with status 2."""
    file = args.file or args.config or DEFAULT_FILE
    settings = load(file, allow_insecure=args.allow_insecure)
    books = files_beside(settings)
    for warning in (*settings.warnings, *without_book(settings, books)):
        print(f"warning: {warning}", file=sys.stderr)
    if args.action == "dump":
        sys.stdout.write(dump(settings))
    elif args.action == "clickhouse":
        server_files(settings, Path(args.out))
    else:
        print(f"{file}: valid; {summary(settings)}")
    return 0


def files_beside(settings: Settings) -> PriceBooks:
    """
    Return the price books in force, after a look into every file that the configuration names.

    Raises:
        UsageError: with every fault of price books and alert rules.
    """
    problems: list[UsageError] = []
    own: list[Book] = []
    for path in settings.gnomon.pricing.files:
        try:
            own += configured([path])
        except PriceBookError as error:
            problems.append(error)
    books = PriceBooks(shipped())
    try:
        books = PriceBooks(shipped(), own)
    except PriceBookError as error:
        problems.append(error)
    try:
        in_force(settings)
    except AlertRuleError as error:
        problems.append(error)
    if problems:
        raise UsageError("\n".join(map(str, problems)))
    return books


def without_book(settings: Settings, books: PriceBooks) -> list[str]:
    """Return a line for each upstream whose calls no book prices: a misspelt vendor is one."""
    known, found = books.described(), []
    for project in settings.projects:
        for upstream in project.upstreams:
            if upstream.vendor in OWN_VENDORS or upstream.vendor in known:
                continue
            near = difflib.get_close_matches(upstream.vendor, known, 1)
            hint = f"; did you mean `{near[0]}`?" if near else ": `gnomon.pricing.books` takes one of your own"
            what = f"no price book has the vendor `{upstream.vendor}`, its calls are unpriced"
            found.append(f"{project.id}/{upstream.id}: {what}{hint}")
    return found


def server_files(settings: Settings, folder: Path) -> None:
    """
    Write the files for a server, mode 0600, and name them on stdout.

    Raises:
        UsageError: the configuration names no writer and no reader with their password files.
        EmbeddedError: a password file cannot be read.
    """
    from analytics.embedded import credentials
    from analytics.server_files import config_xml, digest, users_xml

    clickhouse = settings.gnomon.clickhouse
    if not clickhouse.user or not clickhouse.reader_user:
        raise UsageError(
            "gnomon.clickhouse: `user`, `passwordFile`, `readerUser` and `readerPasswordFile` name the server's users"
        )
    found = []
    for user, file in (
        (clickhouse.user, clickhouse.password_file),
        (clickhouse.reader_user, clickhouse.reader_password_file),
    ):
        one = credentials.read(folder, user, file)
        assert one is not None
        found += [one.user, digest(one.password)]
    texts = {
        "users.d/gnomon.xml": users_xml(*found, is_cluster=bool(clickhouse.cluster)),
        "config.d/gnomon.xml": config_xml(),
    }
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(text)
        print(path)


def summary(settings: Settings) -> str:
    """Return what a file holds, in one line."""
    parts = []
    for project in settings.projects:
        tiers = [upstream.tier for upstream in project.upstreams]
        counts = ", ".join(f"{tiers.count(tier)} {tier}" for tier in ("primary", "fallback", "shadow") if tier in tiers)
        names = ", ".join(network.id for network in project.networks)
        parts.append(f"project {project.id}: {names} ({counts})")
    return "; ".join(parts) + f"; configuration {settings.config_hash}"
