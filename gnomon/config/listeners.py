"""TLS of a listener: its certificate and key, checked when the file is read and loaded when the service starts."""

import ssl
from pathlib import Path
from typing import Final

from gnomon.config.errors import TlsError
from gnomon.config.model import Tls

_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_KEY: Final = b"PRIVATE KEY-----"


def server_context(tls: Tls) -> ssl.SSLContext:
    """
    Return what a listener needs to speak TLS 1.2 and newer. Reads both files.

    Raises:
        TlsError: one of the files cannot be read or used, or they do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    load(context, tls)
    return context


def load(context: ssl.SSLContext, tls: Tls) -> None:
    """
    Read certificate and key into a context, which connections from now on use.

    Raises:
        TlsError: as `server_context`; the context keeps what it had.
    """
    for member, file, mark in (("cert", tls.cert, _CERTIFICATE), ("key", tls.key, _KEY)):
        try:
            text = Path(file).read_bytes()
        except OSError as error:
            raise TlsError(member, f"cannot read {file}: {error.strerror}") from error
        if mark not in text:
            raise TlsError(member, f"{file} holds no {'certificate' if member == 'cert' else 'private key'} in PEM")
    _try(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), tls)
    _try(context, tls)


def _try(context: ssl.SSLContext, tls: Tls) -> None:
    try:
        context.load_cert_chain(tls.cert, tls.key, password=_no_password)
    except _Locked as error:
        raise TlsError("key", f"{tls.key} is locked by a password; store it without one") from error
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise TlsError("key", f"{tls.key} is not the key of {tls.cert}") from error
        raise TlsError("cert", f"{tls.cert} and {tls.key} cannot be used: {error.reason or error}") from error


class _Locked(Exception):
    """The key asks for a password."""


def _no_password() -> str:
    raise _Locked
