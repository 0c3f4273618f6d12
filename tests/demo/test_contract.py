"""The assembler and the demo's contract."""

import pytest

from gnomon.demo import contract


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", ""),
        ("STOP", "00"),
        ("0x00 0x1234", "6000611234"),
        (contract.SET_TOPIC, "7f" + contract.SET_TOPIC[2:]),
        ("@end JUMPI :end STOP", "610004575b00"),
        (":top @top JUMPI", "5b61000057"),
    ],
    ids=["empty", "opcode", "pushes", "push-32", "label-ahead", "label-behind"],
)
def test_assembles(text: str, code: str) -> None:
    """Opcodes, pushes of the written width, and labels become machine code."""
    assert code == contract.assemble(text).hex()


@pytest.mark.parametrize("text", ["NOTHING", "@nowhere JUMPI"])
def test_unknown_words_are_errors(text: str) -> None:
    """An unknown opcode or label is refused."""
    with pytest.raises(KeyError):
        contract.assemble(text)


def test_creation_returns_the_runtime() -> None:
    """The creation code is a prefix that copies and returns exactly the runtime code behind it."""
    creation, runtime = contract.creation_code(), contract.runtime_code()

    size = (len(runtime) - 2) // 2
    assert creation.endswith(runtime[2:])
    assert creation[2:8] == f"61{size:04x}"
    assert creation.count(f"61{size:04x}") == 2
    prefix = (len(creation) - len(runtime)) // 2
    assert f"60{prefix:02x}" == creation[8:12]


def test_selectors_are_of_the_named_functions() -> None:
    """Selectors and topic are the Keccak hashes of the signatures in the docstring."""
    keccak = pytest.importorskip("eth_utils").keccak

    signatures = {
        "set(uint256,uint256)": contract.SET,
        "get(uint256)": contract.GET,
        "fail()": contract.FAIL,
        "boom()": contract.BOOM,
        "env()": contract.ENV,
        "Error(string)": contract.ERROR_SELECTOR,
    }
    assert signatures == {text: keccak(text=text).hex()[:8] for text in signatures}
    assert "0x" + keccak(text="Set(uint256,uint256)").hex() == contract.SET_TOPIC
