"""
The reference of what users meet, made from the code that they meet.

    commands.py    every command: options, defaults, exit statuses, examples     from the parsers
    events.py      every event: members, units, topics, keys                     from the event contract
    metrics.py     every metric: labels, unit, meaning                           from the closed list of each service
    questions.py   every named question: parameters, columns                     from the headers of the queries
    views.py       every view: columns, types, units, meaning                    from the descriptions of the schema

`make docs` writes the pages to docs/reference; a test holds that they are what the code says now.
"""

from collections.abc import Callable, Mapping

from gnomon.cli.reference import commands, events, metrics, questions, views

PAGES: Mapping[str, Callable[[], str]] = {
    "commands.md": commands.render,
    "events.md": events.render,
    "metrics.md": metrics.render,
    "questions.md": questions.render,
    "views.md": views.render,
}
"""Name of a file below docs/reference → its text."""
