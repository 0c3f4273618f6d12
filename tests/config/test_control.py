"""The control secret: made once, read by both sides, and named where it cannot be."""

import stat
from pathlib import Path

import pytest

from gnomon.config import control
from gnomon.config.control import ControlSecretError
from gnomon.config.load import loads
from gnomon.config.model import Settings
from tests.config.test_load import ONE


def settings(gnomon: str = "{}", folder: Path = Path()) -> Settings:
    text = f"projects: [{{id: main, upstreams: [{ONE}]}}]\ngnomon: {gnomon}"
    return loads(text, folder=folder, environment={}, allow_insecure=True)


def test_a_secret_is_made_once(tmp_path: Path) -> None:
    """For its owner alone; the second who asks gets the same."""
    made = control.read_or_generate(settings(), tmp_path)
    file = tmp_path / "secrets" / "proxy-control"

    assert made == control.read_or_generate(settings(), tmp_path) == control.read(settings(), tmp_path)
    assert len(made) >= 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_configured_file_is_read_and_never_made(tmp_path: Path) -> None:
    """Beside the configuration; one that is not there is an error that names it."""
    named = settings("{proxy: {controlSecretFile: mine}}", tmp_path)
    with pytest.raises(ControlSecretError, match=r"mine: No such file.*controlSecretFile"):
        control.read_or_generate(named, tmp_path / "data")
    (tmp_path / "mine").write_text("0123456789abcdef\n")

    assert control.read_or_generate(named, tmp_path / "data") == "0123456789abcdef"
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "less than 16"), (b"short", "less than"), (b"\xff" * 40, "plain text")]
)
def test_a_secret_that_is_none_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    """Without a word of it."""
    (tmp_path / "mine").write_bytes(content)
    with pytest.raises(ControlSecretError, match=message):
        control.read(settings("{proxy: {controlSecretFile: mine}}", tmp_path), tmp_path)


@pytest.mark.parametrize(
    ("gnomon", "expected"),
    [
        ("{}", ("http://127.0.0.1:4000",)),
        ("{proxy: {port: 5000, host: 0.0.0.0}}", ("http://127.0.0.1:5000",)),
        ("{proxy: {host: '::'}}", ("http://[::1]:4000",)),
        ("{proxy: {port: 0}}", ()),
        ("{alerts: {proxies: ['http://a:4000/', 'https://b:4000']}}", ("http://a:4000", "https://b:4000")),
    ],
)
def test_proxies_are_those_named_or_our_own(gnomon: str, expected: tuple[str, ...]) -> None:
    """At an address that can be called."""
    assert control.proxies(settings(gnomon)) == expected
