"""
Numbers, money, times and names as people read them, each with its exact value beside.

A `Figure` in a template gives `<data value="0.0003315">0.033 %</data>`: tests, copying and screen readers get the
exact value, eyes the short one. Nothing here rounds what it is later summed with; money is decimal end to end. What is
not known is `UNKNOWN` (blank), never zero.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal

from markupsafe import Markup, escape

Z = 1.959963984540054
"""Standard normal quantile of a two-sided 95 % interval."""
MIN_RATE_N = 100
"""Below so many a share is written `1 of 41`: a percentage would claim more than the sample bears."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NUMBER_OF_PLACES = 12


@dataclass(frozen=True, slots=True)
class Figure:
    """One shown number: what is read, and what it is exactly."""

    text: str
    value: str = ""
    """Exact; empty = the text says it all."""
    title: str = ""
    """Shown on hover."""
    whole: str = ""
    """What copying gives, where it is more than the text."""

    def __str__(self) -> str:
        return self.text

    def __html__(self) -> Markup:
        if not self.value:
            return escape(self.text)
        attributes = Markup(' value="{}"').format(self.value)
        if self.title:
            attributes += Markup(' title="{}"').format(self.title)
        if self.whole:
            attributes += Markup(' data-whole="{}"').format(self.whole)
        return Markup("<data{}>{}</data>").format(attributes, self.text)

    def __bool__(self) -> bool:
        return bool(self.text)


UNKNOWN = Figure("")
"""Nobody knows: blank, so that it is not read as zero."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A share with its 95 % interval (Wilson), all from 0 to 1."""

    share: float
    low: float
    high: float


def wilson(k: int, n: int) -> Interval:
    """
    Return the share k of n with its 95 % score interval.

    Args:
        k: hits, 0 to n.
        n: tries; 0 gives the interval 0 to 1, for nothing is known then.

    Raises:
        ValueError: k is not within 0 to n.

    Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 1927.
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no share")
    if n == 0:
        return Interval(0.0, 0.0, 1.0)
    share = k / n
    spread = Z * Z / n
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / n + spread / n / 4) / (1 + spread)
    # At the ends the interval touches 0 or 1; floating point may miss them by an ulp.
    return Interval(share, 0.0 if k == 0 else max(0.0, middle - half), 1.0 if k == n else min(1.0, middle + half))


def needed_for(limit: float) -> int:
    """Return how many pairs without a difference show that the rate is at most `limit` (0 to 1, not 0)."""
    return math.ceil(Z * Z * (1 - limit) / limit)


# --- shares ----------------------------------------------------------------------------------------------------------


def percent(share: float | None) -> Figure:
    """
    Return a share of 0 to 1 as percent with two significant figures; near 1, with two of what is missing to it.

    `0 %` and `100 %` stand for exactly that.
    """
    if share is None:
        return UNKNOWN
    return Figure(_percent(share), _plain(share))


def _percent(share: float) -> str:
    points = share * 100
    if share in (0, 1):
        return f"{points:.0f} %"
    if 0.5 < share < 1:
        return f"{points:.{max(0, _places(100 - points, 2))}f} %" if points > 99 else f"{points:.0f} %"
    return f"{_significant(points, 2)} %"


def share(k: int, n: int, places: int = 2) -> Figure:
    """Return k of n as percent with fixed places, for a column; small samples as `1 of 41`, blank where n is 0."""
    if n == 0:
        return UNKNOWN
    if n < MIN_RATE_N:
        return _few(k, n)
    if k in (0, n):
        return Figure("0" if k == 0 else "100 %", _plain(k / n))
    text = f"{k / n * 100:.{places}f}"
    # What rounds to all or nothing is neither.
    return Figure(f"{text} %" if 0 < float(text) < 100 else _percent(k / n), _plain(k / n))


def _few(k: int, n: int) -> Figure:
    return Figure(f"{k:,} of {n:,}", _plain(k / n))


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with what it rests on, as a page words it."""

    figure: Figure
    """`0.033 %`, `0`, or `1 of 41`."""
    interval: str
    """`0.0315 to 0.0349 %`, or `at most 0.0009 %`; empty where nothing was counted, or too little for a rate."""
    n: Figure
    k: int
    total: int

    @property
    def is_known(self) -> bool:
        return self.total > 0

    @property
    def in_words(self) -> str:
        """`0.033 % (0.0315 to 0.0349 %, n 4.32 M)`; `0 of 41` where that is all."""
        if self.total < MIN_RATE_N:
            return self.figure.text
        if self.k == 0:
            return f"0 ({self.interval}, n {self.n})"
        return f"{self.figure} ({self.interval}, n {self.n})"


def rate(k: int, n: int) -> Rate:
    """
    Return k of n as a page words a rate: with its interval, and its sample.

    Raises:
        ValueError: k is not within 0 to n.
    """
    found = wilson(k, n)
    if n == 0:
        return Rate(UNKNOWN, "", count(0), 0, 0)
    if n < MIN_RATE_N:
        return Rate(_few(k, n), "", count(n), k, n)
    if k == 0:
        return Rate(Figure("0", "0"), f"at most {_upper(found.high)} %", count(n), k, n)
    return Rate(percent(found.share), between(found.low, found.high), count(n), k, n)


def between(low: float, high: float) -> str:
    """Return an interval of shares in percent, with as many places as give its width two significant figures."""
    low, high = low * 100, high * 100
    if low == high:
        return f"{_significant(low, 3)} %"
    places = max(0, min(_NUMBER_OF_PLACES, _places(high - low, 2)))
    return f"{low:.{places}f} to {high:.{places}f} %"


def _upper(share: float) -> str:
    """Return an upper bound in percent, rounded up so that it stays one: to one figure from 5 on, else to two."""
    points = share * 100
    exponent = math.floor(math.log10(points))
    for digits in (1, 2):
        step = 10.0 ** (exponent - digits + 1)
        up = math.ceil(points / step - 1e-9) * step
        if digits == 2 or points / 10**exponent >= 5:
            return _trimmed(f"{up:.{max(0, digits - 1 - exponent)}f}")
    raise AssertionError("unreachable: the second step always returns")


def _places(value: float, digits: int) -> int:
    """Return the places behind the point that give a positive value so many significant figures."""
    return digits - 1 - math.floor(math.log10(value))


def _significant(value: float, digits: int) -> str:
    """Return a positive value with so many significant figures, never in scientific form."""
    rounded = float(f"{value:.{digits}g}")
    return _trimmed(f"{rounded:.{max(0, _places(rounded, digits))}f}") if rounded else "0"


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _plain(value: float) -> str:
    """Return a float without exponent, as short as tells it."""
    return f"{Decimal(repr(value)):f}" if value else "0"


# --- counts ----------------------------------------------------------------------------------------------------------


def count(n: int | None) -> Figure:
    """Return a count: in full to 9,999, then `86 k`, `4.32 M`, `1.20 G`."""
    if n is None:
        return UNKNOWN
    if abs(n) < 10_000:
        return Figure(f"{n:,}", str(n))
    if abs(n) < 999_500:
        return Figure(f"{n / 1e3:.0f} k", str(n))
    return Figure(f"{n / 1e6:.2f} M" if abs(n) < 999_995_000 else f"{n / 1e9:.2f} G", str(n))


def exact(n: int | None) -> Figure:
    """Return a count in full, for tables that are to be added up."""
    return UNKNOWN if n is None else Figure(f"{n:,}", str(n))


def number(value: float | None, digits: int = 3) -> Figure:
    """Return a measured number with so many significant figures, in full from there on."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return Figure("0", "0")
    if abs(value) >= 10 ** (digits - 1):
        return Figure(f"{value:,.0f}", _plain(value))
    sign = "-" if value < 0 else ""
    return Figure(sign + _significant(abs(value), digits), _plain(value))


# --- money -----------------------------------------------------------------------------------------------------------


def usd(amount: Decimal | None) -> Figure:
    """Return a sum: `$372` from 100, `$59.29` below, two significant figures below a cent; blank where unpriced."""
    if amount is None:
        return UNKNOWN
    size = abs(amount)
    if size == 0:
        return Figure("$0", "0")
    if size >= Decimal("99.995"):
        text = f"${_rounded(amount, 0):,}"
    elif size >= Decimal("0.01"):
        text = f"${_rounded(amount, 2):,}"
    else:
        text = f"${_rounded(amount, 1 - size.adjusted()):f}"
    return Figure(text.replace("$-", "-$"), f"{amount.normalize():f}")


def price(amount: Decimal | None) -> Figure:
    """Return the price of a single call with all its digits: `$0.0000105`; blank where unpriced."""
    if amount is None:
        return UNKNOWN
    plain = f"{amount.normalize():f}"
    return Figure(f"${plain}", plain)


def pace(amount: Decimal | None) -> Figure:
    """Return USD per hour: three significant figures, two below 1."""
    if amount is None:
        return UNKNOWN
    if amount == 0:
        return Figure("$0", "0")
    places = max(0, (2 if abs(amount) >= 1 else 1) - amount.adjusted())
    return Figure(f"${_rounded(amount, places):,f}", f"{amount.normalize():f}")


def _rounded(amount: Decimal, places: int) -> Decimal:
    return amount.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)


# --- sizes, durations, times -----------------------------------------------------------------------------------------


def duration(seconds: float | None) -> Figure:
    """Return a duration in the unit that fits: `0.4 ms`, `14 ms`, `2.3 s`, `35 min`, `11 h`, `2.7 days`."""
    if seconds is None:
        return UNKNOWN
    return Figure(_duration(seconds), _plain(seconds))


def _duration(seconds: float) -> str:
    ms = seconds * 1000
    if ms <= 0:
        return "0 s"
    if ms < 9.95:
        return f"{_significant(ms, 2) if ms >= 1 else _significant(ms, 1)} ms"
    if ms < 999.5:
        return f"{ms:.0f} ms"
    if seconds < 9.95:
        return f"{_trimmed(f'{seconds:.1f}')} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    if seconds < 119.5 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 47.5 * 3600:
        return f"{seconds / 3600:.0f} h"
    days = seconds / 86400
    return f"{_trimmed(f'{days:.1f}')} days" if days < 9.95 else f"{days:.0f} days"


def micros(us: float | None) -> Figure:
    """Return a duration given in microseconds."""
    return UNKNOWN if us is None else duration(us / 1e6)


def size(n_bytes: float | None) -> Figure:
    """Return bytes, decimal: `412 B`, `1.9 KB`, `412 KB`, `6.1 MB`."""
    if n_bytes is None:
        return UNKNOWN
    value, unit = float(n_bytes), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    text = f"{value:.0f}" if unit == "B" or value >= 9.95 else _trimmed(f"{value:.1f}")
    return Figure(f"{text} {unit}", str(int(n_bytes)))


@dataclass(frozen=True, slots=True)
class Moment:
    """A time: short to the eye, whole and in UTC on hover and for tools."""

    text: str
    iso: str

    def __str__(self) -> str:
        return self.text

    def __html__(self) -> Markup:
        if not self.iso:
            return escape(self.text)
        return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(self.iso, self.text)

    def __bool__(self) -> bool:
        return bool(self.text)


NEVER = Moment("", "")


def moment(at: datetime | None, now: datetime, *, with_seconds: bool = False) -> Moment:
    """
    Return a time: `02:12` today, `16 Nov 22:05` on another day, with the year in another one.

    Args:
        at: aware.
        now: aware; its zone is the one that the time is shown in. On hover it is UTC.
        with_seconds: `02:12:04`.
    """
    if at is None:
        return NEVER
    at = at.astimezone(now.tzinfo)
    text = at.strftime("%H:%M:%S" if with_seconds else "%H:%M")
    if at.date() != now.date():
        text = f"{day(at, now)} {text}"
    return Moment(text, iso(at))


def day(at: datetime, now: datetime) -> str:
    """Return `16 Nov` in the zone of `now`, with the year in another one."""
    at = at.astimezone(now.tzinfo)
    year = "" if at.year == now.year else f" {at.year}"
    return f"{at.day} {_MONTHS[at.month - 1]}{year}"


def iso(at: datetime) -> str:
    """Return ISO 8601 in UTC with `Z`, to the millisecond where there are any."""
    at = at.astimezone(UTC)
    text = at.isoformat(timespec="milliseconds" if at.microsecond else "seconds")
    return text.replace("+00:00", "Z")


# --- chain -----------------------------------------------------------------------------------------------------------


def block(height: int | None) -> Figure:
    """Return a block number with commas; hexadecimal on hover, plain decimal in a copy."""
    return UNKNOWN if height is None else Figure(f"{height:,}", str(height), hex(height), str(height))


def shortened(text: str, keep: int = 4) -> Figure:
    """Return a long hexadecimal word cut in the middle, copied whole: `0x91ae…4c07`."""
    head = 2 + keep if text.startswith("0x") else keep
    if len(text) <= head + keep + 1:
        return Figure(text)
    return Figure(f"{text[:head]}…{text[-keep:]}", text, text, text)


def shown_path(path: str) -> str:
    """Return a path as pages draw it, from the result on: `$.result[*].logs` is `$[*].logs`."""
    return "$" + path[len("$.result") :] if path.startswith("$.result") and path[8:9] in ("", ".", "[") else path


def plural(n: int, one: str, many: str = "") -> str:
    """Return `1 alert`, `3 alerts`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def n_of(numbers: Mapping[str, int], *names: str) -> int:
    """Return the sum of some named counts; absent = 0."""
    return sum(numbers.get(name, 0) for name in names)
