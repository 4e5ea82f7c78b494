"""Schemas of structured output: reading one, checking that it can be used, and whether a value fits it."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.schemas import IN_PLACE, KEYWORDS, Place, parse_dsl, pointer, schemas_in
from jp.errors import ConfigurationError, UsageError, reason_of
from jp.file_access import read_beginning
from jp.suggestions import closest_names

if TYPE_CHECKING:
    from jsonschema import FormatChecker, SchemaError, ValidationError
    from jsonschema.protocols import Validator
    from referencing.jsonschema import SchemaResource

    AnyError = ValidationError | SchemaError

HINT = (
    "patterns are read as regular expressions of Python, which lack some constructs of ECMA-262: "
    r"`[^\W\d_]` is a letter, as `\p{L}` is there"
)
DIALECT = "regular expression of Python"


def why_not(pattern: str) -> str:
    """Return why Python does not take `pattern`; empty where it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError) as error:
        return str(error)
    except RecursionError:
        return "it is nested too deeply"
    return ""


_LONGEST = 80
_SHOWN = 5
_BOUNDS = frozenset({
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"),
    *("format", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "minContains", "maxContains"),
})


class Misfit(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a value, as a JSON pointer, and what is wrong there."""

    pointer: str
    problem: str

    def __str__(self) -> str:
        return f"{self.pointer or 'the top'}: {self.problem}"


def in_one_line(problems: Sequence[str]) -> str:
    """Return the first few of them, and how many more there are."""
    shown = "; ".join(problems[:_SHOWN])
    more = len(problems) - _SHOWN
    return f"{shown}; and {more} more" if more > 0 else shown


def misfits_of(errors: Iterable[AnyError]) -> list[Misfit]:
    """Return the misfits that the errors name, each once, those further up first."""
    found = dict.fromkeys(map(_misfit, sorted(errors, key=lambda error: len(error.absolute_path))))
    return list(found)


def _misfit(error: AnyError) -> Misfit:
    place = tuple(str(step) for step in error.absolute_path)
    return Misfit(pointer=pointer(place), problem=_problem(error))


def _problem(error: AnyError) -> str:
    keyword, wanted, found = str(error.validator), cast("Any", error.validator_value), cast("Any", error.instance)
    if keyword == "format" and error.cause is not None:
        return f"{_json(found)} is no {DIALECT}: {_shortened(str(error.cause))}"
    if keyword in _BOUNDS:
        return f"{_json(found)} does not have {keyword} {_json(wanted)}"
    describe = _PROBLEMS.get(keyword)
    return _shortened(error.message) if describe is None else describe(error, wanted, found)


def _wrong_type(error: AnyError, wanted: Any, found: Any) -> str:
    names: list[str] = [wanted] if isinstance(wanted, str) else wanted
    return f"{_json(found)} is not of type {' or '.join(map(str, names))}"


def _not_listed(error: AnyError, wanted: Any, found: Any) -> str:
    return f"{_json(found)} is none of {', '.join(map(_json, wanted))}"


def _not_constant(error: AnyError, wanted: Any, found: Any) -> str:
    return f"{_json(found)} is not {_json(wanted)}"


def _missing(error: AnyError, wanted: Any, found: Any) -> str:
    """Return a draft 3 schema says `required` of the member itself; then there is no list of names."""
    names = [name for name in cast("list[str]", wanted) if name not in found] if isinstance(wanted, list) else []
    return f"{_listed(names)} missing" if names else _shortened(error.message)


def _not_expected(error: AnyError, wanted: Any, found: Any) -> str:
    known: JsonObject = cast("JsonObject", error.schema).get("properties", {})
    names = [name for name in found if name not in known]
    return f"{_listed(names)} not expected" if names else _shortened(error.message)


def _no_alternative(error: AnyError, wanted: Any, found: Any) -> str:
    """Return the problem with the alternative that gets furthest into the value, of several the first."""
    if not error.context:
        return f"{_json(found)} fits more than one of the {len(wanted)} alternatives"
    nearest = max(error.context, key=lambda inner: len(inner.absolute_path))
    same_place = len(nearest.absolute_path) == len(error.absolute_path)
    reason = _problem(nearest) if same_place else str(_misfit(nearest))
    return f"{_json(found)} fits none of the {len(wanted)} alternatives; the nearest: {reason}"


def _forbidden(error: AnyError, wanted: Any, found: Any) -> str:
    return f"{_json(found)} fits what is ruled out: {_json(wanted)}"


_PROBLEMS: dict[str, Callable[[AnyError, Any, Any], str]] = {
    "type": _wrong_type,
    "enum": _not_listed,
    "const": _not_constant,
    "required": _missing,
    "additionalProperties": _not_expected,
    "anyOf": _no_alternative,
    "oneOf": _no_alternative,
    "not": _forbidden,
}


def _listed(names: Sequence[str]) -> str:
    quoted = _shortened(", ".join(map(repr, names)))
    return f"{quoted} {'is' if len(names) == 1 else 'are'}"


def _json(value: object) -> str:
    return _shortened(msgspec.json.encode(value).decode())


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


_TIME = r"(?P<clock>\d\d:\d\d:)(?P<second>\d\d)(?:\.\d+)?(?P<offset>[Zz]|[+-]\d\d:\d\d)"
_TIMES = re.compile(_TIME, re.ASCII)
_DATE_TIMES = re.compile(rf"(?P<date>\d{{4}}-\d\d-\d\d)[Tt ]{_TIME}", re.ASCII)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_DURATION = re.compile(
    r"P(?=.)(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=.)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?)", re.ASCII
)

_LEAP_SECOND = "60"


def is_time(text: str) -> bool:
    """Return whether `text` is a time with its offset (RFC 3339)."""
    found = _TIMES.fullmatch(text)
    return found is not None and _exists("2000-01-01", found)


def is_date_time(text: str) -> bool:
    """Return whether `text` is a date and a time with its offset (RFC 3339)."""
    found = _DATE_TIMES.fullmatch(text)
    return found is not None and _exists(found["date"], found)


def is_uri(text: str) -> bool:
    """Return whether `text` is a URI with a scheme (RFC 3986)."""
    return _URI.fullmatch(text) is not None


def is_hostname(text: str) -> bool:
    """Return whether `text` is the name of a host (RFC 1123)."""
    return _HOSTNAME.fullmatch(text) is not None


def is_duration(text: str) -> bool:
    """Return whether `text` is a duration such as `P1DT12H` (ISO 8601)."""
    return _DURATION.fullmatch(text) is not None


def _exists(date: str, time: re.Match[str]) -> bool:
    from datetime import datetime

    second = "59" if time["second"] == _LEAP_SECOND else time["second"]
    offset = "+00:00" if time["offset"] in {"Z", "z"} else time["offset"]
    try:
        datetime.fromisoformat(f"{date}T{time['clock']}{second}{offset}")
    except ValueError:
        return False
    return True


FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": is_date_time,
    "time": is_time,
    "uri": is_uri,
    "hostname": is_hostname,
    "duration": is_duration,
}


Number = int | float


def is_multiple(value: Number, step: Number) -> bool:
    """Return whether `value` is a multiple of `step`, which is not 0, by their shortest decimal notations."""
    if any(isinstance(number, float) and not math.isfinite(number) for number in (value, step)):
        return value == 0
    digits, exponent = _decimal(value)
    unit, unit_exponent = _decimal(step)
    lowest = min(exponent, unit_exponent)
    return digits * 10 ** (exponent - lowest) % (unit * 10 ** (unit_exponent - lowest)) == 0


def _decimal(number: Number) -> tuple[int, int]:
    """Digits and exponent of a number; the exponent of a float has three digits at most."""
    if isinstance(number, int):
        return number, 0
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    whole = int("".join(map(str, digits)))
    return -whole if sign else whole, int(exponent)


_TOP: Place = tuple[str, ...]()
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class References:
    """The references of one schema."""

    def __init__(self, schema: JsonObject, *, dialect: str) -> None:
        self._schema = schema
        self._dialect = dialect
        self._places: dict[int, Place] = {}
        # Which schemas are about the same value as a schema is, by identity.
        self._same: dict[int, list[int]] = {}

    @property
    def schemas(self) -> Collection[int]:
        """The schemas that `problem` has found, by identity."""
        return self._same.keys()

    def problem(self) -> str:
        """Return the problem with a reference and its place, empty where all are well."""
        from referencing.exceptions import Unresolvable
        from referencing.jsonschema import EMPTY_REGISTRY

        resolver = EMPTY_REGISTRY.resolver_with_root(self._resource(self._schema))
        waiting = [(_TOP, self._schema, resolver)]
        while waiting:
            place, schema, resolver = waiting.pop()
            if not self._enter(schema, place):
                continue
            for keyword in _references_of(schema):
                where = (*place, keyword)
                try:
                    found = resolver.lookup(schema[keyword])
                except (Unresolvable, ValueError):
                    return f"{schema[keyword]!r} at {pointer(where)} is not in it"
                target = cast("Any", found.contents)
                if isinstance(target, dict):
                    self._same[id(schema)].append(id(cast("JsonObject", target)))
                    waiting.append((where, cast("JsonObject", target), found.resolver))
            for step, inner in schemas_in(schema):
                waiting.append(((*place, *step), inner, resolver.in_subresource(self._resource(inner))))
        return self._circle()

    def _resource(self, schema: JsonObject) -> SchemaResource:
        from referencing.jsonschema import specification_with

        return specification_with(self._dialect).create_resource(schema)

    def _enter(self, schema: JsonObject, place: Place) -> bool:
        """Return whether `schema` was not seen before."""
        if id(schema) in self._same:
            return False
        self._places[id(schema)] = place
        self._same[id(schema)] = [id(inner) for step, inner in schemas_in(schema) if step[0] in IN_PLACE]
        return True

    def _circle(self) -> str:
        """Return a schema that comes back to itself while it is about the same value would be followed forever."""
        done: set[int] = set()
        for start in self._same:
            path: list[int] = []
            waiting = [start]
            while waiting:
                current = waiting.pop()
                if current < 0:
                    done.add(path.pop())
                elif current in path:
                    return f"{pointer(self._places[current]) or 'its top'} refers to itself without end"
                elif current not in done:
                    path.append(current)
                    waiting += [-1, *self._same[current]]
        return ""


def _references_of(schema: JsonObject) -> Iterator[str]:
    return (keyword for keyword in _REFERENCES if isinstance(schema.get(keyword), str))


_TOO_DEEP = "it is nested too deeply"
_LONGEST_PATTERN = 100_000
_EXAMPLE = 'an object is described as {"type": "object", "properties": {"name": {"type": "string"}}}'
_TYPES = {
    **{name: name for name in ("string", "integer", "number", "boolean", "object", "array", "null")},
    "int": "integer",
    "float": "number",
    "double": "number",
    "dict": "object",
    "map": "object",
    "list": "array",
}
"""The types by their names, and by those that they have elsewhere."""


class InvalidSchemaError(UsageError):
    """A schema that no answer can be checked against."""


class EndlessSearchError(Exception):
    """The error of a check that took too long, or failed, while it searched for `pattern`."""

    def __init__(self, pattern: str, *, timed_out: bool) -> None:
        super().__init__(pattern)
        self.pattern = pattern
        self.timed_out = timed_out


class Checker:
    """Checks values against `schema`.

    Patterns are searched for by an engine with a time-out. The library itself searches for names in several places,
    so it sees a schema in which each pattern for names is the list of the value's names that it matches.
    """

    def __init__(self, schema: JsonObject) -> None:
        """Check the schema itself.

        Raises:
            InvalidSchemaError: it is not valid, says nothing, or refers to what is not in it, or to itself without end.
        """
        self.schema = schema
        self._deadline = math.inf
        try:
            self._schemas, self._dialect = _checked(schema)
        except RecursionError:
            raise InvalidSchemaError(f"the schema cannot be used: {_TOO_DEEP}") from None
        self._exact = _exact(self._dialect, self._search)

    def misfits(self, value: Any, *, limit_secs: float = math.inf) -> list[Misfit]:
        """Return the parts of `value` that do not fit.

        Raises:
            EndlessSearchError: the search for a pattern took longer than `limit_secs`, or failed.
        """
        from referencing.jsonschema import EMPTY_REGISTRY

        self._deadline = monotonic() + limit_secs
        try:
            # A schema that names its dialect would be checked against the library's own when it refers to itself.
            schema: JsonObject = self._literal(self.schema, names_in(value))
            schema.pop("$schema", None)
            validator = self._exact(schema, registry=EMPTY_REGISTRY, format_checker=_format_checker())
            return misfits_of(validator.iter_errors(value))
        except RecursionError:
            return [Misfit(pointer="", problem=_TOO_DEEP)]

    def _literal(self, part: Any, names: frozenset[str]) -> Any:
        """Return a part of the schema with names in place of patterns for names."""
        if isinstance(part, list):
            return [self._literal(inner, names) for inner in cast("list[Any]", part)]
        if not isinstance(part, dict):
            return part
        members = cast("JsonObject", part)
        copy = {keyword: self._literal(inner, names) for keyword, inner in members.items()}
        patterns = members.get("patternProperties")
        if id(members) in self._schemas and isinstance(patterns, dict):
            named: JsonObject = {}
            for number, (pattern, inner) in enumerate(cast("JsonObject", patterns).items()):
                matched = "|".join(re.escape(name) for name in names if self._search(pattern, name))
                # The number, in a comment, keeps patterns apart that match the same names.
                named[f"(?#{number})" + (rf"\A(?:{matched})\Z" if matched else "(?!)")] = self._literal(inner, names)
            copy["patternProperties"] = named
        return copy

    def _search(self, pattern: str, text: str) -> bool:
        from jp.tool.files.changes import compiled

        left = self._deadline - monotonic()
        if left <= 0:
            raise EndlessSearchError(pattern, timed_out=True)
        try:
            expression = compiled(pattern, by_line=False, longest=_LONGEST_PATTERN)
            return expression.search(text, timeout=None if left == math.inf else left, concurrent=True) is not None
        except (TimeoutError, ValueError, MemoryError) as error:
            raise EndlessSearchError(pattern, timed_out=isinstance(error, TimeoutError)) from None


def names_in(value: Any) -> frozenset[str]:
    """Return the names of all members of objects in `value`."""
    names: set[str] = set()
    waiting: list[Any] = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            members = cast("JsonObject", part)
            names |= members.keys()
            waiting += members.values()
        elif isinstance(part, list):
            waiting += cast("list[Any]", part)
    return frozenset(names)


def _checked(schema: JsonObject) -> tuple[Collection[int], type[Validator]]:
    """Return the schemas in `schema`, by identity, and its dialect."""
    from jsonschema import exceptions

    dialect = _dialect(schema)
    errors = dialect(dialect.META_SCHEMA, format_checker=_format_checker()).iter_errors(schema)
    error: ValidationError | None = cast("Any", exceptions).best_match(errors)
    if error is not None:
        problem = in_one_line(list(map(str, misfits_of([error]))))
        hint = HINT if DIALECT in problem else _meant_type(error) or _EXAMPLE
        raise InvalidSchemaError(f"the schema is not valid at {problem}", hint=hint)
    if schema and KEYWORDS.isdisjoint(schema):
        raise InvalidSchemaError(
            f"the schema says nothing: {', '.join(map(repr, list(schema)[:3]))} is no keyword of JSON Schema",
            hint=_EXAMPLE,
        )
    references = References(schema, dialect=str(dialect.META_SCHEMA["$schema"]))
    problem = references.problem()
    if problem:
        hint = "a reference names a part of the schema itself, as `#/$defs/NAME` does; nothing is fetched"
        raise InvalidSchemaError(f"the schema cannot be used: {problem}", hint=hint)
    return references.schemas, dialect


def _meant_type(error: ValidationError) -> str:
    """Return the type that a schema may have meant by an unknown name; empty where the error is something else."""
    written: object = cast("Any", error.instance)
    names_a_type = "type" in list(error.absolute_path)[-2:] and error.validator in {"anyOf", "enum"}
    if not (names_a_type and isinstance(written, str)):
        return ""
    return "".join(f'did you mean "{_TYPES[name]}"?' for name in closest_names(written, _TYPES))


def _exact(dialect: type[Validator], search: Callable[[str, str], bool]) -> type[Validator]:
    """Return `dialect` with multiples of decimal numbers, where the library divides binary ones, and with `search`."""
    from jsonschema import ValidationError, validators

    def check_multiple(validator: Validator, step: Any, value: Any, schema: object) -> Iterator[ValidationError]:
        if validator.is_type(value, "number") and not is_multiple(value, step):
            yield ValidationError("it is no multiple")

    def check_pattern(validator: Validator, pattern: Any, value: Any, schema: object) -> Iterator[ValidationError]:
        if validator.is_type(value, "string") and not search(pattern, value):
            yield ValidationError("it does not match")

    own = {"multipleOf": check_multiple, "divisibleBy": check_multiple, "pattern": check_pattern}
    known = {keyword: check for keyword, check in own.items() if keyword in dialect.VALIDATORS}
    exact: type[Validator] = cast("Any", validators).extend(dialect, known)
    return exact


def _dialect(schema: JsonObject) -> type[Validator]:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    wanted = schema.get("$schema")
    if wanted is None:
        return Draft202012Validator
    newest = str(Draft202012Validator.META_SCHEMA["$schema"])
    found = validator_for(schema, default=Draft202012Validator) if isinstance(wanted, str) else Draft202012Validator
    if found is Draft202012Validator and str(wanted).rstrip("#") != newest:
        message = f"the schema is not valid at /$schema: {wanted!r} is no version of JSON Schema that is known here"
        raise InvalidSchemaError(message, hint=f"remove it, or use {newest!r}")
    return found


def _format_checker() -> FormatChecker:
    from jsonschema import FormatChecker

    checker = FormatChecker()
    for name, is_one in FORMATS.items():
        checker.checks(name)(_check_with(is_one))
    checker.checks("regex", raises=ValueError)(_check_pattern)
    return checker


def _check_pattern(value: object) -> bool:
    """Raises ValueError, which says why; a value that is no text is no matter of a format."""
    problem = why_not(value) if isinstance(value, str) else ""
    if problem:
        raise ValueError(problem)
    return True


def _check_with(is_one: Callable[[str], bool]) -> Callable[[object], bool]:
    def check(value: object) -> bool:
        return not isinstance(value, str) or is_one(value)

    return check


MAX_BYTES = 1024 * 1024
"""A larger file is no schema."""

_FORMS = "a schema is a JSON object, TOML in a file that ends in `.toml`, or the short form `name, age int`"


def read_schema(text: str) -> Checker:
    """Return the schema that `text` gives: `@FILE`, or where it begins with a brace JSON Schema, else the short form.

    Raises:
        ConfigurationError: the file cannot be read, or what it holds is no schema.
        UsageError: the text is no schema.
    """
    if not text.startswith("@"):
        return Checker(_parsed(text, suffix=""))
    path = Path(text[1:]).expanduser()
    content = _content_of(path)
    try:
        return Checker(_parsed(content, suffix=path.suffix.lower()))
    except UsageError as error:
        raise ConfigurationError(f"{str(path)!r}: {error.message}", hint=error.hint) from None


def _content_of(path: Path) -> str:
    try:
        data = read_beginning(path, MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ConfigurationError(f"{str(path)!r} has more than {MAX_BYTES:,} bytes", hint=_FORMS)
        return data.decode("utf-8-sig")
    except OSError as error:
        message = f"the schema {str(path)!r} cannot be read: {error.strerror or error}"
        raise ConfigurationError(message, hint="a path is relative to the current directory") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{str(path)!r} is not UTF-8: byte {error.start:,} does not fit", hint=_FORMS
        ) from None


def _parsed(text: str, *, suffix: str) -> JsonObject:
    if suffix == ".toml":
        return _toml_schema(text)
    if text.lstrip().startswith("{") or suffix == ".json":
        return _json_schema(text)
    return parse_dsl(text)


def _json_schema(text: str) -> JsonObject:
    try:
        return msgspec.json.decode(text, type=JsonObject)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise UsageError(f"the schema is not a JSON object{_place_of_error(text)}", hint=_FORMS) from None


def _place_of_error(text: str) -> str:
    """Return the place where `text` ceases to be JSON, empty where it is JSON after all."""
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        where = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        return f" at {where}: {error.msg}"
    except RecursionError:
        return ": it is nested too deeply"
    return ""


def _toml_schema(text: str) -> JsonObject:
    import tomllib

    from jp.config.toml import load_toml

    try:
        return msgspec.to_builtins(load_toml(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"the schema is not TOML: {reason_of(error)}", hint=_FORMS) from None
