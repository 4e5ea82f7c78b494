"""A local tool's definition, as its settings declare it. Pure."""

from __future__ import annotations

from typing import Any

from jp.config.tools import ParameterConfig, ToolConfig
from jp.conversation.entries import JsonObject
from jp.conversation.thread import ToolDefinition


def definition_of(name: str, settings: ToolConfig) -> ToolDefinition:
    """What the model is told of the tool `name`."""
    declared = settings.parameters
    schema: JsonObject = {
        "type": "object",
        "properties": {parameter: _schema(config) for parameter, config in declared.items()},
        "additionalProperties": False,
    }
    required = [parameter for parameter, config in declared.items() if config.required]
    if required:
        schema["required"] = required
    return ToolDefinition(name=name, description=settings.summary or settings.description or "", parameters=schema)


def _schema(config: ParameterConfig) -> JsonObject:
    types = config.type
    about: dict[str, Any] = {
        "type": types if isinstance(types, str) else list(types),
        "description": config.summary or config.description,
        "enum": list(config.enum) or None,
        "items": config.items or None,
        "properties": config.properties or None,
        "default": config.default,
    }
    return {keyword: value for keyword, value in about.items() if value is not None}
