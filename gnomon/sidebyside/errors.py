"""
GnomonError
└── SideBySideError
    └── EndpointFailed          an endpoint does not answer, or not as a node of a chain
UsageError
└── RequestsUnreadable          the file of requests is of a form that we do not read
"""

from gnomon.errors import GnomonError, UsageError


class SideBySideError(GnomonError):
    """The two endpoints cannot be compared."""


class EndpointFailed(SideBySideError):
    """An endpoint does not answer, or its answer is not a node's."""


class RequestsUnreadable(UsageError):
    """The file of requests is of a form that we do not read."""
