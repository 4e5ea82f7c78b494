"""A local tool's definition, as its settings declare it. Pure."""

from __future__ import annotations

from typing import Any

from jp.config.tools import ParameterConfig, ToolConfig
from jp.conversation.entries import JsonObject
from jp.conversation.thread import ToolDefinition
from jp.errors import ConfigurationError
from jp.tool.arguments import TYPES, argument_problems


def definition_of(name: str, settings: ToolConfig) -> ToolDefinition:
    """What the model is told of the tool `name`.

    Raises:
        ConfigurationError: a parameter has a type that there is not, or a default that it may not have.
    """
    declared = settings.parameters
    for parameter, config in declared.items():
        _check(f"conversation.tools.{name}.parameters.{parameter}", parameter, config)
    schema: JsonObject = {
        "type": "object",
        "properties": {parameter: _schema(config) for parameter, config in declared.items()},
        "additionalProperties": False,
    }
    required = [parameter for parameter, config in declared.items() if config.required]
    if required:
        schema["required"] = required
    return ToolDefinition(name=name, description=settings.summary or settings.description or "", parameters=schema)


def _check(key: str, parameter: str, config: ParameterConfig) -> None:
    types = (config.type,) if isinstance(config.type, str) else config.type
    for wrong in (found for found in types if found not in TYPES):
        raise ConfigurationError(
            f"'{key}.type' is {wrong!r}, which is no type of JSON Schema", hint=f"the types are: {', '.join(TYPES)}"
        )
    if config.default is None:
        return
    for problem in argument_problems({"properties": {parameter: _schema(config)}}, {parameter: config.default}):
        raise ConfigurationError(f"'{key}.default' does not fit: {problem}")


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
