"""The listener: what its connections take from it."""

import socket
import sys

import pytest

from api.serving import UNHEARD_SECONDS, CannotListen, bind
from gnomon.config.model import ApiSettings


@pytest.mark.skipif(sys.platform != "linux", reason="connections take these options from their listener on Linux")
def test_a_peer_that_is_gone_without_a_word_is_noticed() -> None:
    """The kernel asks it now and then, and ends the connection when nothing is acknowledged for so long."""
    with bind(ApiSettings(port=0)) as listener:
        listener.setblocking(True)
        listener.listen()
        with socket.create_connection(listener.getsockname()[:2], timeout=60):
            with listener.accept()[0] as taken:
                found = [
                    taken.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                    taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
                    taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
                ]

    assert found == [1, UNHEARD_SECONDS // 2, UNHEARD_SECONDS * 1000]


def test_a_port_that_is_taken_is_named() -> None:
    """With the setting that chooses another."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        with pytest.raises(CannotListen, match=r"set gnomon\.api\.host or port"):
            bind(ApiSettings(port=other.getsockname()[1]))
