"""What the demonstration needs of its nodes, whatever they are."""

from dataclasses import dataclass
from typing import Final, Protocol

HISTORY_BLOCKS: Final = 24
"""Blocks that are there before the first call."""
BLOCK_SECONDS: Final = 2
"""Between two blocks while the demonstration runs, on the clock and in the timestamps."""
GENESIS_AGE_SECONDS: Final = 7200
"""How long ago block 0 was: far enough that timestamps never pass the clock."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One node as the proxy sees it."""

    name: str
    """Its id as an upstream."""
    url: str
    version: str


class World(Protocol):
    """Three nodes with the same history: the primary behind the fault shim, a shadow, and a priced fallback."""

    kind: str
    """"real" or "simulated"."""
    primary: Endpoint
    shadow: Endpoint
    fallback: Endpoint
    register: str
    """Address of the demo's contract."""
    accounts: tuple[str, ...]

    @property
    def height(self) -> int:
        """The newest block that every node has."""

    @property
    def withheld(self) -> int:
        """Block look-ups that the shim has answered with null so far."""

    @property
    def refused(self) -> int:
        """Calls that the shim has refused with HTTP 503 so far."""

    async def advance(self) -> None:
        """Add one block, the same transactions in it, at every node."""

    async def stop(self) -> None:
        """End everything that was started; may be called at any moment, more than once."""
