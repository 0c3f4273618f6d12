"""
Bodies of requests that keep the text of their members (numbers of any size), read by msgspec; the rest is read by
pydantic. Either way a body that does not fit is `invalid-body`, with a pointer to each wrong member.
"""

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from api.errors import Refused

T = TypeVar("T", bound=Struct)


def read(body: bytes, kind: type[T]) -> T:
    """
    Return a body as a struct.

    Raises:
        Refused: it is no JSON, or does not fit.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$")
        pointer = place.rstrip("`").replace("[...]", "").replace("[", "/").replace("]", "").replace(".", "/")
        raise wrong(pointer, text) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Refused("invalid-body", "the body is no JSON that can be read") from None


def wrong(pointer: str, detail: str) -> Refused:
    """Return the refusal of one member of a body."""
    return Refused(
        "invalid-body", f"{pointer or 'the body'}: {detail}", errors=[{"pointer": pointer, "detail": detail}]
    )


def schema(kind: type[Struct], **members: Any) -> dict[str, Any]:
    """Return the JSON schema of a struct; `members` in place of what msgspec makes of these."""
    _, found = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    said = dict(found[kind.__name__])
    said.pop("title", None)
    said["properties"] = {**said["properties"], **members}
    return said
