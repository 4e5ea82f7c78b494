"""How long a provider asks to wait: in headers of several fashions, or in prose. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_LONGEST = 365 * 86_400.0
"""Whoever says more might as well say never."""

_SECONDS_PER_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_LIMIT_TIME = re.compile(r"(?:^|[;,\s])t=(\d+(?:\.\d+)?)")
_PROSE = re.compile(
    r"\b(?:retry[ -]after|try again in|retry in|wait)\b[ :\w]{0,12}?\s(?P<time>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|h)?"
    r"|\"retryDelay\"\s*:\s*\"(?P<delay>\d+(?:\.\d+)?)s\"",
    re.IGNORECASE,
)


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _duration(text: str | None) -> float | None:
    """Seconds of `1m30s`, `250ms` or a bare number."""
    if text is None:
        return None
    found = _DURATION.findall(text)
    if not found:
        return _number(text)
    return sum(float(number) * _SECONDS_PER_UNIT[unit] for number, unit in found)


def _date(text: str | None, now: float) -> float | None:
    """Seconds until an HTTP date."""
    if text is None or "," not in text:
        return None
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except ValueError:
        return None


def _from_headers(headers: Mapping[str, str], now: float) -> float | None:
    """The first that is there of all that are in use, most precise first."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    plain = headers.get("retry-after")
    if (seconds := _number(plain)) is not None or (seconds := _date(plain, now)) is not None:
        return seconds
    if (limit := _LIMIT_TIME.search(headers.get("ratelimit", ""))) is not None:
        return float(limit.group(1))
    resets = [_duration(headers.get(f"x-ratelimit-reset-{what}")) for what in ("requests", "tokens")]
    if known := [reset for reset in resets if reset is not None]:
        return max(known)
    moment = _number(headers.get("x-ratelimit-reset"))
    return None if moment is None else max(0.0, moment - now)


def _from_prose(text: str) -> float | None:
    found = _PROSE.search(text)
    if found is None:
        return None
    if found["delay"] is not None:
        return float(found["delay"])
    unit = (found["unit"] or "s").lower()
    return float(found["time"]) * _SECONDS_PER_UNIT[unit]


def retry_after(headers: Mapping[str, str], text: str, *, now: float) -> float | None:
    """Seconds to wait, rounded up to milliseconds, a year at most; None where neither headers nor text ask for a pause.

    Header names are lower case. `now` is the time in seconds since the epoch.
    """
    seconds = _from_headers(headers, now)
    if seconds is None:
        seconds = _from_prose(text)
    return None if seconds is None else math.ceil(min(seconds, _LONGEST) * 1000) / 1000
