from __future__ import annotations

import pytest

from jp.config.entries import ParameterConfig, ToolConfig
from jp.conversation.thread import ToolDefinition
from jp.errors import ConfigurationError
from jp.tool.local import definition_of


def test_parameters_become_a_schema() -> None:
    settings = ToolConfig(
        summary="Count.",
        description="More.",
        parameters={
            "path": ParameterConfig(required=True, summary="Where.", description="Longer."),
            "mode": ParameterConfig(enum=("fast", "slow"), default="fast", description="How."),
            "deep": ParameterConfig(type="boolean", default=False),
            "names": ParameterConfig(type=("array", "null"), items={"type": "string"}),
            "range": ParameterConfig(type="object", properties={"from": {"type": "integer"}}),
        },
    )

    assert definition_of("count", settings) == ToolDefinition(
        name="count",
        description="Count.",
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where."},
                "mode": {"type": "string", "description": "How.", "enum": ["fast", "slow"], "default": "fast"},
                "deep": {"type": "boolean", "default": False},
                "names": {"type": ["array", "null"], "items": {"type": "string"}},
                "range": {"type": "object", "properties": {"from": {"type": "integer"}}},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    )


def test_a_tool_need_not_declare_anything() -> None:
    assert definition_of("now", ToolConfig(description="The time.")) == ToolDefinition(
        name="now",
        description="The time.",
        parameters={"type": "object", "properties": {}, "additionalProperties": False},
    )


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        (
            ParameterConfig(type="int"),
            "'conversation.tools.t.parameters.n.type' is 'int', which is no type of JSON Schema",
        ),
        (
            ParameterConfig(type=("null", "list")),
            "'conversation.tools.t.parameters.n.type' is 'list', which is no type of JSON Schema",
        ),
        (
            ParameterConfig(type="integer", default="3"),
            "'conversation.tools.t.parameters.n.default' does not fit: 'n' must be an integer, not a string",
        ),
        (
            ParameterConfig(enum=("fast", "slow"), default="medium"),
            "'conversation.tools.t.parameters.n.default' does not fit: 'n' must be one of 'fast', 'slow'",
        ),
    ],
)
def test_a_type_that_there_is_not_and_a_default_that_does_not_fit_are_refused(
    parameter: ParameterConfig, said: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        definition_of("t", ToolConfig(parameters={"n": parameter}))

    assert caught.value.message == said
