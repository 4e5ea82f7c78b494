from __future__ import annotations

import pytest

from jp.context.leaves import string_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('"a"', ['"a"']),
        (' {"k" : "v", "l":["w",1,"x"],"m":{}} ', ['"v"', '"w"', '"x"']),
        ('{"k":"v","k":"w"}', ['"v"', '"w"']),
        (r'["\ud800", "\"\\\/\b\f\n\r\t\u00fC"]', [r'"\ud800"', r'"\"\\\/\b\f\n\r\t\u00fC"']),
        ('["", [], {}, -0.5e+9, 0, 1e400, true, false, null, "y"]', ['"y"']),
        ("[" + "9" * 5_000 + ', "y"]', ['"y"']),
        ("[]", []),
        ("1", []),
    ],
)
def test_the_strings_that_are_values_are_found(text: str, values: list[str]) -> None:
    found = string_values(text, 0)

    assert found is not None
    assert [text[start:end] for start, end in found] == values


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "[1",
        "[1,]",
        '{"a":1,}',
        '{"a"}',
        '{"a":}',
        "{a:1}",
        "{1:2}",
        "[1 2]",
        "[1}",
        "]",
        "1 2",
        "[] x",
        "NaN",
        "[Infinity]",
        "[-Infinity]",
        "01",
        "+1",
        "1.",
        ".5",
        "1e",
        "-",
        "0x1",
        "'a'",
        '"a',
        '"\n"',
        '"\x00"',
        r'"\x"',
        r'"\u12"',
        "\ufeff{}",
        "{}\ufeff",
        "// x\n1",
        "tru",
        "trueX",
        ",",
    ],
)
def test_what_is_not_json_has_none(text: str) -> None:
    assert string_values(text, 0) is None


def test_only_strings_longer_than_asked_for_are_named() -> None:
    assert string_values('["12345", "123456"]', 5) == [(10, 18)]
