"""
The writer's user and password: those of the configuration, else generated once under the data folder.

Only who has them may write to the embedded ClickHouse; everybody else on loopback reads the views of `gnomon`.
"""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from analytics.embedded.errors import EmbeddedError

DEFAULT_USER = "gnomon"
USER_FILE = "clickhouse-user"
PASSWORD_FILE = "clickhouse-password"


@dataclass(frozen=True, slots=True)
class Credentials:
    user: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials(user={self.user!r}, password='***')"


def secrets_folder(data_dir: Path) -> Path:
    return data_dir / "secrets"


def read(data_dir: Path, user: str, password_file: str) -> Credentials | None:
    """
    Return the writer's credentials, or None when none are configured and none were generated yet.

    Args:
        data_dir: the data folder of `up` or `gnomon clickhouse`.
        user, password_file: as configured; a password file without a user means `gnomon`.

    Raises:
        EmbeddedError: a user without a password file, or a file that cannot be read or is empty.
    """
    if password_file:
        return Credentials(user or DEFAULT_USER, _read(Path(password_file)))
    if user:
        raise EmbeddedError("gnomon.clickhouse.user is set but gnomon.clickhouse.passwordFile is not; set both or none")
    folder = secrets_folder(data_dir)
    if not (folder / PASSWORD_FILE).exists():
        return None
    return Credentials(_read(folder / USER_FILE), _read(folder / PASSWORD_FILE))


def read_or_generate(data_dir: Path, user: str, password_file: str) -> Credentials:
    """
    Return the writer's credentials; generate and keep them (mode 0600) when there are none.

    Raises:
        EmbeddedError: as `read`, or the folder cannot be written.
    """
    found = read(data_dir, user, password_file)
    if found is not None:
        return found
    folder = secrets_folder(data_dir)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = Credentials(DEFAULT_USER, secrets.token_urlsafe(24))
        _write(folder / USER_FILE, made.user)
        _write(folder / PASSWORD_FILE, made.password)
    except OSError as error:
        raise EmbeddedError(f"cannot write the generated credentials under {folder}: {error.strerror}") from error
    return made


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise EmbeddedError(f"cannot read {path}: {error.strerror}") from error
    if not text:
        raise EmbeddedError(f"{path} is empty; it must hold the name or password in one line")
    return text


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
