"""Schemas in the grammar of Anthropic's API: only what it knows, and nothing that they allow is forbidden."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jp.cli.structured.check import Checker
from jp.conversation.entries import JsonObject
from jp.provider.anthropic.schema import strict_schema
from jp.provider.anthropic.wrapping import WRAPPED, is_wrapped

NAMES = st.sampled_from(["a", "b", "c"])
SIMPLE = st.sampled_from([None, True, 0, 1, 2.5, "", "a", "bb"])
TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
NOTES = st.fixed_dictionaries({}, optional={"title": st.just("T"), "description": st.just("D"), "default": SIMPLE})
BOUNDS = st.fixed_dictionaries(
    {},
    optional={
        "minimum": st.integers(-1, 2),
        "exclusiveMaximum": st.integers(0, 3),
        "multipleOf": st.just(0.5),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 2),
        "pattern": st.just("^a"),
        "format": st.sampled_from(["date", "color"]),
        "minItems": st.integers(0, 2),
        "uniqueItems": st.booleans(),
        "minProperties": st.integers(0, 2),
        "not": st.builds(lambda value: {"const": value}, SIMPLE),
    },
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
        optional={
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
            "dependentRequired": st.just({"a": ["b"]}),
            "anyOf": st.just([{"required": ["a"]}, {"required": ["b"]}]),
        },
    )


def extended(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonObject]:
    several = st.lists(inner, min_size=1, max_size=2)
    return st.one_of(
        objects(inner),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda options: {"anyOf": options}, several),
        st.builds(lambda options: {"oneOf": options}, several),
        st.builds(lambda parts: {"allOf": parts}, several),
    )


LEAVES = st.one_of(
    st.just({"$ref": "#/$defs/d"}),
    st.builds(lambda value: {"const": value}, SIMPLE),
    st.builds(lambda values: {"enum": values}, st.lists(SIMPLE, min_size=1, max_size=3, unique_by=json.dumps)),
    st.builds(lambda name, bounds, notes: {"type": name, **bounds, **notes}, TYPES, BOUNDS, NOTES),
    st.builds(lambda names: {"type": names}, st.lists(TYPES, min_size=1, max_size=2, unique=True)),
)
SCHEMAS = st.recursive(LEAVES, extended, max_leaves=5)
HELD = objects(LEAVES) | st.builds(lambda items: {"type": "array", "items": items}, LEAVES)
WHOLE = st.builds(lambda schema, held: {**schema, "$defs": {"d": held}}, SCHEMAS, HELD)

KNOWN = {
    *("type", "properties", "required", "additionalProperties", "items", "minItems", "anyOf", "enum", "const"),
    *("format", "$ref", "$defs", "title", "description"),
}


def parts(schema: JsonObject) -> list[JsonObject]:
    """The schema and all schemas in it."""
    inner: list[JsonObject] = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    inner += [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]
    return [schema, *(part for child in inner for part in parts(child))]


@settings(max_examples=50)
@given(WHOLE)
def test_the_grammar_is_kept_to(schema: JsonObject) -> None:
    strict = strict_schema(schema)
    assume(strict is not None)
    assert strict is not None

    Checker(strict)
    assert strict["type"] == "object"
    for part in parts(strict):
        assert part.keys() <= KNOWN
        assert part.get("minItems", 0) in (0, 1)
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert set(part.get("required", ())) <= part["properties"].keys()
        if "$ref" not in part:
            assert part.keys() & {"type", "anyOf", "enum", "const"}


VALUES = st.recursive(
    SIMPLE, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=5
)


@settings(max_examples=50)
@given(WHOLE, VALUES)
def test_a_value_of_known_properties_that_fits_is_not_forbidden(schema: JsonObject, value: object) -> None:
    strict = strict_schema(schema)
    assume(strict is not None)
    assert strict is not None
    wrapped = is_wrapped({"schema": strict})

    misfits = Checker(strict).misfits({WRAPPED: value} if wrapped else value)

    if not Checker(schema).misfits(value):
        assert all("is not expected" in misfit.problem or "alternatives" in misfit.problem for misfit in misfits)


JSON = st.recursive(SIMPLE, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(sorted(KNOWN)), inner))


@given(st.dictionaries(st.sampled_from(sorted(KNOWN)), JSON))
def test_anything_is_looked_at(schema: JsonObject) -> None:
    strict_schema(schema)
