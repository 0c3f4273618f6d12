"""
The demo's contract: a register of numbers, written in EVM assembly so that the demo needs no compiler.

    set(uint256 key, uint256 value)   stores it and emits Set(key indexed, value)
    get(uint256 key) -> uint256
    fail()                            reverts with Error("asked to fail")
    boom()                            halts on an invalid instruction
    env() -> (number, timestamp, coinbase, prevrandao, gaslimit, basefee, chainid)
"""

from typing import Final

SET: Final = "1ab06ee5"
GET: Final = "9507d39a"
FAIL: Final = "a9cc4718"
BOOM: Final = "a169ce09"
ENV: Final = "9dca0032"
SET_TOPIC: Final = "0x545b620a3000f6303b158b321f06b4e95e28a27d70aecac8c6bdac4f48a9f6b3"
"""keccak256 of `Set(uint256,uint256)`."""
FAIL_TEXT: Final = "asked to fail"
ERROR_SELECTOR: Final = "08c379a0"
"""Of `Error(string)`, the form in which Solidity reverts with a text."""

_OPCODES: Final = {
    "STOP": 0x00,
    "EQ": 0x14,
    "SHR": 0x1C,
    "CALLDATALOAD": 0x35,
    "CODECOPY": 0x39,
    "COINBASE": 0x41,
    "TIMESTAMP": 0x42,
    "NUMBER": 0x43,
    "PREVRANDAO": 0x44,
    "GASLIMIT": 0x45,
    "CHAINID": 0x46,
    "BASEFEE": 0x48,
    "MSTORE": 0x52,
    "SLOAD": 0x54,
    "SSTORE": 0x55,
    "JUMPI": 0x57,
    "JUMPDEST": 0x5B,
    "DUP1": 0x80,
    "LOG2": 0xA2,
    "RETURN": 0xF3,
    "REVERT": 0xFD,
    "INVALID": 0xFE,
}

_RUNTIME: Final = f"""
    0x00 CALLDATALOAD 0xe0 SHR
    DUP1 0x{SET} EQ @set JUMPI
    DUP1 0x{GET} EQ @get JUMPI
    DUP1 0x{FAIL} EQ @fail JUMPI
    DUP1 0x{BOOM} EQ @boom JUMPI
    DUP1 0x{ENV} EQ @env JUMPI
    0x00 0x00 REVERT
    :set
    0x24 CALLDATALOAD DUP1 0x04 CALLDATALOAD SSTORE
    0x00 MSTORE
    0x04 CALLDATALOAD {SET_TOPIC} 0x20 0x00 LOG2
    STOP
    :get
    0x04 CALLDATALOAD SLOAD 0x00 MSTORE 0x20 0x00 RETURN
    :fail
    0x{ERROR_SELECTOR}{"00" * 28} 0x00 MSTORE
    0x20 0x04 MSTORE
    0x{len(FAIL_TEXT):02x} 0x24 MSTORE
    0x{FAIL_TEXT.encode().hex():0<64} 0x44 MSTORE
    0x64 0x00 REVERT
    :boom
    INVALID
    :env
    NUMBER 0x00 MSTORE TIMESTAMP 0x20 MSTORE COINBASE 0x40 MSTORE PREVRANDAO 0x60 MSTORE
    GASLIMIT 0x80 MSTORE BASEFEE 0xa0 MSTORE CHAINID 0xc0 MSTORE
    0xe0 0x00 RETURN
"""


def assemble(text: str) -> bytes:
    """
    Return the machine code of `text`: opcodes, `0x…` (a push of that many bytes), `:name` (a jump destination)
    and `@name` (a push of its offset, below 65,536).

    Raises:
        KeyError: an opcode or a label is not known.

    >>> assemble("@end JUMPI :end STOP").hex()
    '610004575b00'
    """
    code = bytearray()
    labels: dict[str, int] = {}
    uses: list[tuple[int, str]] = []
    for word in text.split():
        if word.startswith("0x"):
            value = bytes.fromhex(word[2:])
            code += bytes([0x5F + len(value)]) + value
        elif word.startswith(":"):
            labels[word[1:]] = len(code)
            code.append(_OPCODES["JUMPDEST"])
        elif word.startswith("@"):
            code += b"\x61\x00\x00"
            uses.append((len(code) - 2, word[1:]))
        else:
            code.append(_OPCODES[word])
    for offset, name in uses:
        code[offset : offset + 2] = labels[name].to_bytes(2, "big")
    return bytes(code)


def runtime_code() -> str:
    """Return the deployed code as hex with prefix."""
    return "0x" + assemble(_RUNTIME).hex()


def creation_code() -> str:
    """Return the data of the transaction that deploys the contract: copy the code that follows and return it."""
    runtime = assemble(_RUNTIME)
    size = f"0x{len(runtime):04x}"
    prefix_length = len(assemble(f"{size} 0x00 0x00 CODECOPY {size} 0x00 RETURN"))
    prefix = assemble(f"{size} 0x{prefix_length:02x} 0x00 CODECOPY {size} 0x00 RETURN")
    return "0x" + prefix.hex() + runtime.hex()


def word(number: int) -> str:
    """Return a 256-bit word as 64 hex digits."""
    return f"{number:064x}"


def set_call(key: int, value: int) -> str:
    """Return the call data of `set`."""
    return f"0x{SET}{word(key)}{word(value)}"


def get_call(key: int) -> str:
    """Return the call data of `get`."""
    return f"0x{GET}{word(key)}"


def revert_data() -> str:
    """Return what `fail()` reverts with: Error(string)."""
    return f"0x{ERROR_SELECTOR}{word(32)}{word(len(FAIL_TEXT))}{FAIL_TEXT.encode().hex():0<64}"
