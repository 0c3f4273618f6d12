"""The application on a port, as `gnomon api` serves it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from tests.api.calling import Api


@contextmanager
def listening(api: Api, send_buffer_bytes: int = 0) -> Iterator[str]:
    """
    Serve it, in a thread, until the block ends; give its address.

    Args:
        send_buffer_bytes: of each connection; 0 = the system's.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    if send_buffer_bytes:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    config = uvicorn.Config(api.door, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    while not server.started:
        assert thread.is_alive()
        thread.join(0.05)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
