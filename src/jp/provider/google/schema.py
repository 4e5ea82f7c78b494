"""The schema of an answer as the API takes it. What it does not know is told in descriptions. Pure.

The API knows a part of JSON Schema. References are resolved, constants become enumerations of one value, and the order
of the properties is said, because the model writes them in that order. What narrows a value further goes into words,
for the answer is checked here in any case. A schema that refers back to itself is not translated at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import msgspec

from jp.conversation.entries import JsonObject

_MOST_NODES = 2_000
"""A schema that is larger once its references are resolved is told in words."""

_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_FORMATS = frozenset({"date-time", "date", "time"})
_NOTES = ("title", "description")
_PLAIN = frozenset({"type", "minItems", "maxItems", "minimum", "maximum", "required"})
"""Keywords that mean the same there."""

_SILENT = frozenset({
    *("$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "deprecated", "readOnly", "writeOnly"),
})


class _InexpressibleError(Exception):
    """The API cannot be told of this schema."""


def answer_schema(schema: JsonObject) -> JsonObject | None:
    """`schema` as `responseJsonSchema`, None where it has to be told in words."""
    try:
        translated = _Translation(schema).schema(schema, ())
    except (_InexpressibleError, AttributeError, KeyError, TypeError, ValueError):
        return None  # a log from elsewhere may hold as a schema what is none
    return translated if translated.keys() & {"type", "anyOf", "enum"} else None


class _Translation:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._nodes = 0

    def schema(self, node: object, within: tuple[str, ...]) -> JsonObject:
        """The translation of one schema; `within` are the references that it is inside of."""
        self._nodes += 1
        if node is False or self._nodes > _MOST_NODES:
            raise _InexpressibleError
        if node is True:
            return {}
        resolved, within = self._resolved(cast("JsonObject", node), within)
        variants = resolved.get("anyOf") or resolved.get("oneOf")
        if variants:
            return self._alternatives(resolved, variants, within)
        translated, told = self._typed(resolved, within)
        return _described(translated, resolved, told)

    def _resolved(self, node: JsonObject, within: tuple[str, ...]) -> tuple[JsonObject, tuple[str, ...]]:
        """`node` without references and without `allOf`: what they say stands in it."""
        while "$ref" in node or "allOf" in node:
            rest = {name: value for name, value in node.items() if name not in {"$ref", "allOf"}}
            parts: list[JsonObject] = list(node.get("allOf", ()))
            if "$ref" in node:
                reference: str = node["$ref"]
                if reference in within:
                    raise _InexpressibleError
                within = (*within, reference)
                parts.insert(0, self._target(reference))
            node = _together([rest, *parts])
        return node, within

    def _target(self, reference: str) -> JsonObject:
        start, *steps = reference.split("/")
        if start != "#":
            raise _InexpressibleError
        found = self._root
        for step in steps:
            found: JsonObject = found[step.replace("~1", "/").replace("~0", "~")]
        return found

    def _alternatives(self, node: JsonObject, variants: Sequence[JsonObject], within: tuple[str, ...]) -> JsonObject:
        """Values of several kinds; what holds for all of them is said of each."""
        common = {
            name: value
            for name, value in node.items()
            if name not in {"anyOf", "oneOf", *_NOTES} and name not in _SILENT
        }
        translated = [self.schema(_together([common, variant]) if common else variant, within) for variant in variants]
        return _described({"anyOf": translated}, node, ())

    def _typed(self, node: JsonObject, within: tuple[str, ...]) -> tuple[JsonObject, set[str]]:
        """The translation, and the keywords of `node` that it does not tell."""
        translated: JsonObject = {}
        told = {name for name in node if name not in _SILENT and name not in _NOTES}
        for name in _PLAIN & node.keys():
            translated[name] = node[name]
        if not set(_names(node.get("type", ()))) <= _TYPES:
            raise _InexpressibleError
        if node.get("format") in _FORMATS:
            translated["format"] = node["format"]
        if values := _enumerated(node):
            translated = {**({} if "type" in translated else {"type": _type_of(values)}), **translated, "enum": values}
            told -= {"const", "enum"}
        elif "const" in node and (isinstance(node["const"], bool) or node["const"] is None):
            translated.setdefault("type", "null" if node["const"] is None else "boolean")
        self._add_members(translated, node, within)
        return {name: translated[name] for name in sorted(translated)}, told - translated.keys()

    def _add_members(self, translated: JsonObject, node: JsonObject, within: tuple[str, ...]) -> None:
        if properties := cast("JsonObject", node.get("properties")):
            translated.setdefault("type", "object")
            translated["properties"] = {name: self.schema(member, within) for name, member in properties.items()}
            translated["propertyOrdering"] = list(properties)
        if "additionalProperties" in node:
            further = node["additionalProperties"]
            translated.setdefault("type", "object")
            translated["additionalProperties"] = further if isinstance(further, bool) else self.schema(further, within)
        if "items" in node:
            translated.setdefault("type", "array")
            translated["items"] = self.schema(node["items"], within)
        if "prefixItems" in node:
            translated.setdefault("type", "array")
            translated["prefixItems"] = [self.schema(item, within) for item in node["prefixItems"]]


def _names(value: object) -> list[str]:
    return [value] if isinstance(value, str) else list(cast("Iterable[str]", value))


def _enumerated(node: JsonObject) -> list[object] | None:
    """The values that are enumerated, where the API can be told: texts, or numbers."""
    values = cast("list[object]", [node["const"]] if "const" in node else node.get("enum", []))
    kinds = {bool if isinstance(value, bool) else str if isinstance(value, str) else type(value) for value in values}
    return values if kinds and (kinds <= {str} or kinds <= {int, float}) else None


def _type_of(values: Sequence[object]) -> str:
    if isinstance(values[0], str):
        return "string"
    return "integer" if all(isinstance(value, int) for value in values) else "number"


def _together(schemas: Sequence[JsonObject]) -> JsonObject:
    """One schema for what several demand at once.

    Where they demand different things of the same kind, what the answer is checked against decides in the end; the
    first is told, and the others in words.
    """
    found: JsonObject = {}
    differing: list[JsonObject] = []
    for schema in schemas:
        for name, value in schema.items():
            if name not in found:
                found[name] = value
            elif name == "properties":
                found[name] = {**value, **found[name]}
            elif name == "required":
                found[name] = list(dict.fromkeys((*found[name], *value)))
            elif name == "allOf":
                found[name] = [*found[name], *value]
            elif name not in _NOTES and name not in _SILENT and value != found[name]:
                differing.append({name: value})
    return {**found, "and": differing} if differing else found


def _described(translated: JsonObject, node: JsonObject, told: Iterable[str]) -> JsonObject:
    """`translated` with the notes of `node`, and in words what else it says under the names `told`."""
    notes: JsonObject = {name: node[name] for name in _NOTES if isinstance(node.get(name), str)}
    rules = {name: node[name] for name in node if name in set(told)}
    if rules:
        listed = ", ".join(f"{name}: {msgspec.json.encode(value).decode()}" for name, value in rules.items())
        described = notes.get("description")
        notes["description"] = f"{described}\n\n{{{listed}}}" if described else f"{{{listed}}}"
    return {**translated, **notes}
