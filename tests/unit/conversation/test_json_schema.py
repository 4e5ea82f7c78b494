from __future__ import annotations

from jp.conversation.entries import JsonObject
from jp.conversation.schemas import pointer, schemas_in

INNER: JsonObject = {"type": "string"}


def test_schemas_are_found_where_a_schema_may_stand_and_nowhere_else() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"a/b": INNER, "c": True},
        "$defs": {"d": INNER},
        "additionalProperties": INNER,
        "anyOf": [INNER, False],
        "items": [INNER],
        "not": INNER,
        "const": INNER,
        "enum": [INNER],
        "default": INNER,
        "dependencies": {"a": ["b"], "c": INNER},
        "required": ["a"],
    }

    assert list(schemas_in(schema)) == [
        (("properties", "a/b"), INNER),
        (("$defs", "d"), INNER),
        (("additionalProperties",), INNER),
        (("anyOf", "0"), INNER),
        (("items", "0"), INNER),
        (("not",), INNER),
        (("dependencies", "c"), INNER),
    ]
    assert list(schemas_in({"items": INNER})) == [(("items",), INNER)]


def test_a_place_is_written_as_a_pointer() -> None:
    assert pointer(("properties", "a/b~c", "0")) == "/properties/a~1b~0c/0"
    assert pointer(()) == ""
