"""What Ollama's API says a request is: a JSON Schema after its published reference, which no SDK here knows."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 1}
_FUNCTION_CALL = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "arguments": {"type": "object"}},
    "required": ["name", "arguments"],
    "additionalProperties": False,
}


def _object(required: list[str], **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _message(role: str, required: list[str], **properties: object) -> dict[str, object]:
    return _object(["role", "content", *required], role={"const": role}, content=_TEXT, **properties)


_IMAGES = {"type": "array", "minItems": 1, "items": {"type": "string", "contentEncoding": "base64", "minLength": 1}}
_MESSAGE = {
    "oneOf": [
        _message("system", []),
        _message("user", [], images=_IMAGES),
        _message(
            "assistant",
            [],
            thinking={"type": "string", "minLength": 1},
            tool_calls={"type": "array", "minItems": 1, "items": _object(["function"], function=_FUNCTION_CALL)},
        ),
        _message("tool", ["tool_name"], tool_name={"type": "string", "minLength": 1}),
    ]
}
_TOOL = _object(
    ["type", "function"],
    type={"const": "function"},
    function=_object(
        ["name", "description", "parameters"],
        name={"type": "string", "minLength": 1},
        description=_TEXT,
        parameters={
            "type": "object",
            "properties": {"type": {"const": "object"}, "properties": {"type": "object"}},
            "required": ["type", "properties"],
        },
    ),
)
REQUEST = _object(
    ["model", "messages", "stream", "think", "truncate", "shift", "options"],
    model={"type": "string", "minLength": 1},
    messages={"type": "array", "minItems": 1, "items": _MESSAGE},
    tools={"type": "array", "minItems": 1, "items": _TOOL},
    format={"type": "object"},
    stream={"const": True},
    think={"enum": [True, False, "low", "medium", "high"]},
    truncate={"type": "boolean"},
    shift={"type": "boolean"},
    keep_alive={"type": ["string", "number"]},
    options=_object(
        ["num_ctx"],
        num_ctx=_COUNT,
        num_predict=_COUNT,
        temperature={"type": "number"},
        top_p={"type": "number"},
        top_k={"type": "integer"},
        stop={"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
    ),
)
_VALIDATOR = Draft202012Validator(REQUEST)


def assert_accepted(body: dict[str, Any]) -> None:
    """The API has a place for everything in `body`, and misses nothing."""
    _VALIDATOR.validate(body)  # pyright: ignore[reportUnknownMemberType] - its stub knows no type
