"""The JSON value in an answer: all of it or none, whatever stands around it and wherever it was cut."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from jp.conversation.json_text import JsonValue, find_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)
CONTAINERS = VALUES.filter(lambda value: isinstance(value, (list, dict)))
PROSE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters='{}[]"`~'), max_size=30)
INDENTS = st.sampled_from([None, 2])


def is_same(one: object, other: object) -> bool:
    return json.dumps(one) == json.dumps(other)


@given(VALUES, INDENTS)
def test_json_is_found_whole(value: object, indent: int | None) -> None:
    found = find_json(json.dumps(value, indent=indent))

    assert isinstance(found, JsonValue)
    assert found.is_whole
    assert is_same(found.value, value)


@given(VALUES, INDENTS, st.sampled_from(["```", "```json", "~~~~ JSON"]))
def test_a_fence_is_taken_off(value: object, indent: int | None, fence: str) -> None:
    closing = fence.rstrip("json JSON")

    found = find_json(f"{fence}\n{json.dumps(value, indent=indent)}\n{closing}\n")

    assert isinstance(found, JsonValue)
    assert is_same(found.value, value)


@given(CONTAINERS, PROSE, PROSE)
def test_prose_is_taken_off(value: object, before: str, after: str) -> None:
    found = find_json(f"{before}\n{json.dumps(value)}\n{after}")

    assert isinstance(found, JsonValue)
    assert is_same(found.value, value)


@given(CONTAINERS, INDENTS, st.data())
def test_a_piece_of_a_value_is_never_taken_for_a_value(value: object, indent: int | None, data: st.DataObject) -> None:
    text = json.dumps(value, indent=indent)
    cut = data.draw(st.integers(1, len(text) - 1))

    assert not isinstance(find_json(text[:cut]), JsonValue)
    assert not isinstance(find_json(text[cut:]), JsonValue)


@given(CONTAINERS, CONTAINERS, PROSE)
def test_of_two_values_none_is_chosen(one: object, other: object, between: str) -> None:
    found = find_json(f"{json.dumps(one)}\n{between}\n{json.dumps(other)}")

    assert isinstance(found, JsonValue) == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    find_json(text)
