"""
The files of the dashboard: read once, served under an address that names their content.

`/static/<digest>/js/main.js`: the digest is of the whole tree, so that modules import each other by relative paths and
an answer may be kept for ever. An unknown digest is 404: a page of another release asks for other files.
"""

import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

PREFIX = "/static"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".md": "text/plain", "": "text/plain"}
_MIN_GZIP_BYTES = 512


@dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    body: bytes
    gzipped: bytes
    """Empty where it would not be shorter."""
    media_type: str


@dataclass(frozen=True, slots=True)
class Assets:
    """All files, by their path below `static/`."""

    files: Mapping[str, Asset]
    digest: str

    def url(self, path: str) -> str:
        """
        Return the address of a file.

        Raises:
            KeyError: there is no such file: a fault of a template.
        """
        if path not in self.files:
            raise KeyError(path)
        return f"{PREFIX}/{self.digest}/{path}"


@cache
def load() -> Assets:
    """Return the files of the package."""
    found = dict(_walk(resources.files("api") / "static", ""))
    digest = hashlib.sha256()
    for path, body in sorted(found.items()):
        digest.update(f"{path}\0{len(body)}\0".encode())
        digest.update(body)
    return Assets({path: _asset(path, body) for path, body in found.items()}, digest.hexdigest()[:12])


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _walk(entry, f"{prefix}{entry.name}/")
        elif not entry.name.startswith("."):
            found.append((prefix + entry.name, entry.read_bytes()))
    return found


def _asset(path: str, body: bytes) -> Asset:
    name = path.rpartition("/")[2]
    ending = f".{name.rpartition('.')[2]}" if "." in name else ""
    media_type = _TYPES.get(ending) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    if media_type.startswith("text/"):
        media_type += "; charset=utf-8"
    short = gzip.compress(body, 9, mtime=0) if len(body) >= _MIN_GZIP_BYTES else b""
    return Asset(body, short if len(short) < len(body) else b"", media_type)
