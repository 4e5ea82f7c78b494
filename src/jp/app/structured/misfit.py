"""Misfits of a value and a schema, in words for a person and for a model. Pure."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.schemas import pointer

HINT = (
    "patterns are read as regular expressions of Python, which lack some constructs of ECMA-262: "
    r"`[^\W\d_]` is a letter, as `\p{L}` is there"
)
DIALECT = "regular expression of Python"


def why_not(pattern: str) -> str:
    """Why Python does not take `pattern`; empty where it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError) as error:
        return str(error)
    except RecursionError:
        return "it is nested too deeply"
    return ""


def searches(schema: JsonObject) -> bool:
    """Return whether to hold a value against `schema` may mean to search it for a pattern, or to read it as one.

    It is the whole of the schema that is looked through, as a reference may lead anywhere in it.
    """
    waiting: list[object] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            members = cast("JsonObject", part)
            if _is_search(members):
                return True
            waiting += members.values()
        elif isinstance(part, list):
            waiting += cast("list[object]", part)
    return False


def _is_search(schema: JsonObject) -> bool:
    return (
        isinstance(schema.get("pattern"), str)
        or isinstance(schema.get("patternProperties"), dict)
        or schema.get("format") == "regex"
    )


if TYPE_CHECKING:
    from jsonschema import SchemaError, ValidationError

    AnyError = ValidationError | SchemaError

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
    """The first few of them, and how many more there are."""
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
    """A draft 3 schema says `required` of the member itself; then there is no list of names."""
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
