"""
`/healthz` and `/metrics` of the processors, on a thread of their own so that a long insert does not hide them.

Only GET, only loopback unless told otherwise; there a foreign Host header is refused (DNS rebinding).
"""

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from gnomon.config.services import is_loopback

_LOCAL = frozenset({"127.0.0.1", "localhost", "::1", ""})


class HealthServer:
    """Serves two texts."""

    def __init__(
        self, health: Callable[[], tuple[bool, str]], metrics: Callable[[], str], port: int = 0, host: str = "127.0.0.1"
    ) -> None:
        """
        Args:
            health: gives whether all is well, and a JSON text that says more.
            metrics: gives the exposition text.
            port: 0 picks a free one.
            host: where to listen.

        Raises:
            OSError: the port is taken, or the address is not ours.
        """
        is_local = is_loopback(host)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.headers.get("Host", "").rsplit(":", 1)[0].strip("[]")
                if is_local and name not in (*_LOCAL, host):
                    self._send(403, "text/plain", "foreign Host\n")
                elif self.path == "/healthz":
                    is_well, text = health()
                    self._send(200 if is_well else 503, "application/json", text + "\n")
                elif self.path == "/metrics":
                    self._send(200, "text/plain; version=0.0.4; charset=utf-8", metrics())
                else:
                    self._send(404, "text/plain", "there are /healthz and /metrics\n")

            def _send(self, status: int, kind: str, text: str) -> None:
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing per request."""

        Handler.timeout = 10.0
        self._server = _server_class(host)((host, port), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)

    def start(self) -> None:
        """Serve until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and close the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5.0)


class _Over6(ThreadingHTTPServer):
    address_family = socket.AF_INET6


def _server_class(host: str) -> type[ThreadingHTTPServer]:
    return _Over6 if ":" in host else ThreadingHTTPServer
