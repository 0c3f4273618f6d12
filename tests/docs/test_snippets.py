"""What stands in fenced blocks can be tried, or says why not; every part of a configuration is a valid one."""

import copy
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from analytics.alerting.rules import configured
from gnomon.cli import build_parser
from gnomon.config.load import loads
from gnomon.cost.book import parse as parse_book
from tests.docs.pages import PAGES
from tests.docs.snippets import LANGUAGES, MARKS, Block, blocks

BLOCKS = [block for page in PAGES for block in blocks(page)]
SMALLEST: dict[str, Any] = {
    "projects": [
        {
            "id": "main",
            "networks": [{"architecture": "evm", "evm": {"chainId": 1}}],
            "upstreams": [
                {"id": "mine", "endpoint": "http://127.0.0.1:8545", "evm": {"chainId": 1}},
                {
                    "id": "candidate",
                    "endpoint": "http://127.0.0.1:8546",
                    "evm": {"chainId": 1},
                    "shadow": {"enabled": True},
                },
                {"id": "paid", "endpoint": "http://127.0.0.1:8547", "evm": {"chainId": 1}, "tags": ["tier:fallback"]},
            ],
        }
    ]
}
"""What a part of a configuration is put into."""


def merged(into: Any, part: Any, path: list[str | int]) -> Any:
    """Return a document with a part at a place; mappings are joined, all else is replaced."""
    if path:
        into[path[0]] = merged(into[path[0]] if isinstance(path[0], int) else into.get(path[0], {}), part, path[1:])
        return into
    if isinstance(into, dict) and isinstance(part, dict):
        return {**into, **{key: merged(into[key], value, []) if key in into else value for key, value in part.items()}}
    return part


def steps(place: str) -> list[str | int]:
    """
    Return the steps of a path.

    >>> steps("projects[0].upstreams[1]")
    ['projects', 0, 'upstreams', 1]
    """
    return [int(step) if step.isdigit() else step for step in re.findall(r"\w+", place)]


def whole_text(block: Block) -> str:
    """Return what is in a file once the block is added to it; else the block's own text."""
    name = block.get("append")
    if name is None:
        return block.text
    before = [b for b in BLOCKS if b.page == block.page and b.line < block.line]
    texts: list[str] = []
    for one in before:
        texts = [one.text] if one.get("file") == name else [*texts, one.text] if one.get("append") == name else texts
    return "".join(texts) + block.text


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_says_what_it_is(block: Block) -> None:
    """Its language, marks that exist, and a reason where it is not run."""
    assert block.language in LANGUAGES
    assert {name for name, _ in block.marks} <= MARKS
    for reason in block.all("not run") + block.all("example"):
        assert len(reason.split()) >= 4, reason
    if block.language in ("text", "json"):
        assert block.get("example") is not None or block.get("file") is not None
    if block.language in ("python", "sh"):
        assert block.get("file") is not None


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "yaml"], ids=str)
def test_what_is_yaml_is_valid(block: Block, tmp_path: Path) -> None:
    """A configuration or a part of one, a rule file, a price book: its reader takes it, and warns as the page says."""
    text = whole_text(block)
    part = yaml.safe_load(text)
    if "rules" in part or "defaults" in part:
        (tmp_path / "rules.yaml").write_text(text)
        assert configured(["rules.yaml"], tmp_path, ["me", "ops", "duty"])
    elif "usd_per_million_units" in part:
        assert parse_book(text, "book").vendor
    elif block.get("not run") is None:
        for name in ("rules.yaml", "books/mine.yaml"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("rules: []\n")
        whole = part if "projects" in part else merged(copy.deepcopy(SMALLEST), part, steps(block.get("within") or ""))
        settings = loads(yaml.safe_dump(whole), folder=tmp_path, environment={"ALCHEMY_KEY": "k"})
        assert bool(settings.warnings) == (block.get("warns") is not None)


def test_a_page_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    """A fence without an end, and marks above a sentence."""
    page = tmp_path / "page.md"
    for text in ("```console\ntrue\n", "<!-- file: a -->\nText.\n", "<!-- file: a -->\n"):
        page.write_text(text)
        with pytest.raises(ValueError, match=r"no (end|block)"):
            blocks(page)


def test_blocks_are_read_with_their_marks(tmp_path: Path) -> None:
    """In order; a value may hold colons and quotes."""
    page = tmp_path / "page.md"
    page.write_text(
        'A.\n\n<!-- expect: "a": 1 -->\n<!-- background -->\n```console\ngnomon x\n```\nB.\n```text\nc\n```\n'
    )
    first, second = blocks(page)

    assert (first.language, first.text, first.line) == ("console", "gnomon x\n", 5)
    assert first.marks == (("expect", '"a": 1'), ("background", ""))
    assert (second.language, second.marks) == ("text", ())


def told(block: Block) -> list[list[str]]:
    """Return the words of each `gnomon` command in a block, without what the shell does with it."""
    found = []
    for line in block.text.replace("\\\n", " ").splitlines():
        for part in re.findall(r"(?:^|\(|; |&& )(gnomon [^|;]*)", re.sub(r"^[A-Z_]+=\S+ ", "", line.strip())):
            command = re.split(r" (?:2?>|< )|\)$", part)[0]
            found.append(shlex.split(command, comments=True)[1:])
    return found


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "console"], ids=str)
def test_each_command_is_understood(block: Block) -> None:
    """Those that are not run here too: command and options exist."""
    for words in told(block):
        assert build_parser(words[0]).parse_args(words).command == words[0]
