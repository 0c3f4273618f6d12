"""When something that is made ends: at an instant, or after a time, as bodies say it."""

from datetime import UTC, datetime, timedelta
from typing import Final

from api.errors import Refused
from gnomon.config.scalars import parse_duration

LONGEST: Final = timedelta(days=366)


def ending(at: datetime | None, lasts: str | None, start: datetime, name: str) -> datetime | None:
    """
    Return when something ends; None where neither is said.

    Args:
        at: the instant, aware.
        lasts: in its place, how long from `start` on (`2h`).
        start: when it begins, UTC.
        name: of the member that has the instant; `for` has the time.

    Raises:
        Refused: both are said, one cannot be, or it ends before it begins.
    """
    if at is not None and lasts is not None:
        raise wrong(name, f"give either `{name}` or `for`")
    if lasts is not None:
        try:
            end = start + timedelta(seconds=parse_duration(lasts))
        except (ValueError, OverflowError) as error:
            raise wrong("for", str(error)) from error
    elif at is not None:
        end = utc(at, name)
    else:
        return None
    if end <= start:
        raise wrong(name, "it must end after it begins")
    if end - start > LONGEST:
        raise wrong(name, f"it may last {LONGEST.days} days at most")
    return end


def utc(at: datetime, name: str) -> datetime:
    """
    Return an aware instant in UTC.

    Raises:
        Refused: no calendar has it.
    """
    try:
        return at.astimezone(UTC)
    except OverflowError as error:
        raise wrong(name, "lies too far away") from error


def whole(at: datetime) -> datetime:
    """Return an instant in whole milliseconds, as ClickHouse keeps it."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def wrong(member: str, detail: str) -> Refused:
    """Return what is said of a member of a body that cannot be."""
    return Refused("invalid-body", f"{member}: {detail}", errors=[{"pointer": f"/{member}", "detail": detail}])
