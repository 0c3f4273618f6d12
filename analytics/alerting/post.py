"""One HTTP POST: its status, or why there is no answer. Nothing of the address is repeated: it may hold a secret."""

import http.client
import ipaddress
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    """0 = there is none."""
    error: str = ""
    retry_after_seconds: float = 0.0

    @property
    def is_taken(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_away(self) -> bool:
        """Whether the same may be taken later."""
        return self.status in (0, 408, 425, 429) or self.status >= 500


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would become a GET, or carry a secret elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def post(url: str, body: object, headers: Mapping[str, str], timeout_seconds: float = TIMEOUT_SECONDS) -> Answer:
    """Send a JSON body; return the answer."""
    data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    members = {"Content-Type": "application/json", "User-Agent": "gnomon", **headers}
    try:
        request = urllib.request.Request(url, data, members, method="POST")
        host = urllib.parse.urlsplit(url).hostname or ""
        proxies = [urllib.request.ProxyHandler({})] if _is_local(host) else []
        with urllib.request.build_opener(_NoRedirect, *proxies).open(request, timeout=timeout_seconds) as response:
            response.read(1 << 16)
            return Answer(response.status)
    except urllib.error.HTTPError as error:
        with error:
            text = error.read(300).decode("utf-8", "replace").strip()
            said = f"HTTP {error.code}: {text}".rstrip(": ")
            return Answer(error.code, said, _seconds(error.headers.get("Retry-After")))
    except urllib.error.URLError as error:
        return Answer(0, f"no answer: {error.reason}")
    except (OSError, http.client.HTTPException) as error:
        return Answer(0, f"no answer: {type(error).__name__}")
    except ValueError:
        return Answer(0, "the address is no URL")


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isascii() and text.isdigit() else 0.0
