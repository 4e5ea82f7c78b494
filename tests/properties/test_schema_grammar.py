"""Schemas in the grammar of Anthropic's API: only what it knows, and nothing that they allow is forbidden."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jp.app.schema_checker import Checker
from jp.conversation.entries import JsonObject
from jp.provider.anthropic.messages import strict_schema
from jp.provider.schemas import WRAPPED, is_wrapped

Schemas = st.SearchStrategy[JsonObject]

NAMES = st.sampled_from(["a", "b", "c"])
SIMPLE: st.SearchStrategy[object] = st.sampled_from([None, True, 0, 1, 2.5, "", "a", "bb"])
TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])


def under(keyword: str) -> Callable[[object], JsonObject]:
    """Makes a schema with one keyword."""
    return lambda value: {keyword: value}


def together(parts: Iterable[JsonObject]) -> JsonObject:
    return {name: value for part in parts for name, value in part.items()}


NOTES: Schemas = st.fixed_dictionaries({}, optional={"title": st.just("T"), "default": SIMPLE})
BOUNDS: Schemas = st.fixed_dictionaries(
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
        "not": SIMPLE.map(under("const")),
    },
)


def objects(inner: Schemas) -> Schemas:
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
        optional={
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
            "dependentRequired": st.just({"a": ["b"]}),
            "anyOf": st.just([{"required": ["a"]}, {"required": ["b"]}]),
        },
    )


def arrays(inner: Schemas) -> Schemas:
    return st.fixed_dictionaries({"type": st.just("array"), "items": inner})


def extended(inner: Schemas) -> Schemas:
    several = st.lists(inner, min_size=1, max_size=2)
    combined = st.sampled_from(["anyOf", "oneOf", "allOf"]).flatmap(lambda keyword: several.map(under(keyword)))
    return objects(inner) | arrays(inner) | combined


REFERENCE: JsonObject = {"$ref": "#/$defs/d"}
LEAVES: Schemas = st.one_of(
    st.just(REFERENCE),
    SIMPLE.map(under("const")),
    st.lists(SIMPLE, min_size=1, max_size=3, unique_by=json.dumps).map(under("enum")),
    st.tuples(TYPES.map(under("type")), BOUNDS, NOTES).map(together),
    st.lists(TYPES, min_size=1, max_size=2, unique=True).map(under("type")),
)
SCHEMAS: Schemas = st.recursive(LEAVES, extended, max_leaves=5)
HELD = objects(LEAVES) | arrays(LEAVES)


@st.composite
def wholes(draw: st.DrawFn) -> JsonObject:
    """Schemas with a definition that they may refer to."""
    return {**draw(SCHEMAS), "$defs": {"d": draw(HELD)}}


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
@given(wholes())
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


def nested(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3)


VALUES = st.recursive(SIMPLE, nested, max_leaves=5)


@settings(max_examples=50)
@given(wholes(), VALUES)
def test_a_value_of_known_properties_that_fits_is_not_forbidden(schema: JsonObject, value: object) -> None:
    strict = strict_schema(schema)
    assume(strict is not None)
    assert strict is not None
    wrapped = is_wrapped({"schema": strict})

    misfits = Checker(strict).misfits({WRAPPED: value} if wrapped else value)

    if not Checker(schema).misfits(value):
        assert all("is not expected" in misfit.problem or "alternatives" in misfit.problem for misfit in misfits)


KEYWORDS = st.sampled_from(sorted(KNOWN))


def tangled(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4)


@given(st.dictionaries(KEYWORDS, st.recursive(SIMPLE, tangled, max_leaves=10)))
def test_anything_is_looked_at(schema: JsonObject) -> None:
    strict_schema(schema)
