"""Schemas that are kept to strictly: what they look like, and what is taken out of what was written to them."""

from __future__ import annotations

import msgspec
import pytest

from jp.conversation.entries import JsonObject
from jp.provider.grammar import ABSENT
from jp.provider.schemas import (
    PLAIN,
    WRAPPED,
    StrictText,
    has_absent_properties,
    strict_answer,
    strict_schema,
    without_absent,
)

STRING: JsonObject = {"type": "string"}
NULL: JsonObject = {"type": "null"}
NODE: JsonObject = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}


def closed(properties: JsonObject, **more: object) -> JsonObject:
    """An object as it is strict."""
    required = list(properties)
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        **({"required": required} if required else {}),
        **more,
    }


def of(schema: JsonObject, *, required: bool = True, **more: object) -> JsonObject:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"] if required else [], **more}


def member(schema: JsonObject, *, required: bool = True) -> JsonObject | None:
    """How a property comes out."""
    strict = strict_schema(of(schema, required=required))
    return None if strict is None else strict["properties"]["a"]


def test_every_property_is_there_and_none_besides() -> None:
    assert strict_schema(of(STRING)) == closed({"a": STRING})
    assert strict_schema({"type": "object", "additionalProperties": False}) == closed({})


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (STRING, {"anyOf": [STRING, ABSENT]}),
        ({"type": ["string", "integer"]}, {"anyOf": [STRING, {"type": "integer"}, ABSENT]}),
        ({"type": ["string", "null"]}, {"anyOf": [STRING, NULL]}),
        (NULL, NULL),
        (
            {"anyOf": [STRING, of(STRING)], "title": "T"},
            {"anyOf": [STRING, closed({"a": STRING}), ABSENT], "title": "T"},
        ),
        ({"type": "string", "default": "x"}, {"anyOf": [{**STRING, "description": '{default: "x"}'}, ABSENT]}),
    ],
    ids=["one type", "several", "null already", "only null", "a choice", "with a default"],
)
def test_what_may_be_missing_is_null(schema: JsonObject, strict: JsonObject) -> None:
    assert member(schema, required=False) == strict


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"const": 1}, {"type": "integer", "enum": [1]}),
        ({"enum": ["a", None, True, 2.5]}, {"anyOf": [
            {"type": "string", "enum": ["a"]}, NULL, {"type": "boolean", "enum": [True]},
            {"type": "number", "enum": [2.5]},
        ]}),
        ({"type": "number", "enum": [1, 2.5, "x"]}, {"anyOf": [
            {"type": "integer", "enum": [1]}, {"type": "number", "enum": [2.5]},
        ]}),
        ({"type": "array", "items": STRING, "enum": ["a"]}, None),
    ],
    ids=["texts", "a constant", "of several types", "of a type", "of a type that none is of"],
)  # fmt: skip
def test_constants_stand_with_their_type(schema: JsonObject, strict: JsonObject | None) -> None:
    assert member(schema) == strict


@pytest.mark.parametrize(
    ("schema", "held"),
    [
        ({"type": "string", "pattern": "^[a-z]+$"}, True),
        ({"type": "string", "pattern": "^(?=a)"}, False),
        ({"type": "string", "pattern": 1}, False),
        ({"type": "string", "format": "date"}, True),
        ({"type": "string", "format": "color"}, False),
        ({"type": "string", "maxLength": 3}, False),
        ({"type": "integer", "minimum": 1, "multipleOf": 2}, True),
        ({"type": "integer", "minimum": "1"}, False),
        ({"type": "integer", "minimum": True}, False),
        ({"type": "array", "items": STRING, "minItems": 2, "maxItems": 3}, True),
        ({"type": "array", "items": STRING, "uniqueItems": True}, False),
    ],
)
def test_what_narrows_a_value_is_held_or_said(schema: JsonObject, *, held: bool) -> None:
    strict = member(schema)

    assert strict is not None
    assert (strict == schema) is held
    assert ("description" in strict) is not held


def test_a_plain_server_is_told_in_words() -> None:
    schema = {"type": "integer", "minimum": 1}

    assert strict_schema(of(schema), PLAIN) == closed({"a": {"type": "integer", "description": "{minimum: 1}"}})
    assert strict_schema({"$ref": "#/$defs/node", "$defs": {"node": NODE}}, PLAIN) is None


def test_a_schema_may_come_back_to_itself() -> None:
    node = closed({"next": {"anyOf": [{"$ref": "#/$defs/node"}, ABSENT]}})

    assert strict_schema({"$ref": "#/$defs/node", "$defs": {"node": NODE}}) == {**node, "$defs": {"node": node}}


def test_a_note_beside_a_reference_that_comes_back_stays() -> None:
    described = {**NODE, "properties": {"next": {"$ref": "#/$defs/node", "description": "D"}}}
    strict = strict_schema({"$ref": "#/$defs/node", "$defs": {"node": described}})

    assert strict is not None
    assert strict["properties"]["next"] == {"anyOf": [{"$ref": "#/$defs/node"}, ABSENT], "description": "D"}


@pytest.mark.parametrize(
    "node",
    [{"$ref": "#/$defs/node"}, {"anyOf": [STRING, {"$ref": "#/$defs/node"}]}],
    ids=["itself", "a choice of itself"],
)
def test_a_schema_that_is_nothing_but_itself_is_none(node: JsonObject) -> None:
    assert strict_schema({**of({"$ref": "#/$defs/node"}), "$defs": {"node": node}}) is None


def test_definitions_of_the_old_place_are_written_out() -> None:
    assert strict_schema(of({"$ref": "#/definitions/d"}, definitions={"d": STRING})) == closed({"a": STRING})
    assert strict_schema(of({"$ref": "#/definitions/d"}, definitions={"d": of({"$ref": "#/definitions/d"})})) is None


def test_an_answer_that_is_no_object_is_wrapped_beside_its_definitions() -> None:
    strict = strict_answer({"type": "array", "items": {"$ref": "#/$defs/d"}, "$defs": {"d": STRING}})
    wrapped = closed({WRAPPED: {"type": "array", "items": {"$ref": "#/$defs/d"}}})

    assert strict == {**wrapped, "$defs": {"d": STRING}}
    assert strict_answer(STRING) == closed({WRAPPED: STRING})
    assert strict_answer(of(STRING)) == closed({"a": STRING})
    assert strict_schema(STRING) is None


def test_what_is_too_large_is_not_translated() -> None:
    assert strict_schema(of({"enum": [f"v{number}" for number in range(1001)]})) is None
    assert strict_schema(of({"enum": ["v" * 120_000]})) is None
    assert strict_answer({"type": "object", "properties": "?"}) is None


SHAPES: JsonObject = {
    "type": "object",
    "properties": {
        "plain": STRING,
        "nullable": {"type": ["string", "null"]},
        "shape": {
            "anyOf": [
                {"type": "object", "properties": {"kind": {"const": "dot"}, "x": STRING}, "required": ["kind"]},
                {"type": "object", "properties": {"kind": {"const": "box"}, "x": {"type": ["integer", "null"]}}},
            ]
        },
        "list": {"type": "array", "items": of(STRING, required=False)},
    },
    "required": ["list"],
}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('{"plain":null,"nullable":null,"shape":null,"list":[]}', '{"nullable":null,"list":[]}'),
        ('{"list":[{"a":null},{"a":"x"}]}', '{"list":[{},{"a":"x"}]}'),
        ('{"shape":{"kind":"dot","x":null},"list":[]}', '{"shape":{"kind":"dot"},"list":[]}'),
        ('{"shape":{"kind":"box","x":null}, "list":[]}', '{"shape":{"kind":"box","x":null}, "list":[]}'),
        ('{ "list": [] }', '{ "list": [] }'),
        ('{"list":{"a":null},"other":null}', '{"list":{"a":null},"other":null}'),
        ('{"plain":nu', '{"plain":nu'),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=["left out", "in a list", "of its kind", "of another", "nothing", "not of the schema", "cut off", "too deep"],
)
def test_nulls_that_stand_for_nothing_are_taken_out(written: str, meant: str) -> None:
    strict = strict_schema(SHAPES)

    assert strict is not None
    assert without_absent(written, strict) == meant


def test_what_has_to_be_held_back_comes_at_the_end() -> None:
    strict = strict_answer({"type": "array", "items": of(STRING, required=False)})
    assert strict is not None
    text = StrictText(strict, is_answer=True)

    assert has_absent_properties(strict)
    assert text.feed('{"wrapped_answer":[{"a"') + text.feed(":null}]}") == ""
    assert text.finish() == "[{}]"


def test_what_is_taken_as_it_is_streams() -> None:
    strict = closed({WRAPPED: STRING})
    pieces = ['{"wrapped_answer":', '"a', 'b"', "}"]
    wrapped, plain = StrictText(strict, is_answer=True), StrictText(strict, is_answer=False)

    assert not has_absent_properties(strict)
    assert [wrapped.feed(piece) for piece in pieces] == ["", '"a', 'b"', ""]
    assert not wrapped.finish()
    assert [plain.feed(piece) for piece in pieces] == pieces
    assert not plain.finish()


def test_the_same_schema_gives_the_same_bytes() -> None:
    schema = of({"type": ["string", "number"], "maxLength": 3, "minLength": 1, "maximum": 3, "pattern": "(?i)a"})

    assert msgspec.json.encode(strict_schema(schema)) == (
        b'{"type":"object","properties":{"a":{"anyOf":[{"type":"string","description":'
        b'"{maxLength: 3, minLength: 1, pattern: \\"(?i)a\\"}"},{"type":"number","maximum":3}]}},'
        b'"additionalProperties":false,"required":["a"]}'
    )


def test_a_title_and_a_description_beside_a_reference_are_always_in_this_order() -> None:
    described = {"$ref": "#/$defs/d", "description": "D", "title": "T"}
    strict = strict_schema({**of(described), "$defs": {"d": STRING}})

    assert strict is not None
    assert list(strict["properties"]["a"]) == ["type", "title", "description"]
