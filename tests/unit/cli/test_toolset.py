from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

import pytest

from jp.app.toolset import Toolset
from jp.config.entries import McpServerConfig, ToolConfig
from jp.config.model import AppConfig, ConversationConfig, ProvidersConfig
from jp.conversation.thread import ToolDefinition
from jp.errors import ConfigurationError
from jp.tool.base import Tool, ToolInvocation, ToolOutput


class EchoTool:
    def __init__(self, name: str) -> None:
        self.definition = ToolDefinition(name=name, description="", parameters={})

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        raise NotImplementedError


def toolset(**tools: ToolConfig) -> Toolset:
    return Toolset(AppConfig(conversation=ConversationConfig(tools=tools)))


GREET = ToolConfig(enable=True, command="echo hello", summary="Greet.")


def test_the_names_are_those_that_come_with_jp_and_those_that_are_configured() -> None:
    names = toolset(greet=GREET, no=ToolConfig(), **{"*": ToolConfig(run="skip")}).names

    assert {"greet", "fs_read_file", "run_command", "describe_tools"} <= set(names)
    assert {"no", "*"}.isdisjoint(names)


def test_only_what_is_enabled_is_offered_with_its_settings() -> None:
    offered = toolset(**{
        "*": ToolConfig(run="skip"),
        "fs_read_file": ToolConfig(enable=True),
        "greet": GREET,
    }).toolbox()

    assert {name: configured.settings.run for name, configured in offered.items()} == {
        "fs_read_file": "skip",
        "greet": "skip",
    }
    assert offered["greet"].tool.definition.description == "Greet."


def test_tools_are_described_where_there_is_more_to_say_of_one() -> None:
    talkative = ToolConfig(enable=True, command="echo", summary="Greet.", examples="greet()")
    silent = ToolConfig(enable=False)

    assert list(toolset(greet=talkative).toolbox()) == ["describe_tools", "greet"]
    assert list(toolset(greet=talkative, describe_tools=silent).toolbox()) == ["greet"]
    assert toolset(greet=talkative).toolbox()["describe_tools"].settings.run == "unattended"


@pytest.mark.parametrize(
    ("name", "settings", "message", "hint"),
    [
        ("fs_raed_file", ToolConfig(), "'conversation.tools' names an unknown tool 'fs_raed_file'", "'fs_read_file'?"),
        ("zz", ToolConfig(source="builtin"), "'conversation.tools' names an unknown tool 'zz'", "the tools are: "),
        ("log", ToolConfig(source="mcp.gti"), "the tool 'log' is on the MCP server 'gti', which", "providers.mcp.gti"),
        ("say", ToolConfig(source="local"), "the local tool 'say' has no command", "conversation.tools.say.command"),
        ("a b", GREET, "the tool 'a b' cannot be offered", "call it otherwise"),
    ],
)
def test_a_tool_that_cannot_be_offered_is_an_error(name: str, settings: ToolConfig, message: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        toolset(**{name: settings}).toolbox()

    assert raised.value.message.startswith(message)
    assert hint in raised.value.hint


def test_a_tool_that_needs_a_conversation_is_not_made_without_one() -> None:
    with pytest.raises(ConfigurationError, match=r"^the tool 'recall' works in a conversation only$"):
        toolset().tool("recall")


def test_what_servers_have_is_known_by_the_configuration_until_they_were_asked() -> None:
    tools = {
        "log": ToolConfig(source="mcp.git.git_log"),
        "git": ToolConfig(source="mcp.git.*"),
        "git_diff": ToolConfig(enable=True),
        "far": ToolConfig(source="mcp.other"),
    }
    providers = ProvidersConfig(mcp={"git": McpServerConfig(command="git-server")})
    config = AppConfig(conversation=ConversationConfig(tools=tools), providers=providers)
    before, after = Toolset(config), Toolset(config, servers={"log": EchoTool("log")})

    assert [name for name in tools if before.is_known(name)] == ["log", "git", "git_diff"]
    assert [name for name in tools if after.is_known(name)] == ["log"]
    assert after.tool("log").definition.name == "log"


def test_other_packages_are_looked_for_only_where_a_name_is_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(directory: object) -> dict[str, str]:
        del directory
        pytest.fail("looked for")

    monkeypatch.setattr("jp.tool.toolbox.third_party_tools", look)
    tools = toolset(**{"*": ToolConfig(enable=False), "greet": GREET, "fs_read_file": ToolConfig()})

    assert list(tools.toolbox()) == ["greet"]


def test_what_a_conversation_has_use_for_is_offered_by_itself_beside_the_others_unless_it_is_disabled() -> None:
    asked: list[list[str]] = []

    def standing(others: Collection[str]) -> dict[str, Callable[[], Tool]]:
        asked.append(sorted(others))
        return {name: partial(EchoTool, name) for name in ("recall", "refresh_resource")}

    def offered(**tools: ToolConfig) -> dict[str, ToolConfig]:
        config = AppConfig(conversation=ConversationConfig(tools=tools))
        return {name: tool.settings for name, tool in Toolset(config, standing=standing).toolbox().items()}

    everything = offered(greet=GREET, **{"*": ToolConfig(run="skip")})
    assert list(everything) == ["greet", "recall", "refresh_resource"]
    assert [everything[name].run for name in everything] == ["skip", "unattended", "unattended"]
    assert everything["refresh_resource"].rules[0].run == "ask"
    assert list(offered(recall=ToolConfig(enable=False))) == ["refresh_resource"]
    assert (asked[0], [] in asked) == (["greet"], True)
