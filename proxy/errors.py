"""
Errors of the proxy.

    ProxyError (GnomonError)
    └── CannotListen            the address is taken or not allowed
"""

from gnomon.errors import GnomonError


class ProxyError(GnomonError):
    """The proxy cannot start or go on."""


class CannotListen(ProxyError):
    """The address is taken or not ours."""
