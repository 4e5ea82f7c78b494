"""Schemas of answers and tool arguments: strict forms, wrapped values, and schemas in words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from jp.conversation.entries import JsonObject
from jp.provider.grammar import ABSENT, Dialect, Grammar, Inexpressible

WRAPPED = "wrapped_answer"
"""Property that holds the answer."""

_OPENING = re.compile(rf'\s*\{{\s*"{WRAPPED}"\s*:\s*')
_BARE_OPENING = f'{{"{WRAPPED}":'
_CLOSING = "} \t\r\n"


def wrapped(schema: JsonObject) -> JsonObject:
    """Return the schema of an object with an answer of `schema`."""
    return {
        "type": "object",
        "properties": {WRAPPED: schema},
        "additionalProperties": False,
        "required": [WRAPPED],
    }


def is_wrapped(wanted: JsonObject) -> bool:
    """Return whether the answer to a request with this `output_config.format` is wrapped in an object."""
    schema: JsonObject = wanted.get("schema", {})
    return list(schema.get("properties", ())) == [WRAPPED]


class Unwrapper:
    """Remover of the wrapper around one streamed text. A text without a wrapper is unchanged."""

    def __init__(self) -> None:
        self._held = ""
        self._is_decided = False
        self._is_wrapped = False

    def feed(self, text: str) -> str:
        """Add to the text, and return the part that belongs to the answer."""
        self._held += text
        if not self._is_decided and not self._decide():
            return ""
        if not self._is_wrapped:
            return self._take(len(self._held))
        return self._take(len(self._held.rstrip(_CLOSING)))

    def finish(self) -> str:
        """Return the rest. If the wrapper is not closed, the answer was cut, and this is all there is of it."""
        rest = self._take(len(self._held))
        if self._is_wrapped and "}" in rest:
            return rest[: rest.rindex("}")]
        return rest

    def _decide(self) -> bool:
        opening = _OPENING.match(self._held)
        if opening is not None:
            self._held = self._held[opening.end() :]
            self._is_decided = self._is_wrapped = True
        elif not _BARE_OPENING.startswith("".join(self._held.split())):
            self._is_decided = True
        return self._is_decided

    def _take(self, size: int) -> str:
        taken, self._held = self._held[:size], self._held[size:]
        return taken


_FORMATS = frozenset({
    *("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"),
})
_SIZES = frozenset({"minItems", "maxItems"})
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_UNSUPPORTED_PATTERN = re.compile(r"\(\?|\\[1-9kpPbB]")
"""Features of regular expressions that grammars lack: special groups, backreferences, anchors, named classes."""


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _holds(name: str, keyword: str, value: object) -> bool:
    match name:
        case "string" if keyword == "pattern":
            return isinstance(value, str) and _UNSUPPORTED_PATTERN.search(value) is None
        case "string":
            return keyword == "format" and value in _FORMATS
        case "array":
            return keyword in _SIZES and _is_number(value)
        case _:
            return keyword in _BOUNDS and _is_number(value)


def _holds_nothing(_name: str, _keyword: str, _value: object) -> bool:
    return False


class Strictness(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a server's grammar: its dialect, the number of constants, and the bytes of JSON."""

    dialect: Dialect
    most_constants: int = 1000
    most_bytes: int = 120_000


OPENAI = Strictness(
    dialect=Dialect(
        holds=_holds, has_all=True, names_types=True, recurs=True, holders=("$defs",), deepest=10, most=5000
    )
)
"""Dialect of OpenAI."""

PLAIN = Strictness(
    dialect=Dialect(holds=_holds_nothing, has_all=True, names_types=True, holders=("$defs",), deepest=10, most=500),
    most_constants=500,
    most_bytes=5000,
)
"""Dialect of any server with strict schemas; keywords that narrow a value are written into descriptions."""


def strict_schema(schema: JsonObject, strictness: Strictness = OPENAI) -> JsonObject | None:
    """Return `schema` in strict form; None if it is not of an object, or the strict form would forbid valid values."""
    strict = _translated(schema, strictness)
    return strict if strict is not None and strict.get("type") == "object" else None


def strict_answer(schema: JsonObject, strictness: Strictness = OPENAI) -> JsonObject | None:
    """Return the schema of an answer in strict form, wrapped if it is not of an object; None as in `strict_schema`."""
    strict = _translated(schema, strictness)
    if strict is None or strict.get("type") == "object":
        return strict
    definitions = {"$defs": strict.pop("$defs")} if "$defs" in strict else {}
    return {**wrapped(strict), **definitions}


def _translated(schema: JsonObject, strictness: Strictness) -> JsonObject | None:
    grammar = Grammar(schema, strictness.dialect)
    try:
        strict = {**grammar.root(), **grammar.definitions}
        for definition in strict.get("$defs", {}).values():
            list(_variants(definition, strict))
    except (Inexpressible, AttributeError, KeyError, TypeError):
        return None  # the schema of a log or a server may be invalid
    is_large = len(msgspec.json.encode(strict)) > strictness.most_bytes
    return None if is_large or grammar.constants > strictness.most_constants else strict


def _variants(schema: JsonObject, root: JsonObject, seen: tuple[str, ...] = ()) -> Iterator[JsonObject]:
    """Yield the schemas that a value of `schema` may have, with choices and references resolved.

    Raises:
        Inexpressible: a reference refers directly to itself.
    """
    if "anyOf" in schema:
        for variant in cast("list[JsonObject]", schema["anyOf"]):
            yield from _variants(variant, root, seen)
    elif "$ref" in schema:
        reference: str = schema["$ref"]
        if reference in seen:
            raise Inexpressible
        definition: JsonObject = root["$defs"][reference.removeprefix("#/$defs/")]
        yield from _variants(definition, root, (*seen, reference))
    else:
        yield schema


def has_absent_properties(strict: JsonObject) -> bool:
    """Return whether an answer to a strict schema may have nulls for optional properties."""
    return _has_omitted(strict)


def _has_omitted(value: object) -> bool:
    if isinstance(value, dict):
        return value == ABSENT or any(map(_has_omitted, cast("JsonObject", value).values()))
    return isinstance(value, list) and any(map(_has_omitted, cast("list[object]", value)))


def without_absent(text: str, strict: JsonObject) -> str:
    """Return JSON of a strict schema without the nulls of optional properties.

    Text that is not JSON or has no such null is unchanged, byte for byte.
    """
    try:
        value: object = msgspec.json.decode(text)
        kept = _without_absent(value, (strict,), strict)
    except (msgspec.DecodeError, RecursionError):
        return text
    return text if kept == value else msgspec.json.encode(kept).decode()


def _without_absent(value: object, schemas: Sequence[JsonObject], root: JsonObject) -> object:
    """Return `value` without nulls of optional properties; it may be of any of `schemas`."""
    if not isinstance(value, (dict, list)):
        return value
    variants = [variant for schema in schemas for variant in _variants(schema, root)]
    if isinstance(value, list):
        items: list[JsonObject] = [variant["items"] for variant in variants if variant.get("type") == "array"]
        return [_without_absent(item, items, root) for item in cast("list[object]", value)]
    given = cast("JsonObject", value)
    fitting = [
        properties for variant in variants if (properties := _matching_properties(variant, given, root)) is not None
    ]
    members = {name: [properties[name] for properties in fitting if name in properties] for name in given}
    return {
        name: _without_absent(member, members[name], root)
        for name, member in given.items()
        if member is not None or not _is_omitted(members[name], root)
    }


def _is_omitted(schemas: Sequence[JsonObject], root: JsonObject) -> bool:
    return any(variant == ABSENT for schema in schemas for variant in _variants(schema, root))


def _matching_properties(variant: JsonObject, value: JsonObject, root: JsonObject) -> JsonObject | None:
    """Return the properties of a variant if `value` has no others and its constants match, else None."""
    properties: JsonObject | None = variant.get("properties")
    if properties is None or not value.keys() <= properties.keys():
        return None
    fits = all(_may_be(value[name], properties[name], root) for name in value)
    return properties if fits else None


def _may_be(value: object, schema: JsonObject, root: JsonObject) -> bool:
    variants = list(_variants(schema, root))
    return any("enum" not in variant or value in cast("list[object]", variant["enum"]) for variant in variants)


class StrictText:
    """Converter of one streamed JSON text from a strict schema to the original schema.

    `is_answer` means that it may be wrapped. If nulls may have to be removed, all text is returned at the end.
    """

    def __init__(self, strict: JsonObject, *, is_answer: bool) -> None:
        is_wrapped = is_answer and list(strict.get("properties", ())) == [WRAPPED]
        self._strict = strict
        self._unwrapper = Unwrapper() if is_wrapped else None
        self._held: list[str] | None = [] if has_absent_properties(strict) else None

    def feed(self, text: str) -> str:
        """Add to the text, and return the part that can be converted."""
        if self._held is not None:
            self._held.append(text)
            return ""
        return text if self._unwrapper is None else self._unwrapper.feed(text)

    def finish(self) -> str:
        """Return the rest."""
        text = "" if self._held is None else without_absent("".join(self._held), self._strict)
        return text if self._unwrapper is None else self._unwrapper.feed(text) + self._unwrapper.finish()


def in_words(schema: JsonObject) -> str:
    """Return the instruction that is appended to a request whose answer has to match `schema`."""
    text = msgspec.json.encode(schema).decode()
    return (
        "Your final answer to this has to be one JSON value that fits the JSON Schema below, with nothing around it: "
        f"no explanation, no code fence.\n\n{text}"
    )
