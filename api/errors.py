"""
What a caller is told, and why.

    GnomonError
    └── Refused         an answer that is a problem (RFC 9457); `problem` is one of `api.problems.PROBLEMS`

Everything else that reaches the edge is a bug and becomes `internal`, which says nothing of it.
"""

from collections.abc import Mapping, Sequence

from gnomon.errors import GnomonError


class Refused(GnomonError):
    """The request gets a problem in place of what it asked for."""

    def __init__(
        self,
        problem: str,
        detail: str,
        *,
        errors: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """
        Args:
            problem: a name of `api.problems.PROBLEMS`.
            detail: what is wrong with this request, and the way out.
            errors: `{"parameter" or "pointer": where, "detail": what}` for each part that is wrong.
            headers: sent with it.
        """
        super().__init__(detail)
        self.problem = problem
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
