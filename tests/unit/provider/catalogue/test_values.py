from __future__ import annotations

import pytest

from jp.provider.listing import fields, flag, items, name, price, text, texts, tokens


def test_what_is_of_another_form_says_nothing() -> None:
    for value in (None, 1, "x", [1], {"a": 1}):
        assert fields(value) == (value if isinstance(value, dict) else {})
        assert items(value) == (value if isinstance(value, list) else [])
        assert text(value) == (value if isinstance(value, str) else "")
        assert flag(value) is None
    assert texts(["a", 1, "b"]) == {"a", "b"}
    assert [flag(value) for value in (True, False)] == [True, False]


@pytest.mark.parametrize("value", ["~anthropic/latest", "a b", "a\nb", "\x1b[2J", "x" * 201, "", 3, None])
def test_what_nobody_could_type_is_no_name(value: object) -> None:
    assert name(value) == ""
    assert name("qwen3.5:9b") == "qwen3.5:9b"


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ((200_000,), 200_000),
        ((None, 8192.0), 8192),
        ((0, 5), 5),
        ((-1,), None),
        ((True,), None),
        (("8192",), None),
        ((float("nan"),), None),
        ((10**12,), None),
        ((), None),
    ],
)
def test_the_first_count_of_tokens_counts(values: tuple[object, ...], count: int | None) -> None:
    assert tokens(*values) == count


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0.000003", 3.0),
        ("0.00000015", 0.15),
        (0.000001, 1.0),
        ("0", 0.0),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("free", None),
        (True, None),
        (None, None),
    ],
)
def test_a_price_of_a_token_is_one_of_a_million(value: object, expected: float | None) -> None:
    assert price(value) == expected
