"""
The secret by which the API tells a proxy whom not to call: of `gnomon.proxy.controlSecretFile`, else made once below
the data folder, where both read it.
"""

import os
import secrets
from pathlib import Path
from typing import Final

from gnomon.config.model import Settings
from gnomon.errors import UsageError

FILE: Final = "proxy-control"
MIN_CHARACTERS: Final = 16


class ControlSecretError(UsageError):
    """The secret cannot be read, or is none."""


def secret_file(settings: Settings, data_dir: Path) -> Path:
    """Return where the secret is."""
    configured = settings.gnomon.proxy.control_secret_file
    return Path(configured) if configured else data_dir / "secrets" / FILE


def read(settings: Settings, data_dir: Path) -> str:
    """
    Return the secret.

    Raises:
        ControlSecretError: there is none, or it cannot be used; the message names the file and the way out.
    """
    file = secret_file(settings, data_dir)
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ControlSecretError(
            f"cannot read the proxy's control secret {file}: {error.strerror}; `gnomon proxy` with the same --data "
            "makes one, or set gnomon.proxy.controlSecretFile for both"
        ) from error
    except UnicodeDecodeError as error:
        raise ControlSecretError(f"the proxy's control secret {file} is not plain text") from error
    if len(text) < MIN_CHARACTERS:
        raise ControlSecretError(f"the proxy's control secret {file} has less than {MIN_CHARACTERS} characters")
    return text


def read_or_generate(settings: Settings, data_dir: Path) -> str:
    """
    Return the secret; make one (mode 0600) where none is configured and none is there.

    Raises:
        ControlSecretError: as `read`, or it cannot be written.
    """
    file = secret_file(settings, data_dir)
    if not settings.gnomon.proxy.control_secret_file and not file.exists():
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = file.with_name(f".{file.name}.{os.getpid()}")
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as out:
                out.write(secrets.token_urlsafe(32) + "\n")
            os.replace(temporary, file)
        except OSError as error:
            raise ControlSecretError(f"cannot write the proxy's control secret {file}: {error.strerror}") from error
    return read(settings, data_dir)


def proxies(settings: Settings) -> tuple[str, ...]:
    """Return the addresses of the proxies: those of `gnomon.alerts.proxies`, else this configuration's own."""
    if settings.gnomon.alerts.proxies:
        return tuple(address.rstrip("/") for address in settings.gnomon.alerts.proxies)
    proxy = settings.gnomon.proxy
    if not proxy.port:
        return ()
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(proxy.host, proxy.host)
    shown = f"[{host}]" if ":" in host else host
    return (f"{'https' if proxy.tls is not None else 'http'}://{shown}:{proxy.port}",)
