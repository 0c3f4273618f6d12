"""The small server speaks JSON-RPC 2.0."""

from collections.abc import Sequence

import pytest

from gnomon.demo.chain import RpcFault
from gnomon.demo.rpc_server import RpcServer


def answer(method: str, params: Sequence[object]) -> object:
    if method == "fail":
        raise RpcFault(3, "no", "0x01" if params else None)
    return [method, *params]


@pytest.mark.parametrize(
    ("message", "response"),
    [
        ({"id": "x", "method": "m", "params": [1]}, {"jsonrpc": "2.0", "id": "x", "result": ["m", 1]}),
        ({"id": 1, "method": "m"}, {"jsonrpc": "2.0", "id": 1, "result": ["m"]}),
        ({"id": 1, "method": "fail"}, {"jsonrpc": "2.0", "id": 1, "error": {"code": 3, "message": "no"}}),
        (
            {"id": 1, "method": "fail", "params": [0]},
            {"jsonrpc": "2.0", "id": 1, "error": {"code": 3, "message": "no", "data": "0x01"}},
        ),
    ],
    ids=["params", "no-params", "error", "error-data"],
)
def test_responds(message: object, response: object) -> None:
    """Results and errors carry the request's id."""
    assert response == RpcServer(answer).respond(message)


@pytest.mark.parametrize(
    ("message", "code"), [(1, -32600), ({"id": 1}, -32600), ({"id": 1, "method": "m", "params": {"a": 1}}, -32602)]
)
def test_refuses_what_is_no_request(message: object, code: int) -> None:
    """What is no request gets the standard's error."""
    error = RpcServer(answer).respond(message)["error"]

    assert isinstance(error, dict)
    assert code == error["code"]
