from __future__ import annotations

from typing import Any

import pytest

from jp.conversation.json_text import JsonValue, find_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("  [1, 2]\n", [1, 2]),
        ("42", 42),
        ('"a } word"', "a } word"),
        ("null", None),
        ('\ufeff{"a": 1}', {"a": 1}),
        ("123456789012345678901234567890", 123456789012345678901234567890),
    ],
)
def test_a_text_that_is_json_is_taken_whole(text: str, value: Any) -> None:
    assert find_json(text) == JsonValue(value, is_whole=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ("~~~\n42\n~~~\n", 42),
        ("````json\n[]\n````", []),
        ('Sure, here it is: {"a": {"b": [1]}}. Anything else?', {"a": {"b": [1]}}),
        ('Of {braces} and [the docs](http://x), this: [{"a": 1}]', [{"a": 1}]),
        ('First {"a": 1}, and I repeat: {"a":1}', {"a": 1}),
        ('Text first.\n\n```json\n{"a": 1}\n```\n\nText last.', {"a": 1}),
    ],
    ids=["fence", "tildes", "long fence", "prose", "other brackets", "twice the same", "a fence in prose"],
)
def test_a_value_is_taken_out_of_the_words_around_it(text: str, value: Any) -> None:
    assert find_json(text) == JsonValue(value, is_whole=False)


@pytest.mark.parametrize("text", ["", " \n", "The answer is 42.", "Yes: true", 'He said "no".', "{}{ x"[3:]])
def test_words_hold_no_value(text: str) -> None:
    assert find_json(text) == "none"


@pytest.mark.parametrize(
    "text", ['{"a": 1} or {"a": 2}', "[1] says\n\n[2]", '```\n{"a": 1}\n```\n```\n{"a": true}\n```']
)
def test_of_several_values_none_is_chosen(text: str) -> None:
    assert find_json(text) == "several"


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"b": 1}, "c": oops}',
        '{"a": {"b": 1}, "c": ',
        '"a": {"b": 1}, "c": 2}',
        '"a": {"b": 1}',
        '[{"a": 1}, {"b": 2}',
        '1, {"a": 1}]',
        'See {"a": NaN}',
        '{"a": 1e999}',
        '{"a": "\ud800"}',
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
    ],
    ids=[
        "malformed",
        "end missing",
        "beginning missing",
        "brackets missing",
        "list cut",
        "list without its beginning",
        "not a number",
        "too large",
        "half a character",
        "too deep and cut",
        "too deep",
    ],
)
def test_a_part_of_what_was_meant_is_not_taken_for_it(text: str) -> None:
    assert find_json(text) == "broken"


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '[{"b": {"a": 1, "\\u0061": 1}}]',
        '```json\n{"a": 1, "a": 2}\n```',
        'Here: {"a": 1, "a": 2}',
    ],
    ids=["whole", "escaped and deep", "fence", "prose"],
)
def test_of_two_members_of_the_same_name_none_is_chosen(text: str) -> None:
    assert find_json(text) == "repeated"


def test_objects_may_have_members_of_the_same_name_as_others() -> None:
    assert find_json('[{"a": {"a": 1}}, {"a": 2}]') == JsonValue([{"a": {"a": 1}}, {"a": 2}], is_whole=True)
