"""JSON Schema: its short form, and where schemas stand inside it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, cast

import msgspec

from jp.conversation.entries import JsonObject
from jp.errors import UsageError
from jp.suggestions import closest_names

IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords whose schemas are about the same value as the schema that they stand in."""

_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_SINGLE = frozenset({
    *("items", "additionalItems", "unevaluatedItems", "contains", "not", "if", "then", "else"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema"),
})
_ASSERTIONS = frozenset({
    *("type", "enum", "const", "$ref", "$dynamicRef", "$recursiveRef", "required", "dependentRequired", "format"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "divisibleBy"),
    *("minLength", "maxLength", "pattern", "contentEncoding", "contentMediaType", "uniqueItems"),
    *("minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties", "extends", "disallow"),
})
_ANNOTATIONS = frozenset({
    *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment"),
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
})

KEYWORDS = _NAMED | _LISTED | _SINGLE | _ASSERTIONS | _ANNOTATIONS
"""The keywords of all drafts."""

Place = tuple[str, ...]
"""The keywords, names and positions that lead to a part of a schema."""


def schemas_in(schema: JsonObject) -> Iterator[tuple[Place, JsonObject]]:
    """The schemas that stand directly in `schema`, and where. Those that are just `true` or `false` are left out."""
    for keyword, value in schema.items():
        for place, member in _members(keyword, value):
            if isinstance(member, dict):
                yield place, cast("JsonObject", member)


def _members(keyword: str, value: object) -> Iterator[tuple[Place, object]]:
    """What a keyword holds where it holds schemas."""
    if isinstance(value, list) and keyword in _LISTED:
        items = cast("list[object]", value)
        yield from (((keyword, str(position)), item) for position, item in enumerate(items))
    elif isinstance(value, dict) and keyword in _NAMED:
        named = cast("JsonObject", value)
        yield from (((keyword, name), member) for name, member in named.items())
    elif keyword in _SINGLE:
        yield (keyword,), value


def pointer(place: Place) -> str:
    """`place` as a JSON pointer (RFC 6901), empty for the top."""
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in place)


MAX_DEPTH = 50
"""How deep objects and arrays may be nested."""

_HINT = (
    "a field is `name type: description`, as in `name, ?age int, tags [str]: up to five`; "
    "a description with a comma needs quotes"
)
_TYPES: dict[str, JsonObject] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "any": {},
}
_LONG_NAMES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_CONSTANTS = {"true": True, "false": False, "null": None}
_OTHERS = {
    **dict.fromkeys(("object", "dict", "map"), "an object is written as `{name type}`"),
    **dict.fromkeys(("array", "list"), "an array is written as `[type]`"),
}

_SPACE = re.compile(r"(?:[ \t\r]|\\\r?\n)*")
_GAP = re.compile(r"(?:\s|\\\r?\n)*")
_SEPARATORS = re.compile(r"(?:[\s,]|\\\r?\n)*")
_NAME = re.compile(r"\w[\w-]*")
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"-?\d[\w.+-]*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|' r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPE = re.compile(r"\\(\r?\n|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\", "\n": "", "\r\n": ""}
_HEREDOC = re.compile(r"<<(?P<word>\w+)[ \t]*\r?\n(?P<text>(?:.*\n)*?)[ \t]*(?P=word)[ \t\r]*(?=\n|\Z)")
_BARE = re.compile(r"(?:\\\r?\n|[^,\n])*")
_BARE_INSIDE = re.compile(r"(?:\\\r?\n|[^,\n}])*")


class SchemaSyntaxError(UsageError):
    """The short form of a schema is malformed. `line` and `column` count from 1."""

    def __init__(self, problem: str, *, line: int, column: int, hint: str = _HINT) -> None:
        where = f"column {column}" if line == 1 else f"line {line}, column {column}"
        super().__init__(f"the schema is malformed at {where}: {problem}", hint=hint)
        self.line = line
        self.column = column


def parse_dsl(text: str) -> JsonObject:
    """The JSON Schema, of type object, that `text` stands for.

    Raises:
        SchemaSyntaxError: it is malformed.
    """
    return _Parser(text).root()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def root(self) -> JsonObject:
        schema = self._fields()
        if self._peek():
            self._fail("'}' closes nothing")
        if not schema.get("properties"):
            self._fail("there is no field")
        return schema

    def _fields(self) -> JsonObject:
        """The fields up to the end, or to a closing brace."""
        properties: dict[str, JsonObject] = {}
        required: list[str] = []
        self._skip(_SEPARATORS)
        while self._peek() not in {"", "}"}:
            start = self._at
            is_optional = self._take("?")
            name = self._name()
            if name in properties:
                self._fail(f"there is a field {name!r} already", at=start)
            properties[name] = self._field()
            if not is_optional:
                required.append(name)
            self._skip(_SPACE)
            if self._peek() not in {"", "}", ",", "\n"}:
                self._fail("there should be a comma or a new line before the next field")
            self._skip(_SEPARATORS)
        schema: JsonObject = {"type": "object"}
        if properties:
            schema["properties"] = properties
        if required:
            schema["required"] = required
        return schema

    def _name(self) -> str:
        self._skip(_SPACE)
        if self._peek() in {'"', "'"}:
            return self._quoted()
        found = _NAME.match(self._text, self._at)
        if found is None:
            self._fail("there should be a field's name")
        self._at = found.end()
        return found[0]

    def _field(self) -> JsonObject:
        """What follows a name."""
        self._skip(_SPACE)
        schema = {"type": "string"} if self._peek() in {"", ",", "\n", "}", ":"} else self._type()
        self._skip(_SPACE)
        return {**schema, "description": self._description()} if self._take(":") else schema

    def _type(self, space: re.Pattern[str] = _SPACE) -> JsonObject:
        """A type; `space` is what may stand before each `|`."""
        options = [self._one()]
        self._skip(space)
        while self._take("|"):
            self._skip(_GAP)
            options.append(self._one())
            self._skip(space)
        return _union(options)

    def _one(self) -> JsonObject:
        match self._peek():
            case "[":
                return self._nested("[", "]")
            case "{":
                return self._nested("{", "}")
            case '"' | "'":
                return {"const": self._quoted()}
            case character if character == "-" or character.isdecimal():
                return {"const": self._number()}
            case _:
                return self._named_type()

    def _nested(self, opening: str, closing: str) -> JsonObject:
        start = self._at
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(f"it is nested more than {MAX_DEPTH} deep")
        self._take(opening)
        self._skip(_GAP)
        schema = self._fields() if opening == "{" else {"type": "array", "items": self._type(_GAP)}
        self._skip(_GAP)
        if not self._take(closing):
            self._fail(f"{opening!r} is not closed", at=start)
        self._depth -= 1
        return schema

    def _number(self) -> int | float:
        found = _NUMBER.match(self._text, self._at)
        text = "-" if found is None else found[0]
        try:
            value = msgspec.json.decode(text, type=int | float)
        except (msgspec.DecodeError, UnicodeEncodeError):
            self._fail(f"{text!r} is no number")
        self._at += len(text)
        return value

    def _named_type(self) -> JsonObject:
        found = _WORD.match(self._text, self._at)
        if found is None:
            self._fail("there should be a type")
        word = found[0]
        type_name = _LONG_NAMES.get(word, word)
        if type_name not in _TYPES and word not in _CONSTANTS:
            self._fail(f"there is no type {word!r}", hint=_meant(word))
        self._at = found.end()
        return dict(_TYPES[type_name]) if type_name in _TYPES else {"const": _CONSTANTS[word]}

    def _description(self) -> str:
        self._skip(_SPACE)
        start = self._at
        if self._peek() in {'"', "'"}:
            return self._quoted()
        if self._text.startswith("<<", start):
            return self._heredoc()
        bare = (_BARE_INSIDE if self._depth else _BARE).match(self._text, start)
        text = " ".join(("" if bare is None else bare[0]).replace("\\\r\n", " ").replace("\\\n", " ").split())
        if not text:
            self._fail("there should be a description after the colon")
        self._at = start if bare is None else bare.end()
        return text

    def _heredoc(self) -> str:
        from textwrap import dedent

        found = _HEREDOC.match(self._text, self._at)
        if found is None:
            self._fail("after `<<WORD`, the description begins on the next line and ends with a line that says `WORD`")
        self._at = found.end()
        return dedent(found["text"].replace("\r\n", "\n")).strip("\n")

    def _quoted(self) -> str:
        found = _QUOTED.match(self._text, self._at)
        if found is None:
            self._fail(f"the quote {self._peek()} is not closed")
        inside = found[1] if found[1] is not None else found[2]
        for escape in _ESCAPE.finditer(inside):
            if escape[1] not in _ESCAPED:
                self._fail(f"{escape[0]!r} is no escape", at=self._at + 1 + escape.start())
        self._at = found.end()
        return _ESCAPE.sub(lambda escape: _ESCAPED[escape[1]], inside)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, character: str) -> bool:
        is_there = self._peek() == character
        self._at += is_there
        return is_there

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        self._at = self._at if found is None else found.end()

    def _fail(self, problem: str, *, at: int | None = None, hint: str = _HINT) -> NoReturn:
        before = self._text[: self._at if at is None else at]
        line = before.count("\n") + 1
        raise SchemaSyntaxError(problem, line=line, column=len(before) - before.rfind("\n"), hint=hint)


def _meant(word: str) -> str:
    """What somebody who wrote `word` for a type may have meant."""
    if word.lower() in _OTHERS:
        return _OTHERS[word.lower()]
    near = closest_names(word, (*_TYPES, *_LONG_NAMES))
    meant = f"did you mean {near[0]!r}?" if near else f"the types are: {', '.join(_TYPES)}."
    return f'{meant} A constant is quoted ("{word}"), and so is a description with a comma.'


def _union(options: list[JsonObject]) -> JsonObject:
    """One of the schemas. Constants are listed together."""
    if len(options) == 1:
        return _alone(options[0])
    if {} in options:
        return {}
    constants = list(_distinct(option["const"] for option in options if "const" in option))
    others = list(_distinct(option for option in options if "const" not in option))
    if not others:
        return {"enum": constants}
    if None in constants:
        constants.remove(None)
        others.append({"type": "null"})
    listed = [{"enum": constants}] if constants else []
    return {"anyOf": [*others, *listed]} if len(others) + len(listed) > 1 else others[0]


def _alone(option: JsonObject) -> JsonObject:
    return {"type": "null"} if "const" in option and option["const"] is None else option


def _distinct(values: Iterable[Any]) -> Iterable[Any]:
    """The values without repetitions; as in JSON, 1 is not true."""
    return {msgspec.json.encode(value): value for value in values}.values()
