"""Formats of strings that jsonschema itself knows only with further libraries. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

_TIME = r"(?P<clock>\d\d:\d\d:)(?P<second>\d\d)(?:\.\d+)?(?P<offset>[Zz]|[+-]\d\d:\d\d)"
_TIMES = re.compile(_TIME, re.ASCII)
_DATE_TIMES = re.compile(rf"(?P<date>\d{{4}}-\d\d-\d\d)[Tt ]{_TIME}", re.ASCII)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_DURATION = re.compile(
    r"P(?=.)(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=.)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?)", re.ASCII
)

_LEAP_SECOND = "60"


def is_time(text: str) -> bool:
    """Whether `text` is a time with its offset (RFC 3339)."""
    found = _TIMES.fullmatch(text)
    return found is not None and _exists("2000-01-01", found)


def is_date_time(text: str) -> bool:
    """Whether `text` is a date and a time with its offset (RFC 3339)."""
    found = _DATE_TIMES.fullmatch(text)
    return found is not None and _exists(found["date"], found)


def is_uri(text: str) -> bool:
    """Whether `text` is a URI with a scheme (RFC 3986)."""
    return _URI.fullmatch(text) is not None


def is_hostname(text: str) -> bool:
    """Whether `text` is the name of a host (RFC 1123)."""
    return _HOSTNAME.fullmatch(text) is not None


def is_duration(text: str) -> bool:
    """Whether `text` is a duration such as `P1DT12H` (ISO 8601)."""
    return _DURATION.fullmatch(text) is not None


def _exists(date: str, time: re.Match[str]) -> bool:
    from datetime import datetime

    second = "59" if time["second"] == _LEAP_SECOND else time["second"]
    offset = "+00:00" if time["offset"] in {"Z", "z"} else time["offset"]
    try:
        datetime.fromisoformat(f"{date}T{time['clock']}{second}{offset}")
    except ValueError:
        return False
    return True


FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": is_date_time,
    "time": is_time,
    "uri": is_uri,
    "hostname": is_hostname,
    "duration": is_duration,
}
