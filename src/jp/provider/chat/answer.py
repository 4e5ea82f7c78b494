"""How an answer is held to a schema, as far as a server can be told to. Pure."""

from __future__ import annotations

from jp.conversation.entries import JsonObject
from jp.provider.abilities import Model
from jp.provider.chat.quirks import Quirks
from jp.provider.strict import strict_answer
from jp.provider.structured import in_words

_NAME = "answer"
_BY_SCHEMA = frozenset({"json_schema", "json_object_schema"})
_BY_OBJECT = frozenset({"json_object_schema", "json_object"})


def response_format(schema: JsonObject | None, model: Model, quirks: Quirks, *, has_tools: bool) -> JsonObject | None:
    """What `response_format` has to be, None where words are all there is."""
    abilities = model.abilities
    if schema is None or not abilities.structured or (has_tools and not abilities.structured_with_tools):
        return None
    strict = strict_answer(schema, quirks.strictness) if quirks.structured in _BY_SCHEMA else None
    if strict is not None:
        if quirks.structured == "json_schema":
            return {"type": "json_schema", "json_schema": {"name": _NAME, "schema": strict, "strict": True}}
        return {"type": "json_object", "schema": strict}
    if quirks.structured in _BY_OBJECT and schema.get("type") == "object":
        return {"type": "json_object"}
    return None


def strict_schema(wanted: JsonObject) -> JsonObject | None:
    """The schema that an answer to a request with the `response_format` `wanted` is written to; None without one."""
    strict: JsonObject | None = wanted.get("json_schema", wanted).get("schema")
    return strict


def rules(schema: JsonObject | None, model: Model, quirks: Quirks, *, has_tools: bool) -> tuple[str, ...]:
    """What has to be said of the answer's schema in words, behind the request that it answers.

    What makes a grammar of a `json_object`'s schema shows the model nothing of it.
    """
    if schema is None:
        return ()
    wanted = response_format(schema, model, quirks, has_tools=has_tools)
    is_held = wanted is not None and wanted["type"] == "json_schema"
    return () if is_held else (in_words(schema),)
