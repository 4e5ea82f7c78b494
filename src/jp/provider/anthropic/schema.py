"""The schema of an answer as the API takes it. What its grammar cannot hold is told to the model in words. Pure."""

from __future__ import annotations

from jp.conversation.entries import JsonObject
from jp.provider.abilities import Model
from jp.provider.grammar import Dialect, Grammar, Inexpressible
from jp.provider.wrapping import wrapped

_MOST_OPTIONAL, _MOST_UNIONS = 24, 16
"""How many properties that may be missing, and how many values of several kinds, the API accepts."""

_FORMATS = frozenset({
    *("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"),
})


def _holds(name: str, keyword: str, value: object) -> bool:
    """Some formats of strings, and whether a list may be empty."""
    return (name == "string" and keyword == "format" and value in _FORMATS) or (
        name == "array" and keyword == "minItems" and value in (0, 1)
    )


_DIALECT = Dialect(holds=_holds)


def answer_format(schema: JsonObject, model: Model) -> JsonObject | None:
    """What `output_config.format` has to be, None where model or grammar know no such answer."""
    if not model.abilities.structured:
        return None
    strict = strict_schema(schema)
    return None if strict is None else {"type": "json_schema", "schema": strict}


def strict_schema(schema: JsonObject) -> JsonObject | None:
    """`schema` in the grammar, None where that cannot hold it. Answers that are no objects are wrapped in one."""
    grammar = Grammar(schema, _DIALECT)
    try:
        strict = grammar.root()
    except (Inexpressible, AttributeError, KeyError, TypeError):
        return None  # a log from elsewhere may hold as a schema what is none
    if grammar.optional > _MOST_OPTIONAL or grammar.unions > _MOST_UNIONS:
        return None
    return {**(strict if strict.get("type") == "object" else wrapped(strict)), **grammar.definitions}
