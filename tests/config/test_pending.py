"""No setting is read and silently without effect: each is used by a service, or its file is told."""

import inspect
import re

import msgspec
import pytest

from gnomon.config import model, schema
from gnomon.config.errors import ConfigError
from gnomon.config.keys import SECTIONS
from gnomon.config.load import loads
from gnomon.config.pending import PENDING, Pending
from tests.config.test_load import ONE, upstream, with_upstreams
from tests.services import ROOT

ROOMS = ("gnomon", "proxy", "ingest", "analytics", "api")

ELSEWHERE = {
    "tags": "the tier is made from them",
    "workers": "more than one is an error",
    "chain_id": "stands in the network's id",
    "warnings": "printed by each command",
    "config_hash": "stands in each event",
    "control_secret_file": "read by gnomon.config.control",
    **dict.fromkeys(
        ("threshold", "open_for_seconds", "failure_count", "failure_capacity", "success_count", "success_capacity"),
        "members of a breaker",
    ),
    **dict.fromkeys(("header", "value"), "members of a relayed error"),
    **dict.fromkeys(("cert", "key"), "members of TLS"),
}
"""Members that no service reads by name, and why that is right."""


def product_source() -> str:
    files = [f for room in ROOMS for f in (ROOT / room).rglob("*.py") if (ROOT / "gnomon" / "config") not in f.parents]
    return "\n".join(file.read_text("utf-8") for file in files)


def members() -> set[str]:
    """Return the names of all members of the effective settings."""
    structs = [c for c in vars(model).values() if inspect.isclass(c) and issubclass(c, msgspec.Struct)]
    return {name for struct in structs for name in struct.__struct_fields__}


def is_read(name: str, source: str) -> bool:
    return re.search(rf"\.{name}\b", source) is not None


def test_each_setting_is_read_or_told() -> None:
    """
    A member that no service reads is in the list of what is not in force, or has its reason here.

    Where this fails: read the setting where it belongs, or add its key to `gnomon/config/pending.py`; then `make docs`.
    """
    source = product_source()
    told = {pending.attribute for pending in PENDING.values()} | set(ELSEWHERE)

    assert sorted({name for name in members() if not is_read(name, source)} - told) == []


def test_what_is_in_force_is_not_called_pending() -> None:
    """Once a service reads a setting, `gnomon/config/pending.py` must forget it."""
    source = product_source()
    shared = {"tls"}
    """A member of a shadow, or of the proxy, has the same name and is in force."""

    assert {p.attribute for p in PENDING.values() if is_read(p.attribute, source)} - shared == set()


def test_the_list_names_keys_that_exist() -> None:
    """Each entry is a key that has an effect once it is in force."""
    for section, name in PENDING:
        key = SECTIONS[section].key(name)

        assert key is not None, f"{section}.{name}"
        assert key.use == "used", f"{section}.{name}"


def test_a_guard_that_is_not_in_force_refuses_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody believes to be protected who is not."""
    guard = Pending("guard", "it does not do this yet", "cors")
    monkeypatch.setattr(schema, "PENDING", {("api", "cors"): guard})
    more = "gnomon: {api: {cors: {allowedOrigins: [x]}}}"

    with pytest.raises(ConfigError, match=r"not .* yet"):
        with_upstreams(ONE, more=more)
    body = f"projects: [{{id: main, upstreams: [{ONE}]}}]\n{more}"
    assert any("not" in w for w in loads(body, environment={}, allow_insecure=True).warnings)


def test_what_is_switched_off_is_not_missed() -> None:
    """`false` asks for nothing, so there is nothing to warn of."""
    own = ONE.replace("}}", ", skipWhenSyncing: false}, routing: {probe: off}, validators: {}}")
    settings = with_upstreams(own)

    assert settings.warnings == ()
    assert upstream(settings, "a").probe is False
