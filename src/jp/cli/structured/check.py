"""Whether a schema can be used, and whether a value fits it. The library that knows is imported only here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from jp.cli.structured.formats import FORMATS
from jp.cli.structured.misfit import Misfit, in_one_line, misfits_of
from jp.cli.structured.multiples import is_multiple
from jp.cli.structured.patterns import DIALECT, HINT, searches, why_not
from jp.cli.structured.references import References
from jp.conversation.entries import JsonObject
from jp.conversation.json_schema import KEYWORDS
from jp.errors import UsageError
from jp.likeness import nearest

if TYPE_CHECKING:
    from jsonschema import FormatChecker, ValidationError
    from jsonschema.protocols import Validator

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
        """What of `value` does not fit."""
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
    """What may have been meant where a schema names a type that there is not; empty where it is something else."""
    written: object = cast("Any", error.instance)
    names_a_type = "type" in list(error.absolute_path)[-2:] and error.validator in {"anyOf", "enum"}
    if not (names_a_type and isinstance(written, str)):
        return ""
    return "".join(f'did you mean "{_TYPES[name]}"?' for name in nearest(written, _TYPES))


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
