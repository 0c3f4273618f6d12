"""docs/api.md: its commands work, its list of problems is the list, its links lead somewhere."""

import hashlib
import re
import shlex
from itertools import pairwise
from urllib.parse import parse_qsl, urlsplit

import pytest

from analytics.alerting.rules import Rule
from analytics.questions import load
from api.access import Access, Caller, Token
from api.problems import PROBLEMS
from gnomon.config.load import loads
from tests.api.calling import Api, FakeReader, result_of, settings_of
from tests.api.world import N_PAIRS
from tests.services import ROOT

PAGE = (ROOT / "docs" / "api.md").read_text("utf-8")
COMMANDS = [line.strip() for line in PAGE.splitlines() if line.startswith("    curl ")]


def test_problems_are_listed_as_they_are() -> None:
    """Each with its status and meaning, and no other."""
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \| (.*) \|$", PAGE, re.MULTILINE)

    assert {name: (int(status), text) for name, status, text in rows} == {
        name: (problem.status, problem.meaning) for name, problem in PROBLEMS.items()
    }


@pytest.mark.clickhouse
@pytest.mark.parametrize("command", [c for c in COMMANDS if not re.search(" -(d|X|sN) ", c)])
def test_a_command_that_asks_is_answered(api: Api, command: str) -> None:
    """As it stands there."""
    (url,) = [word for word in shlex.split(command) if word.startswith("http")]
    parts = urlsplit(url)
    answer = api.get(parts.path, **{f"{name}_": value for name, value in parse_qsl(parts.query)})

    assert (parts.scheme, parts.netloc) == ("http", "127.0.0.1:8080")
    assert answer.status == 200, answer.body
    assert "items" in answer.json()


def test_the_stream_is_heard_as_the_page_says() -> None:
    """With its first event, until the command's own end, which here is the stream's."""
    (command,) = [c for c in COMMANDS if " -sN " in c]
    one = Api(FakeReader(result_of(load("stored_since"))))
    one.services.live.longest_seconds = 0.05
    answer = one.get(urlsplit(shlex.split(command)[-1]).path)

    assert (answer.status, answer.is_whole) == (200, True)
    assert b"event: hello\n" in answer.body


def sent(ending: str, method: str = "POST") -> tuple[str, dict[str, str], bytes]:
    """Return path, headers and body of the first command that sends something to a path with this ending."""
    return all_sent(ending, method)[0]


def all_sent(ending: str, method: str = "POST") -> list[tuple[str, dict[str, str], bytes]]:
    found = []
    for command in COMMANDS:
        words = shlex.split(command)
        path = urlsplit(next(word for word in words if word.startswith("http"))).path
        said = dict(pairwise(words))
        if path.endswith(ending) and said.get("-X", "POST" if "-d" in words else "GET") == method:
            headers = dict(re.split(r":\s*", word, maxsplit=1) for flag, word in pairwise(words) if flag == "-H")
            found.append((path, headers, said.get("-d", "").encode()))
    return found


@pytest.mark.clickhouse
def test_statements_are_answered(api: Api) -> None:
    """Each in its format, as they stand there."""
    answers = [api.call("POST", path, headers=headers, body=body) for path, headers, body in all_sent("/sql")]

    assert [(one.status, one.headers["content-type"]) for one in answers] == [
        (200, "application/json"), (200, "application/vnd.apache.parquet"),
    ]  # fmt: skip
    assert sum(item["n"] for item in answers[0].json()["items"]) == N_PAIRS


def test_a_pair_is_judged_as_the_page_says() -> None:
    """The mask of the command hides what differs in it."""
    path, headers, body = sent("/preview")
    answer = Api(FakeReader(RuntimeError("asked"))).call("POST", path, headers=headers, body=body).json()

    assert answer["outcome"] == "identical_masked"
    assert [one["mask"] for one in answer["masks"] if one["hides"]] == ["blockTimestamp"]


def test_a_command_that_changes_is_understood() -> None:
    """With a token; ClickHouse is away here, so it gets as far as to it."""
    path, headers, body = sent("/silences")
    one = Api(
        FakeReader(result_of(load("silences"))),
        settings_of("{clickhouse: {url: 'http://127.0.0.1:9'}}"),
        Access([Token(Caller("ann", "admin"), hashlib.sha256(b"TOKEN").digest())]),
        rules=(Rule("HeadLag", "SELECT 1 AS value", 5.0),),
    )

    assert one.call("POST", path, headers=headers, body=body).problem == "store-away"


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_command_that_cordons_is_understood(method: str) -> None:
    """It gets as far as to the proxy, which is away here."""
    path, headers, body = sent("/cordon", method)
    upstream = "{id: mine, endpoint: 'http://127.0.0.1:1', evm: {chainId: 1}}"
    one = Api(
        FakeReader(result_of(load("silences"))),
        loads(f"projects: [{{id: main, upstreams: [{upstream}]}}]\ngnomon: {{proxy: {{port: 9}}}}", environment={}),
        Access([Token(Caller("ann", "admin"), hashlib.sha256(b"TOKEN").digest())]),
    )

    assert one.call(method, path, headers=headers, body=body).problem == "proxy-away"
