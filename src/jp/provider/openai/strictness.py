"""What the model is held to: the schema of an answer, and those of the tools. Pure."""

from __future__ import annotations

from jp.conversation.entries import JsonObject
from jp.conversation.thread import ToolDefinition
from jp.provider.abilities import Model
from jp.provider.strict import strict_answer, strict_schema

ANSWER = "answer"
"""What the format of an answer is called."""


def answer_format(schema: JsonObject, model: Model) -> JsonObject | None:
    """What `text.format` has to be, None where the model cannot be held to the schema."""
    if not model.abilities.structured:
        return None
    strict = strict_answer(schema)
    return None if strict is None else {"type": "json_schema", "name": ANSWER, "strict": True, "schema": strict}


def tool_of(tool: ToolDefinition, model: Model) -> JsonObject:
    """A tool as the API takes it. Without `strict` it would be made strict in the API's own way."""
    wire: JsonObject = {"type": "function", "name": tool.name}
    if tool.description.strip():
        wire["description"] = tool.description
    parameters = tool.parameters if "type" in tool.parameters else {"type": "object", **tool.parameters}
    strict = strict_schema(parameters) if model.abilities.structured else None
    return {**wire, "parameters": parameters if strict is None else strict, "strict": strict is not None}
