from __future__ import annotations

import pytest

from jp.app.schema_checker import FORMATS

GOOD = {
    "date-time": ["2026-02-28T10:00:00Z", "2026-02-28t10:00:00.123+02:00", "2016-12-31T23:59:60Z"],
    "time": ["10:00:00Z", "23:59:60-08:00", "00:00:00.5+00:00"],
    "uri": ["https://example.com/a?b=c#d", "mailto:a@example.com", "urn:x:%C3%A4"],
    "hostname": ["example.com", "a", "xn--bcher-kva.example", "1.2.3.4"],
    "duration": ["P1D", "PT5M", "P1Y2M3DT4H5M6S", "P2W", "PT0.5S"],
}
BAD = {
    "date-time": ["", "2026-02-30T10:00:00Z", "2026-02-28T25:00:00Z", "2026-02-28T10:00:00", "2026-02-28", "x"],
    "time": ["10:00", "10:00:00", "24:00:01Z", "10:00:00+99:99"],
    "uri": [
        "",
        "example.com",
        "//example.com",
        "http:",
        "https://example.com/a b",
        "https://ex\u00e4mple.com",
        "a:%zz",
    ],
    "hostname": ["", "-a", "a-", "a..b", "a_b", "a" * 64, ".".join(["a" * 60] * 5)],
    "duration": ["", "P", "PT", "1D", "P1S", "P1DT", "P1W1D"],
}


def cases(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in table.items() for text in texts]


@pytest.mark.parametrize(("name", "text"), cases(GOOD))
def test_what_is_of_a_format_is_known_as_such(name: str, text: str) -> None:
    assert FORMATS[name](text)


@pytest.mark.parametrize(("name", "text"), cases(BAD))
def test_what_is_of_no_format_is_known_as_such(name: str, text: str) -> None:
    assert not FORMATS[name](text)
