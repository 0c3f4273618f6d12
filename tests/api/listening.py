"""The application on a port, as `gnomon api` serves it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from tests.api.calling import Api


@contextmanager
def listening(api: Api) -> Iterator[str]:
    """Serve it, in a thread, until the block ends; give its address."""
    config = uvicorn.Config(api.door, port=0, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        thread.join(0.05)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
