"""Strict schemas: whatever is written to one fits the schema as it was given, once it is read back."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jp.app.schema_checker import Checker
from jp.conversation.entries import JsonObject
from jp.provider.schemas import StrictText, strict_answer

Schemas = st.SearchStrategy[JsonObject]

NAMES = st.sampled_from(["a", "b", "c"])
SIMPLE: st.SearchStrategy[object] = st.sampled_from([None, True, 0, 2.5, "", "a"])
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null"])


def under(keyword: str) -> Callable[[object], JsonObject]:
    return lambda value: {keyword: value}


def objects(inner: Schemas) -> Schemas:
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, min_size=1, max_size=3)},
        optional={"required": st.lists(NAMES, max_size=2, unique=True)},
    )


def extended(inner: Schemas) -> Schemas:
    several = st.lists(inner, min_size=1, max_size=2)
    return objects(inner) | inner.map(lambda items: {"type": "array", "items": items}) | several.map(under("anyOf"))


LEAVES: Schemas = st.one_of(
    st.just({"$ref": "#/$defs/d"}),
    SIMPLE.map(under("const")),
    st.lists(SIMPLE, min_size=1, max_size=3, unique_by=json.dumps).map(under("enum")),
    TYPES.map(under("type")),
    st.lists(TYPES, min_size=1, max_size=2, unique=True).map(under("type")),
)
SCHEMAS: Schemas = st.recursive(LEAVES, extended, max_leaves=6)


@st.composite
def wholes(draw: st.DrawFn) -> JsonObject:
    """Schemas with a definition that they, and it, may refer to."""
    return {**draw(SCHEMAS), "$defs": {"d": draw(objects(LEAVES))}}


PLAIN: dict[str, st.SearchStrategy[object]] = {
    "string": st.sampled_from(["", "a", "ä"]),
    "integer": st.integers(-2, 2),
    "number": st.sampled_from([0.5, 1]),
    "boolean": st.booleans(),
    "null": st.none(),
}


@st.composite
def written(draw: st.DrawFn, schema: JsonObject, root: JsonObject, depth: int = 0) -> object:
    """A value as a model writes it that is held to a strict schema."""
    assume(depth < 12)
    if "$ref" in schema:
        return draw(written(root["$defs"]["d"], root, depth + 1))
    if "anyOf" in schema:
        return draw(written(draw(st.sampled_from(schema["anyOf"])), root, depth + 1))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if schema["type"] == "object":
        return {name: draw(written(member, root, depth + 1)) for name, member in schema["properties"].items()}
    if schema["type"] == "array":
        return [draw(written(schema["items"], root, depth + 1)) for _ in range(draw(st.integers(0, 2)))]
    return draw(PLAIN[schema["type"]])


def read(text: str, strict: JsonObject, cuts: Iterable[int]) -> str:
    reader = StrictText(strict, is_answer=True)
    marks = [0, *sorted(cuts), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(marks)]
    return "".join(map(reader.feed, pieces)) + reader.finish()


@settings(max_examples=60)
@given(st.data(), wholes())
def test_what_is_written_strictly_fits_what_was_asked_for(data: st.DataObject, schema: JsonObject) -> None:
    strict = strict_answer(schema)
    assume(strict is not None)
    assert strict is not None
    value = data.draw(written(strict, strict))
    text = json.dumps(value)

    answer = read(text, strict, data.draw(st.lists(st.integers(0, len(text)), max_size=3)))

    assert not Checker(strict).misfits(value)
    assert not Checker(schema).misfits(json.loads(answer))
