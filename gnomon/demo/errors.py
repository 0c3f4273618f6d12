"""
GnomonError
└── DemoError               the demonstration cannot go on, or did not show what it should
    ├── NodesUnavailable    no real nodes here: the caller takes the simulated chain
    └── NodeFailed          a node did not start, or answered an error to what feeds the chain
"""

from gnomon.errors import GnomonError


class DemoError(GnomonError):
    """The demonstration cannot go on, or did not show what it should."""


class NodesUnavailable(DemoError):
    """Real nodes cannot be had here; the message says why."""


class NodeFailed(DemoError):
    """A real node ended, did not answer in time, or refused what feeds its chain."""
