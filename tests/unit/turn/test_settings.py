from __future__ import annotations

import msgspec

from jp.config.model import AppConfig, AssistantConfig, Instruction, InstructionExample
from jp.conversation.thread import Parameters
from jp.turn.machine import Limits, RetryPolicy, limits_of, parameters_of, retry_policy_of, system_parts


def test_the_system_prompt_comes_first_then_sections_and_instructions_by_position() -> None:
    assistant = msgspec.convert(
        {
            "system_prompt": "Be brief.",
            "system_prompt_sections": [
                {"content": "last", "position": 9},
                {"content": "tagged", "tag": "rules", "title": "House"},
                {"content": "titled", "title": "Style"},
            ],
            "instructions": [{"title": "Code", "description": "Always:", "items": ["test", "review"], "position": -1}],
        },
        AssistantConfig,
    )

    assert system_parts(assistant) == (
        "Be brief.",
        '<instruction title="Code">\nAlways:\n- test\n- review\n</instruction>',
        '<rules title="House">\ntagged\n</rules>',
        "# Style\n\ntitled",
        "last",
    )


def test_an_empty_prompt_is_no_part() -> None:
    assistant = msgspec.convert({"system_prompt": " ", "instructions": [{"items": ["x"]}]}, AssistantConfig)

    assert system_parts(assistant) == ("<instruction>\n- x\n</instruction>",)


def test_parameters_limits_and_patience_come_from_the_configuration() -> None:
    config = msgspec.convert(
        {
            "assistant": {
                "tool_choice": "none",
                "model": {"parameters": {"max_tokens": 9, "reasoning": "low", "other": {"seed": 1}}},
                "request": {"max_retries": 1, "base_backoff_ms": 500, "max_backoff_secs": 7, "cache": "long"},
            }
        },
        AppConfig,
    )

    assert parameters_of(config.assistant) == Parameters(
        max_tokens=9, reasoning="low", other={"seed": 1}, tool_choice="none", cache="long"
    )
    assert limits_of(config) == Limits(max_cycles=50, max_continuations=0)
    assert limits_of(AppConfig()) == Limits(max_cycles=50, max_continuations=5)
    assert retry_policy_of(config) == RetryPolicy(max_retries=1, base_seconds=0.5, max_seconds=7.0)


def test_a_setting_of_one_provider_says_nothing_of_others() -> None:
    config = msgspec.convert({"providers": {"llm": {"anthropic": {"chain_on_max_tokens": False}}}}, AppConfig)

    assert limits_of(config) == limits_of(AppConfig())


def test_examples_follow_the_rules_that_they_belong_to() -> None:
    contrast = InstructionExample(good="Take the field's words.", bad="Invent some.", reason="They are known.")
    last = InstructionExample(good="a", bad="b")
    instruction = Instruction(title="Names", items=("Be plain.",), examples=("See the glossary.", contrast, last))

    (_, text) = system_parts(AssistantConfig(instructions=(instruction,)))

    assert text.splitlines() == [
        '<instruction title="Names">',
        "- Be plain.",
        *("<example>", "See the glossary.", "</example>"),
        *("<example>", "<good>", "Take the field's words.", "</good>", "<bad>", "Invent some.", "</bad>"),
        *("<reason>", "They are known.", "</reason>", "</example>"),
        *("<example>", "<good>", "a", "</good>", "<bad>", "b", "</bad>", "</example>"),
        "</instruction>",
    ]
