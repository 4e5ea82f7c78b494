"""Whether a schema can be used, and whether a value fits it. The library that knows is imported only here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jp.cli.structured.formats import FORMATS
from jp.cli.structured.misfit import Misfit, in_one_line, misfits_of
from jp.cli.structured.references import References
from jp.conversation.entries import JsonObject
from jp.conversation.json_schema import KEYWORDS
from jp.errors import UsageError

if TYPE_CHECKING:
    from jsonschema import FormatChecker
    from jsonschema.protocols import Validator

_TOO_DEEP = "it is nested too deeply"


class InvalidSchemaError(UsageError):
    """A schema that no answer could be held against."""


class Checker:
    """Holds values against `schema`."""

    def __init__(self, schema: JsonObject) -> None:
        """Check the schema itself.

        Raises:
            InvalidSchemaError: it is not valid, says nothing, or refers to what is not in it, or to itself without end.
        """
        self.schema = schema
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
    from jsonschema.exceptions import SchemaError
    from referencing.jsonschema import EMPTY_REGISTRY

    dialect = _dialect(schema)
    try:
        dialect.check_schema(schema)
    except SchemaError as error:
        problem = in_one_line(list(map(str, misfits_of([error]))))
        raise InvalidSchemaError(f"the schema is not valid at {problem}") from None
    if schema and KEYWORDS.isdisjoint(schema):
        raise InvalidSchemaError(
            f"the schema says nothing: {', '.join(map(repr, list(schema)[:3]))} is no keyword of JSON Schema",
            hint='an object is described as {"type": "object", "properties": {"name": {"type": "string"}}}',
        )
    problem = References(schema, dialect=str(dialect.META_SCHEMA["$schema"])).problem()
    if problem:
        hint = "a reference names what stands in the schema itself, as `#/$defs/NAME` does; nothing is fetched"
        raise InvalidSchemaError(f"the schema cannot be used: {problem}", hint=hint)
    return dialect(schema, registry=EMPTY_REGISTRY, format_checker=_format_checker())


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
    return checker


def _check_with(is_one: Callable[[str], bool]) -> Callable[[object], bool]:
    def check(value: object) -> bool:
        return not isinstance(value, str) or is_one(value)

    return check
