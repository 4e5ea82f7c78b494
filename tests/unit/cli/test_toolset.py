from __future__ import annotations

import pytest

from jp.cli import toolset as module
from jp.cli.toolset import Toolset
from jp.config.model import AppConfig, ConversationConfig, ProvidersConfig
from jp.config.tools import McpServerConfig, ToolConfig
from jp.errors import ConfigurationError


def toolset(**tools: ToolConfig) -> Toolset:
    providers = ProvidersConfig(mcp={"git": McpServerConfig(command="git-server")})
    return Toolset(AppConfig(conversation=ConversationConfig(tools=tools), providers=providers))


def test_only_what_is_enabled_is_offered_with_its_settings() -> None:
    tools = toolset(**{"*": ToolConfig(run="skip"), "fs_read_file": ToolConfig(enable=True)})

    offered = tools.toolbox()

    assert {name: configured.settings.run for name, configured in offered.items()} == {"fs_read_file": "skip"}


@pytest.mark.parametrize(
    ("name", "settings", "message", "hint"),
    [
        ("fs_raed_file", ToolConfig(), "'conversation.tools' names an unknown tool 'fs_raed_file'", "'fs_read_file'?"),
        ("zz", ToolConfig(source="builtin"), "'conversation.tools' names an unknown tool 'zz'", "the tools are: "),
        ("log", ToolConfig(source="mcp.gti"), "the tool 'log' is on the MCP server 'gti', which", "providers.mcp.gti"),
    ],
)
def test_a_tool_that_there_is_not_is_an_error(name: str, settings: ToolConfig, message: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        toolset(**{name: settings}).toolbox()

    assert raised.value.message.startswith(message)
    assert hint in raised.value.hint


def test_other_packages_are_looked_for_only_where_a_name_is_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(directory: object) -> dict[str, str]:
        del directory
        pytest.fail("looked for")

    monkeypatch.setattr("jp.tool.third_party.third_party_tools", look)
    tools = toolset(**{
        "*": ToolConfig(enable=False),
        "fs_read_file": ToolConfig(),
    })

    tools.toolbox()

    assert module.ALL not in tools.names
