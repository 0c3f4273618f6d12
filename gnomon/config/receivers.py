"""
Receivers of alerts: `{name: ops, webhook: {url: …}}`, one kind each. Secrets stand in files, or in the address.

    webhook       url | urlFile, tokenFile (sent as a bearer token)
    slack         url | urlFile
    pagerduty     routingKeyFile, url (where events go, if not PagerDuty's own address)
    alertmanager  url | urlFile, tokenFile
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Literal, get_args

from gnomon.config.endpoints import MASK, check

ReceiverKind = Literal["webhook", "slack", "pagerduty", "alertmanager"]
KINDS: Final[tuple[ReceiverKind, ...]] = get_args(ReceiverKind)
_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    "webhook": frozenset({"url", "urlFile", "tokenFile"}),
    "slack": frozenset({"url", "urlFile"}),
    "pagerduty": frozenset({"routingKeyFile", "url"}),
    "alertmanager": frozenset({"url", "urlFile", "tokenFile"}),
}
_FILES: Final = ("urlFile", "tokenFile", "routingKeyFile")


@dataclass(frozen=True, slots=True)
class Receiver:
    """Where alerts go; addresses and file names are not shown, they may hold secrets."""

    name: str
    kind: ReceiverKind
    url: str = field(default="", repr=False)
    url_file: str = ""
    token_file: str = ""
    routing_key_file: str = ""


def parse(given: Sequence[object], report: Callable[[int, str, str], None], folder: Path = Path()) -> list[Receiver]:
    """
    Return the receivers that are well formed.

    Args:
        given: as the configuration has them.
        report: is told what is wrong: index, member (`` or `webhook.url`), message.
        folder: where files that they name are looked up.
    """
    receivers: list[Receiver] = []
    names: set[str] = set()
    for index, entry in enumerate(given):
        if not isinstance(entry, Mapping):
            report(index, "", "expected a mapping with `name` and a kind")
            continue
        name = entry.get("name")
        if not isinstance(name, str) or not name:
            report(index, "name", "is missing")
            name = ""
        elif name in names:
            report(index, "name", f"two receivers are called `{name}`")
        names.add(name)
        kinds = [kind for kind in KINDS if kind in entry]
        for odd in sorted(str(key) for key in entry if key != "name" and key not in KINDS):
            report(index, odd, f"unknown kind; there are {', '.join(KINDS)}")
        if len(kinds) != 1:
            report(index, "", f"one of {', '.join(KINDS)} is needed")
            continue
        receiver = _one(name, kinds[0], entry[kinds[0]], partial(report, index), folder)
        if receiver is not None:
            receivers.append(receiver)
    return receivers


def _one(
    name: str, kind: ReceiverKind, members: object, report: Callable[[str, str], None], folder: Path
) -> Receiver | None:
    if not isinstance(members, Mapping):
        report(kind, "expected a mapping")
        return None
    texts: dict[str, str] = {}
    for key, value in members.items():
        if key not in _MEMBERS[kind]:
            report(f"{kind}.{key}", f"unknown key; there are {', '.join(sorted(_MEMBERS[kind]))}")
        elif not isinstance(value, str) or not value:
            report(f"{kind}.{key}", "expected a text")
        else:
            texts[key] = value
    if len(texts) != len(members):
        return None
    url = texts.get("url", "")
    if url and url != MASK and (wrong := check(url) or (None if url.startswith("http") else "is no http(s) URL")):
        report(f"{kind}.url", wrong)
        return None
    needed = ("routingKeyFile",) if kind == "pagerduty" else ("url", "urlFile")
    if len([member for member in needed if member in texts]) != 1:
        report(kind, f"{' or '.join(needed)} is needed")
        return None
    files = {member: str(folder / texts[member]) if member in texts else "" for member in _FILES}
    return Receiver(name, kind, url, files["urlFile"], files["tokenFile"], files["routingKeyFile"])
