from __future__ import annotations

import pytest
from msgspec.structs import replace

from jp.conversation.thread import Parameters, ToolDefinition
from jp.provider.chat.messages import Quirks
from jp.provider.chat.request import Choice, choice_of, tool
from jp.provider.models import find_model

LOOK = ToolDefinition(name="look", description="", parameters={})
RUN = ToolDefinition(name="run", description="Run it.", parameters={"type": "object", "properties": {}})
MODEL = find_model("openai-compatible", "m")


def chosen(wanted: str, *tools: ToolDefinition, knows: bool = True, forced: bool = True) -> Choice:
    model = replace(MODEL, abilities=replace(MODEL.abilities, forced_tools=forced))
    return choice_of(Parameters(tool_choice=wanted), tools, model, Quirks(tool_choice=knows))


NAMED = {"type": "function", "function": {"name": "run"}}


@pytest.mark.parametrize(
    ("wanted", "told", "untold"),
    [
        ("auto", Choice(), Choice()),
        ("none", Choice(wire="none"), Choice(plea="Answer without calling a tool.")),
        ("required", Choice(wire="required", forces=True), Choice(plea="Call one of the tools now.")),
        ("run", Choice(wire=NAMED, forces=True), Choice(plea="Call the tool 'run' now.")),
    ],
)
def test_a_choice_is_told_on_the_wire_or_in_words(wanted: str, told: Choice, untold: Choice) -> None:
    assert chosen(wanted, LOOK, RUN) == told
    assert chosen(wanted, LOOK, RUN, knows=False) == untold


def test_a_model_that_cannot_be_forced_is_asked() -> None:
    assert chosen("required", RUN, forced=False) == Choice(plea="Call the tool 'run' now.")
    assert chosen("none", RUN, forced=False) == Choice(wire="none")


def test_without_tools_there_is_no_choice() -> None:
    assert chosen("none") == Choice()


def test_a_tool_is_a_function_with_an_object_for_its_arguments() -> None:
    assert [tool(each) for each in (LOOK, RUN)] == [
        {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}},
        {
            "type": "function",
            "function": {
                "name": "run",
                "description": "Run it.",
                "parameters": {"type": "object", "properties": {}},
            },
        },
    ]
