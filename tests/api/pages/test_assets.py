"""The files of the dashboard are what they are said to be."""

import hashlib
import re
from pathlib import Path

import pytest

from api.pages import assets
from tests.services import ROOT

STATIC = ROOT / "api" / "static"
VENDOR = STATIC / "vendor"
LOCK = VENDOR / "lock.txt"


def locked() -> dict[str, str]:
    lines = [line for line in LOCK.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return {path: digest for digest, path in (line.split("  ") for line in lines)}


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_what_is_vendored_is_what_was_locked() -> None:
    """Each file of others is listed with its hash, and none is there that is not listed."""
    there = {file.relative_to(VENDOR).as_posix(): sha256(file) for file in VENDOR.rglob("*") if file.is_file()}
    there.pop("lock.txt")

    assert there == locked()


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    """The check can fail: one byte more is another hash."""
    name, digest = next(iter(locked().items()))
    changed = tmp_path / "changed"
    changed.write_bytes((VENDOR / name).read_bytes() + b" ")

    assert sha256(changed) != digest


@pytest.mark.parametrize("folder", sorted(folder.name for folder in VENDOR.iterdir() if folder.is_dir()))
def test_each_library_has_its_licence_and_version(folder: str) -> None:
    """A LICENSE beside it, and a version in each file's name."""
    files = [file.name for file in (VENDOR / folder).iterdir()]

    assert "LICENSE" in files
    assert all(re.search(r"-\d+\.\d+\.\d+\.", name) for name in files if name != "LICENSE")


def test_addresses_name_the_content() -> None:
    """All files under one digest; another content gives another one."""
    loaded = assets.load()

    assert re.fullmatch(r"[0-9a-f]{12}", loaded.digest)
    assert loaded.url("app.css") == f"/static/{loaded.digest}/app.css"
    with pytest.raises(KeyError, match=r"none\.css"):
        loaded.url("none.css")


def test_types_are_named() -> None:
    """Browsers are told not to guess, so each type is right."""
    files = assets.load().files

    assert files["app.css"].media_type == "text/css; charset=utf-8"
    assert files["js/main.js"].media_type == "text/javascript; charset=utf-8"
    assert "application/octet-stream" not in {asset.media_type for asset in files.values()}


def test_modules_import_what_is_there() -> None:
    """Each import of our modules names a file beside it."""
    for file in (STATIC / "js").glob("*.js"):
        for name in re.findall(r"""from "(\./[^"]+)"|import "(\./[^"]+)\"""", file.read_text("utf-8")):
            assert (file.parent / "".join(name)).is_file(), f"{file.name} imports {name}"


def test_our_modules_keep_to_the_policy() -> None:
    """No code and no markup made from text, no style attribute: what the policy refuses, or a chain could use."""
    forbidden = re.compile(
        r"\beval\(|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\"style\"|\.style\b"
    )
    for file in (STATIC / "js").glob("*.js"):
        assert forbidden.findall(file.read_text("utf-8")) == [], file.name
