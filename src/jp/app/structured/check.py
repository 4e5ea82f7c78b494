"""Checks that a schema can be used, and that a value fits it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from jp.app.structured.misfit import DIALECT, HINT, Misfit, in_one_line, misfits_of, searches, why_not
from jp.conversation.entries import JsonObject
from jp.conversation.schemas import IN_PLACE, KEYWORDS, Place, pointer, schemas_in
from jp.errors import UsageError
from jp.suggestions import closest_names

if TYPE_CHECKING:
    from jsonschema import FormatChecker, ValidationError
    from jsonschema.protocols import Validator
    from referencing.jsonschema import SchemaResource


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
    """Follows the references of one schema."""

    def __init__(self, schema: JsonObject, *, dialect: str) -> None:
        self._schema = schema
        self._dialect = dialect
        self._places: dict[int, Place] = {}
        # Which schemas are about the same value as a schema is, by identity.
        self._same: dict[int, list[int]] = {}

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
        """A schema that comes back to itself while it is about the same value would be followed for ever."""
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
    """A schema that no answer could be held against."""


class Checker:
    """Holds values against `schema`. `searches`: that may take without end, where a pattern is so."""

    def __init__(self, schema: JsonObject) -> None:
        """Check the schema itself.

        Raises:
            InvalidSchemaError: it is not valid, says nothing, or refers to what is not in it, or to itself without end.
        """
        self.schema = schema
        self.searches = searches(schema)
        try:
            self._validator = _validator(schema)
        except RecursionError:
            raise InvalidSchemaError(f"the schema cannot be used: {_TOO_DEEP}") from None

    def misfits(self, value: Any) -> list[Misfit]:
        """Return the parts of `value` that do not fit."""
        try:
            return misfits_of(self._validator.iter_errors(value))
        except RecursionError:
            return [Misfit(pointer="", problem=_TOO_DEEP)]


def _validator(schema: JsonObject) -> Validator:
    from jsonschema import exceptions
    from referencing.jsonschema import EMPTY_REGISTRY

    dialect = _dialect(schema)
    formats = _format_checker()
    errors = dialect(dialect.META_SCHEMA, format_checker=formats).iter_errors(schema)
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
    problem = References(schema, dialect=str(dialect.META_SCHEMA["$schema"])).problem()
    if problem:
        hint = "a reference names what stands in the schema itself, as `#/$defs/NAME` does; nothing is fetched"
        raise InvalidSchemaError(f"the schema cannot be used: {problem}", hint=hint)
    return _exact(dialect)(_bare(schema), registry=EMPTY_REGISTRY, format_checker=formats)


def _meant_type(error: ValidationError) -> str:
    """Return the type that a schema may have meant by an unknown name; empty where the error is something else."""
    written: object = cast("Any", error.instance)
    names_a_type = "type" in list(error.absolute_path)[-2:] and error.validator in {"anyOf", "enum"}
    if not (names_a_type and isinstance(written, str)):
        return ""
    return "".join(f'did you mean "{_TYPES[name]}"?' for name in closest_names(written, _TYPES))


def _exact(dialect: type[Validator]) -> type[Validator]:
    """`dialect` with multiples of decimal numbers: the library divides binary ones."""
    from jsonschema import validators

    keywords = [keyword for keyword in ("multipleOf", "divisibleBy") if keyword in dialect.VALIDATORS]
    exact: type[Validator] = cast("Any", validators).extend(dialect, dict.fromkeys(keywords, _check_multiple))
    return exact


def _check_multiple(validator: Validator, step: Any, value: Any, schema: object) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if validator.is_type(value, "number") and not is_multiple(value, step):
        yield ValidationError("it is no multiple")


def _bare(schema: JsonObject) -> JsonObject:
    """A schema that names its dialect would be held against the library's own when it refers to itself."""
    return {keyword: value for keyword, value in schema.items() if keyword != "$schema"}


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
        raise InvalidSchemaError(message, hint=f"leave it out, or use {newest!r}")
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
