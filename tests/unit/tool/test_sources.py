from __future__ import annotations

import pytest

from jp.config.entries import ToolConfig
from jp.errors import ConfigurationError
from jp.tool.toolbox import source_of


@pytest.mark.parametrize(
    ("name", "settings", "source"),
    [
        ("fs_read_file", ToolConfig(), "builtin"),
        ("fs_read_file", ToolConfig(source="builtin"), "builtin"),
        ("describe", ToolConfig(source="builtin"), "builtin"),
        ("fs_read_file", ToolConfig(source="local", command="cat"), "local"),
        ("greet", ToolConfig(command="echo"), "local"),
        ("greet", ToolConfig(source="local.other"), "local"),
        ("greet", ToolConfig(), "package"),
        ("log", ToolConfig(source="mcp.git"), "mcp.git.log"),
        ("log", ToolConfig(source="mcp.git.git_log.v2"), "mcp.git.git_log.v2"),
    ],
)
def test_where_a_tool_comes_from(name: str, settings: ToolConfig, source: str) -> None:
    assert source_of(name, settings, {"fs_read_file"}).text == source


@pytest.mark.parametrize("source", ["mcp", "mcp.", "mcp..x", "mcp.git.", "builtin.x", "remote"])
def test_a_source_that_is_none_is_an_error(source: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^'conversation.tools.x.source' cannot be '{source}'$"):
        source_of("x", ToolConfig(source=source), ())
