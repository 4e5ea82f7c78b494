"""Translation of JSON Schema into a provider's grammar, or the result that the grammar cannot express it. Pure.

Such a grammar has closed objects, lists with one kind of items, alternatives, constants of simple types and references;
its dialect decides about the rest. Keywords that narrow a value further are written into descriptions, because the
answer is validated anyway. A schema is not translated if the grammar would forbid values that it allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import msgspec

from jp.conversation.entries import JsonObject

_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
_OF_TYPE: dict[str, frozenset[str]] = {
    "object": frozenset({
        *("properties", "required", "additionalProperties", "patternProperties", "propertyNames"),
        *("minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties"),
    }),
    "array": frozenset({
        *("items", "prefixItems", "additionalItems", "contains", "minContains", "maxContains"),
        *("minItems", "maxItems", "uniqueItems", "unevaluatedItems"),
    }),
    "string": frozenset({"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
}
_NOTES = ("title", "description")
_SILENT = frozenset({
    *("$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "deprecated", "readOnly", "writeOnly"),
})
_DEPENDENT = frozenset({"dependentSchemas", "dependentRequired", "dependencies"})
_COMBINED = frozenset({"anyOf", "oneOf", "not", "if", "then", "else", *_DEPENDENT})
_STRUCTURED = frozenset({"properties", "required", "items", "prefixItems", "patternProperties", "$ref", "allOf"})
"""Keywords about the inside of a value, or about other schemas."""

_HOLDERS = ("$defs", "definitions")
ABSENT: JsonObject = {"type": "null", "description": "left out"}
"""Schema of the value of an optional property, for grammars that require every property."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """Features of a grammar that not every grammar has.

    Attributes:
        holds: whether the grammar takes a keyword that narrows the values of a type; gets type, keyword and value.
        has_all: whether every property is required; an optional one may then be null.
        names_types: whether constants need a type.
        recurs: whether recursive references are taken.
        holders: the keywords that may hold definitions.
        deepest: the largest depth of a translation.
        most: the largest size of a translation.
    """

    holds: Callable[[str, str, object], bool]
    has_all: bool = False
    names_types: bool = False
    recurs: bool = False
    holders: tuple[str, ...] = _HOLDERS
    deepest: int = 50
    most: int = 2000


class Inexpressible(Exception):  # noqa: N818 - it is a finding, not an error
    """The schema allows values that the grammar would forbid."""


class Grammar:
    """Translator of one schema. `definitions` holds those that the translation refers to, by their location.

    `optional`, `unions` and `constants` count optional properties, values of several kinds, and constants.
    """

    def __init__(self, schema: JsonObject, dialect: Dialect) -> None:
        self._root = schema
        self._dialect = dialect
        self._open: list[tuple[str, str]] = []
        self._depth = 0
        self._count = 0
        self.definitions: dict[str, dict[str, JsonObject]] = {}
        self.optional = 0
        self.unions = 0
        self.constants = 0

    def root(self) -> JsonObject:
        """Return the translation of the whole schema, without its definitions.

        Raises:
            Inexpressible: there is none.
        """
        return self._reference(self._root, inline=True) if "$ref" in self._root else self._schema(self._root)

    def _schema(self, value: object) -> JsonObject:
        self._depth += 1
        self._count += 1
        if not isinstance(value, dict) or self._depth > self._dialect.deepest or self._count > self._dialect.most:
            raise Inexpressible
        schema = cast("JsonObject", value)
        if "$id" in schema and schema is not self._root:
            raise Inexpressible
        translated = self._translated(schema)
        self._depth -= 1
        return translated

    def _translated(self, schema: JsonObject) -> JsonObject:
        if "allOf" in schema:
            schema = self._merged(schema)
        if "$ref" in schema:
            return self._reference(schema)
        literals = {name: schema[name] for name in ("enum", "const") if name in schema and _is_simple(name, schema)}
        types = _types_of(schema)
        if literals and self._dialect.names_types:
            return self._constants(literals, types, schema)
        if literals:
            is_typed = len(types) == 1 and "type" in schema and types[0] not in {"object", "array"}
            typed = {"type": types[0]} if is_typed else {}
            return self._described({**typed, **literals}, schema, known={*literals, "type"})
        match types:
            case []:
                return self._alternatives(schema)
            case [single]:
                return self._typed(single, schema)
            case _:
                return self._split(types, schema)

    def _constants(self, literals: JsonObject, types: list[str], schema: JsonObject) -> JsonObject:
        """Return a choice of constants, grouped by type."""
        values: list[object] = [literals["const"]] if "const" in literals else literals["enum"]
        self.constants += len(values)
        by_type: dict[str, list[object]] = {}
        for value in values:
            name = _type_of(value)
            if not types or name in types or (name == "integer" and "number" in types):
                by_type.setdefault(name, []).append(value)
        variants: list[JsonObject] = [
            {"type": name} if name == "null" else {"type": name, "enum": of_type} for name, of_type in by_type.items()
        ]
        if not variants:
            raise Inexpressible
        return self._described(
            variants[0] if len(variants) == 1 else {"anyOf": variants}, schema, known={*literals, "type"}
        )

    def _reference(self, schema: JsonObject, *, inline: bool = False) -> JsonObject:
        place = self._place(schema["$ref"])
        can_stand = place[0] in self._dialect.holders
        comes_back = place in self._open
        # Keywords beside a reference apply to its target; the grammar cannot express that.
        notes = {key: schema[key] for key in _NOTES if key in schema}
        if schema.keys() - _SILENT - {*_NOTES, "$ref", "default", "examples"}:
            raise Inexpressible
        if comes_back and not (self._dialect.recurs and can_stand):
            raise Inexpressible
        if not inline and can_stand and not schema.keys() - _SILENT - {"$ref"}:
            return self._defined(place)
        if comes_back:
            return {"anyOf": [self._defined(place)], **notes}
        return {**self._target(place), **notes}

    def _defined(self, place: tuple[str, str]) -> JsonObject:
        """Return a reference to a definition, which is translated at its first reference."""
        holder, name = place
        held = self.definitions.setdefault(holder, {})
        if name not in held:
            held[name] = {}  # a recursive reference needs no second translation
            held[name] = self._target(place)
        return {"$ref": f"#/{holder}/{name}"}

    def _target(self, place: tuple[str, str]) -> JsonObject:
        self._open.append(place)
        translated = self._schema(self._definition(place))
        self._open.pop()
        return translated

    def _place(self, reference: object) -> tuple[str, str]:
        parts = reference.split("/") if isinstance(reference, str) else []
        match parts:
            case ["#", holder, name] if holder in _HOLDERS and "~" not in name and "%" not in name:
                return holder, name
            case _:
                raise Inexpressible

    def _definition(self, place: tuple[str, str]) -> object:
        holder, name = place
        return cast("JsonObject", self._root.get(holder, {})).get(name)

    def _merged(self, schema: JsonObject) -> JsonObject:
        """Return `schema` with the parts of its `allOf` merged into it."""
        own = {name: value for name, value in schema.items() if name != "allOf"}
        merged: JsonObject = {}
        closed: list[JsonObject] = []
        for part in (own, *map(self._part, cast("list[object]", schema["allOf"]))):
            if part.get("additionalProperties") is False:
                closed.append(part.get("properties", {}))
            for name, value in part.items():
                merged[name] = _conjunction(name, merged[name], value) if name in merged else value
        if any(properties.keys() != merged.get("properties", {}).keys() for properties in closed):
            raise Inexpressible
        return merged

    def _part(self, value: object) -> JsonObject:
        if not isinstance(value, dict):
            raise Inexpressible
        part = cast("JsonObject", value)
        if part.keys() == {"$ref"}:
            place = self._place(part["$ref"])
            if place in self._open:
                raise Inexpressible
            self._open.append(place)
            part = self._part(self._definition(place))
            self._open.pop()
        return self._merged(part) if "allOf" in part else part

    def _alternatives(self, schema: JsonObject) -> JsonObject:
        """Return the translation of a schema that is only a choice."""
        given = [name for name in ("anyOf", "oneOf") if schema.get(name)]
        if len(given) != 1 or schema.keys() & (_COMBINED - set(given)):
            raise Inexpressible
        self.unions += 1
        variants = [self._schema(variant) for variant in cast("list[object]", schema[given[0]])]
        return self._described({"anyOf": variants}, schema, known={"anyOf", "oneOf"})

    def _split(self, types: list[str], schema: JsonObject) -> JsonObject:
        """Return a choice with one alternative for each type, each with the keywords of that type."""
        if schema.keys() & _COMBINED:
            raise Inexpressible
        self.unions += 1
        variants = [
            self._typed(name, {key: value for key, value in schema.items() if key in _keywords_of(name)})
            for name in types
        ]
        every = set[str]().union(*_OF_TYPE.values())
        return self._described({"anyOf": variants}, schema, known={*every, "type", "enum", "const"})

    def _typed(self, name: str, schema: JsonObject) -> JsonObject:
        names = cast("JsonObject", schema.get("properties", {})).keys() if name == "object" else frozenset[str]()
        if not all(_narrows(keyword, schema[keyword], names) for keyword in _COMBINED & schema.keys()):
            raise Inexpressible
        of_type = _keywords_of(name)
        held = {key: value for key, value in schema.items() if key in of_type and self._dialect.holds(name, key, value)}
        match name:
            case "object":
                strict = self._object(schema)
            case "array":
                strict = {**self._array(schema), **held}
            case _:
                strict: JsonObject = {"type": name, **held}
        return self._described(strict, schema, known=strict.keys())

    def _object(self, schema: JsonObject) -> JsonObject:
        properties: JsonObject = schema.get("properties", {})
        required: list[str] = schema.get("required", [])
        further = schema.get("additionalProperties", True)
        is_map = bool(schema.get("patternProperties")) or further not in (True, False, {})
        is_open = not properties and further is not False
        is_short = schema.get("minProperties", 0) > len(properties)
        if is_map or is_open or is_short or not set(required) <= properties.keys():
            raise Inexpressible
        self.optional += len(properties.keys() - set(required))
        members = {name: self._schema(member) for name, member in properties.items()}
        if self._dialect.has_all:
            members = {name: member if name in required else _or_absent(member) for name, member in members.items()}
            required = list(members)
        strict: JsonObject = {"type": "object", "properties": members, "additionalProperties": False}
        return {**strict, "required": required} if required or "required" in schema else strict

    def _array(self, schema: JsonObject) -> JsonObject:
        if "prefixItems" in schema:
            raise Inexpressible
        return {"type": "array", "items": self._schema(schema.get("items"))}

    def _described(self, strict: JsonObject, schema: JsonObject, *, known: Iterable[str]) -> JsonObject:
        """Return `strict` with the notes of `schema`, and a description of the keywords that are not `known`."""
        rules = {name: value for name, value in schema.items() if name not in {*known, *_NOTES, *_SILENT}}
        notes = {name: schema[name] for name in _NOTES if name in schema}
        if rules:
            notes["description"] = _in_words(notes.get("description"), rules)
        return {**strict, **notes}


def _or_absent(member: JsonObject) -> JsonObject:
    """Return the schema of an optional property for a grammar that requires every property."""
    variants: list[JsonObject] = member.get("anyOf", [member])
    if any(variant.get("type") == "null" for variant in variants):
        return member
    return {**(member if "anyOf" in member else {}), "anyOf": [*variants, ABSENT]}


def _type_of(constant: object) -> str:
    match constant:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case _:
            return "number"


def _keywords_of(name: str) -> frozenset[str]:
    return _OF_TYPE["number" if name == "integer" else name] if name not in {"boolean", "null"} else frozenset()


def _types_of(schema: JsonObject) -> list[str]:
    """Return the types that `schema` names or that its keywords imply; none if it takes any type."""
    given = schema.get("type")
    if given is not None:
        types = cast("list[str]", [given] if isinstance(given, str) else given)
        if not types or any(name not in _TYPES for name in types):
            raise Inexpressible
        return types
    return [name for name, keywords in _OF_TYPE.items() if keywords & schema.keys()]


def _is_simple(name: str, schema: JsonObject) -> bool:
    """Return whether there are constants and all are of simple types."""
    values = cast("list[object]", schema[name]) if name == "enum" else [schema[name]]
    return bool(values) and not any(isinstance(value, (dict, list)) for value in values)


def _conjunction(name: str, one: Any, other: Any) -> Any:
    """Return the value of a keyword if two schemas apply at once."""
    match name:
        case "required":
            return list(dict.fromkeys((*one, *other)))
        case "properties" if all(one[key] == other[key] for key in one.keys() & other.keys()):
            return {**one, **other}
        case "title" | "description":
            return one
        case _ if one == other:
            return one
        case _:
            raise Inexpressible


def _narrows(keyword: str, value: object, names: Iterable[str]) -> bool:
    """Return whether a keyword beside an object's properties, or a value's type, only narrows them.

    `names` are the properties; the grammar forbids any other property.
    """
    if keyword in _DEPENDENT:
        return all(_is_narrow(member, names) for member in cast("JsonObject", value).values())
    return all(
        _is_narrow(item, names) for item in (cast("list[object]", value) if isinstance(value, list) else [value])
    )


def _is_narrow(value: object, names: Iterable[str]) -> bool:
    if isinstance(value, list):
        return set(cast("list[str]", value)) <= set(names)
    if not isinstance(value, dict):
        return True
    schema = cast("JsonObject", value)
    properties: JsonObject = schema.get("properties", {})
    required: list[str] = schema.get("required", [])
    flat = all(not isinstance(member, dict) or not member.keys() & _STRUCTURED for member in properties.values())
    known = {*properties, *required} <= set(names)
    others = schema.keys() & (_STRUCTURED - {"properties", "required"})
    return (
        flat and known and not others and all(_narrows(name, schema[name], names) for name in _COMBINED & schema.keys())
    )


def _in_words(described: object, rules: JsonObject) -> str:
    listed = ", ".join(f"{name}: {msgspec.json.encode(value).decode()}" for name, value in rules.items())
    return f"{described}\n\n{{{listed}}}" if described else f"{{{listed}}}"


_MOST_NODES = 2_000
"""Largest size of a schema with its references resolved; a larger one is described in words."""

_FORMATS = frozenset({"date-time", "date", "time"})
_PLAIN = frozenset({"type", "minItems", "maxItems", "minimum", "maximum", "required"})
"""Keywords that mean the same in the API."""


def open_schema(schema: JsonObject) -> JsonObject | None:
    """Return `schema` as `responseJsonSchema`, None if it has to be described in words."""
    try:
        translated = _OpenTranslation(schema).schema(schema, ())
    except (Inexpressible, AttributeError, KeyError, TypeError, ValueError):
        return None  # the schema of an imported log may be invalid
    return translated if translated.keys() & {"type", "anyOf", "enum"} else None


class _OpenTranslation:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._nodes = 0

    def schema(self, node: object, within: tuple[str, ...]) -> JsonObject:
        """Return the translation of one schema; `within` are the references that contain it."""
        self._nodes += 1
        if node is False or self._nodes > _MOST_NODES:
            raise Inexpressible
        if node is True:
            return {}
        resolved, within = self._resolved(cast("JsonObject", node), within)
        variants = resolved.get("anyOf") or resolved.get("oneOf")
        if variants:
            return self._alternatives(resolved, variants, within)
        translated, told = self._typed(resolved, within)
        return _with_notes(translated, resolved, told)

    def _resolved(self, node: JsonObject, within: tuple[str, ...]) -> tuple[JsonObject, tuple[str, ...]]:
        """Return `node` with its references and `allOf` merged into it, and the references that contain it."""
        while "$ref" in node or "allOf" in node:
            rest = {name: value for name, value in node.items() if name not in {"$ref", "allOf"}}
            parts: list[JsonObject] = list(node.get("allOf", ()))
            if "$ref" in node:
                reference: str = node["$ref"]
                if reference in within:
                    raise Inexpressible
                within = (*within, reference)
                parts.insert(0, self._target(reference))
            node = _merge_schemas([rest, *parts])
        return node, within

    def _target(self, reference: str) -> JsonObject:
        start, *steps = reference.split("/")
        if start != "#":
            raise Inexpressible
        found = self._root
        for step in steps:
            found: JsonObject = found[step.replace("~1", "/").replace("~0", "~")]
        return found

    def _alternatives(self, node: JsonObject, variants: Sequence[JsonObject], within: tuple[str, ...]) -> JsonObject:
        """Return the translated alternatives, each with the keywords that apply to all."""
        common = {
            name: value
            for name, value in node.items()
            if name not in {"anyOf", "oneOf", *_NOTES} and name not in _SILENT
        }
        translated = [
            self.schema(_merge_schemas([common, variant]) if common else variant, within) for variant in variants
        ]
        return _with_notes({"anyOf": translated}, node, ())

    def _typed(self, node: JsonObject, within: tuple[str, ...]) -> tuple[JsonObject, set[str]]:
        """Return the translation, and the keywords of `node` that it does not express."""
        translated: JsonObject = {}
        told = {name for name in node if name not in _SILENT and name not in _NOTES}
        for name in _PLAIN & node.keys():
            translated[name] = node[name]
        if not set(_names(node.get("type", ()))) <= set(_TYPES):
            raise Inexpressible
        if node.get("format") in _FORMATS:
            translated["format"] = node["format"]
        if values := _enumerated(node):
            translated = {
                **({} if "type" in translated else {"type": _type_of_all(values)}),
                **translated,
                "enum": values,
            }
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
    """Return the enumerated values if the API can express them: strings or numbers."""
    values = cast("list[object]", [node["const"]] if "const" in node else node.get("enum", []))
    kinds = {bool if isinstance(value, bool) else str if isinstance(value, str) else type(value) for value in values}
    return values if kinds and (kinds <= {str} or kinds <= {int, float}) else None


def _type_of_all(values: Sequence[object]) -> str:
    if isinstance(values[0], str):
        return "string"
    return "integer" if all(isinstance(value, int) for value in values) else "number"


def _merge_schemas(schemas: Sequence[JsonObject]) -> JsonObject:
    """Return one schema for several that all apply.

    If they differ in a keyword, the first is sent and the others are described in words; the answer is validated
    against all of them.
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


def _with_notes(translated: JsonObject, node: JsonObject, told: Iterable[str]) -> JsonObject:
    """Return `translated` with the notes of `node`, and a description of its keywords that are not in `told`."""
    notes: JsonObject = {name: node[name] for name in _NOTES if isinstance(node.get(name), str)}
    rules = {name: node[name] for name in node if name in set(told)}
    if rules:
        notes["description"] = _in_words(notes.get("description"), rules)
    return {**translated, **notes}
