"""
The root of Gnomon's own errors.

    GnomonError                 told to the user in one line; exit status 1
    └── UsageError              the command or its configuration is wrong; exit status 2

Each room derives its errors from these.
"""


class GnomonError(Exception):
    """Something that the user can act on: the message names the thing, its value and the way out."""

    exit_status = 1


class UsageError(GnomonError):
    """The command line or the configuration is at fault."""

    exit_status = 2
