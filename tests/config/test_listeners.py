"""A certificate and its key: what can be used, and what is said of what cannot."""

from pathlib import Path

import pytest

from gnomon.config.errors import ConfigError, TlsError
from gnomon.config.listeners import load, server_context
from gnomon.config.load import loads
from gnomon.config.model import Tls

FILES = Path(__file__).parents[1] / "tls"
CERT, KEY = str(FILES / "cert.pem"), str(FILES / "key.pem")
UPSTREAM = "projects: [{id: main, upstreams: [{id: a, endpoint: 'http://127.0.0.1:1', evm: {chainId: 1}}]}]"


@pytest.mark.parametrize(
    ("cert", "key", "member", "message"),
    [
        ("none.pem", KEY, "cert", "cannot read none.pem: No such file or directory"),
        (CERT, "none.pem", "key", "cannot read none.pem: No such file or directory"),
        (CERT, str(FILES), "key", f"cannot read {FILES}: Is a directory"),
        (KEY, KEY, "cert", f"{KEY} holds no certificate in PEM"),
        (CERT, CERT, "key", f"{CERT} holds no private key in PEM"),
        (CERT, str(FILES / "other-key.pem"), "key", f"is not the key of {CERT}"),
        (CERT, str(FILES / "locked-key.pem"), "key", "is locked by a password; store it without one"),
    ],
    ids=["no certificate", "no key", "a folder", "key for certificate", "certificate for key", "another's", "locked"],
)
def test_what_is_wrong_is_said(cert: str, key: str, member: str, message: str) -> None:
    with pytest.raises(TlsError) as caught:
        server_context(Tls(cert=cert, key=key))

    assert message in str(caught.value)
    assert caught.value.member == member


def test_a_damaged_file_is_said_to_be_one(tmp_path: Path) -> None:
    """Its first line is right, the rest is not."""
    damaged = tmp_path / "cert.pem"
    damaged.write_text(Path(CERT).read_text()[:200])

    with pytest.raises(TlsError, match=r"cert\.pem and .* cannot be used: "):
        server_context(Tls(cert=str(damaged), key=KEY))


def test_a_context_keeps_what_it_had_where_the_new_files_are_wrong() -> None:
    """So a listener goes on with its certificate."""
    context = server_context(Tls(cert=CERT, key=KEY))

    with pytest.raises(TlsError):
        load(context, Tls(cert=CERT, key=str(FILES / "other-key.pem")))
    load(context, Tls(cert=CERT, key=KEY))


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ("gnomon: {proxy: {tls: {cert: cert.pem, key: KEY}}}", "gnomon.proxy.tls.key"),
        ("server: {tls: {enabled: true, certFile: cert.pem, keyFile: KEY}}", "server.tls.keyFile"),
    ],
    ids=["ours", "eRPC's"],
)
def test_a_file_that_names_it_is_checked_with_it(more: str, path: str) -> None:
    """Paths are from the configuration's folder; the problem stands at the member at fault."""
    right = loads(f"{UPSTREAM}\n{more.replace('KEY', 'key.pem')}", folder=FILES, environment={})
    assert right.gnomon.proxy.tls == Tls(cert=CERT, key=KEY)
    with pytest.raises(ConfigError) as caught:
        loads(f"{UPSTREAM}\n{more.replace('KEY', 'other-key.pem')}", folder=FILES, environment={})

    assert [problem.path for problem in caught.value.problems] == [path]
