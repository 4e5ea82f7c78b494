from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from jp.conversation.entries import JsonObject
from jp.provider.chat.messages import Quirks, Structured, response_format, rules, strict_schema
from jp.provider.models import find_model
from jp.provider.schemas import in_words

OBJECT: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
OPEN: JsonObject = {"type": "object"}
LIST: JsonObject = {"type": "array", "items": {"type": "string"}}
MODEL = find_model("openai-compatible", "m")
WAYS: tuple[Structured, ...] = ("json_schema", "json_object_schema", "json_object", "none")


def asked(schema: JsonObject | None, *, has_tools: bool = False, **abilities: Any) -> list[object]:
    """For each way to hold an answer: the type on the wire, and whether words are needed."""
    model = replace(MODEL, abilities=replace(MODEL.abilities, **abilities))
    found: list[object] = []
    for way in WAYS:
        quirks = Quirks(structured=way)
        wire = response_format(schema, model, quirks, has_tools=has_tools)
        found.append((wire and wire["type"], rules(schema, model, quirks, has_tools=has_tools)))
    return found


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (None, [(None, ())] * 4),
        (OBJECT, [("json_schema", ()), *[("json_object", (in_words(OBJECT),))] * 2, (None, (in_words(OBJECT),))]),
        (LIST, [("json_schema", ()), ("json_object", (in_words(LIST),)), *[(None, (in_words(LIST),))] * 2]),
        (OPEN, [(None, (in_words(OPEN),)), *[("json_object", (in_words(OPEN),))] * 2, (None, (in_words(OPEN),))]),
    ],
)
def test_an_answer_is_held_to_its_schema_as_the_server_can(schema: JsonObject | None, expected: list[object]) -> None:
    assert asked(schema) == expected


def test_a_model_that_cannot_be_held_is_told_in_words() -> None:
    told = (None, (in_words(OBJECT),))

    assert asked(OBJECT, structured=False) == [told] * 4
    assert asked(OBJECT, structured_with_tools=False, has_tools=True) == [told] * 4
    assert asked(OBJECT, structured_with_tools=False) == asked(OBJECT)


def test_a_schema_goes_out_strict() -> None:
    wire = response_format({**OBJECT, "required": []}, MODEL, Quirks(), has_tools=False)

    assert wire is not None
    assert wire["json_schema"]["strict"] is True
    assert wire["json_schema"]["schema"]["required"] == ["a"]
    assert wire["json_schema"]["schema"]["additionalProperties"] is False


def test_a_schema_goes_out_with_the_demand_for_an_object_where_the_server_reads_it_there() -> None:
    strict = strict_schema(response_format(OBJECT, MODEL, Quirks(), has_tools=False) or {})
    beside = Quirks(structured="json_object_schema")

    assert strict is not None
    assert response_format(OBJECT, MODEL, beside, has_tools=False) == {"type": "json_object", "schema": strict}
    assert response_format(OPEN, MODEL, beside, has_tools=False) == {"type": "json_object"}
    assert strict_schema({"type": "json_object", "schema": strict}) == strict
    assert strict_schema({"type": "json_object"}) is None
    assert strict_schema({}) is None
