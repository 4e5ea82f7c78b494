from __future__ import annotations

import pytest

from jp.config.entries import ToolConfig
from jp.errors import ConfigurationError
from jp.mcp.definitions import Listing, ServerTool
from jp.tool.mcp import Group, declared_servers, names_in, offer, on_servers, wanted_servers

GROUP = Group(name="git", server="git")
ON = ToolConfig(enable=True)


def listing(*names: str) -> Listing:
    return Listing(tools=tuple(ServerTool(name=name, parameters={}) for name in names))


def of(source: str, **settings: object) -> ToolConfig:
    return ToolConfig(source=source, **settings)  # pyright: ignore[reportArgumentType] - any setting


@pytest.mark.parametrize(
    ("tools", "taken", "names"),
    [
        (("commit", "status"), (), ["git_commit", "git_status"]),
        (("git_log", "status"), (), ["git_log", "git_status"]),
        (("log", "git_log"), (), ["git_log_2", "git_log"]),
        (("a b", "a/b", "ä"), (), ["git_a_b", "git_a_b_2", "git__"]),
        (("read",), ("git_read", "git_read_2"), ["git_read_3"]),
    ],
)
def test_tools_of_a_server_have_names_that_every_provider_takes(
    tools: tuple[str, ...], taken: tuple[str, ...], names: list[str]
) -> None:
    found = names_in(GROUP, listing(*tools), taken)

    assert [tool.name for tool in found.values()] == list(tools)
    assert list(found) == names


def test_names_that_are_cut_stay_apart() -> None:
    found = names_in(GROUP, listing("x" * 90, "x" * 91), ())

    assert len(found) == 2
    assert {len(name) for name in found} == {64}
    assert all(name.startswith("git_" + "x" * 51 + "_") for name in found)


def test_a_long_name_that_is_taken_gets_a_number_within_the_bound() -> None:
    (name,) = names_in(GROUP, listing("x" * 60), ("git_" + "x" * 60,))

    assert name == "git_" + "x" * 58 + "_2"


def test_a_group_stands_for_every_tool_of_its_server_and_each_may_differ() -> None:
    settings = {
        "*": ToolConfig(run="ask"),
        "git": of("mcp.git.*", enable=True, run="unattended", max_bytes=5),
        "git_commit": ToolConfig(run="ask"),
        "fs_read_file": ON,
    }

    offered = offer(settings, {"git": listing("commit", "status")})

    assert {one.name: (one.server, one.tool.name) for one in offered.tools} == {
        "git_commit": ("git", "commit"),
        "git_status": ("git", "status"),
    }
    assert offered.settings == {
        "*": settings["*"],
        "fs_read_file": ON,
        "git_commit": of("mcp.git.commit", enable=True, run="ask", max_bytes=5),
        "git_status": of("mcp.git.status", enable=True, run="unattended", max_bytes=5),
    }
    assert offered.notices == ()


def test_a_tool_with_a_name_of_its_own_is_not_offered_twice() -> None:
    settings = {"git": of("mcp.git.*", enable=True), "commit": of("mcp.git", enable=True), "st": of("mcp.git.status")}

    offered = offer(settings, {"git": listing("commit", "status")})

    assert {one.name: one.tool.name for one in offered.tools} == {"commit": "commit", "st": "status"}
    assert offered.settings["st"].source == "mcp.git.status"


def test_what_a_server_does_not_have_is_told_and_omitted() -> None:
    settings = {
        "git": of("mcp.git.*"),
        "git_comit": ON,
        "pull": of("mcp.git.pull", enable=True),
        "push": of("mcp.git.push"),
    }

    offered = offer(settings, {"git": listing("commit")})

    assert list(offered.settings) == ["git_commit"]
    assert offered.notices == (
        "the MCP server 'git' has no tool 'pull': the tools are: commit",
        "no tool of the MCP server 'git' is called 'git_comit': did you mean 'git_commit'?",
    )


def test_what_is_said_of_a_server_that_was_not_asked_has_no_effect() -> None:
    settings = {"git": of("mcp.git.*"), "git_commit": ToolConfig(run="skip"), "pull": of("mcp.git.pull")}

    offered = offer(settings, {})

    assert (offered.settings, offered.tools, offered.notices) == ({}, (), ())


def test_a_tool_that_comes_with_jp_keeps_its_name() -> None:
    settings = {"fs": of("mcp.files.*", enable=True), "fs_read_file": ON}

    offered = offer(settings, {"files": listing("read_file")}, taken={"fs_read_file"})

    assert [one.name for one in offered.tools] == ["fs_read_file_2"]
    assert offered.settings["fs_read_file"] == ON


def test_a_tool_belongs_to_the_longest_group_that_begins_its_name() -> None:
    settings = {"git": of("mcp.git.*"), "git_hub": of("mcp.hub.*"), "git_hub_issue": ON}

    offered = offer(settings, {"git": listing("commit"), "hub": listing("issue")})

    assert offered.settings["git_hub_issue"].enable is True
    assert wanted_servers(settings) == {"hub"}


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"git": of("mcp.git.*")}, set[str]()),
        ({"git": of("mcp.git.*", enable=True)}, {"git"}),
        ({"git": of("mcp.git.*", enable="explicit")}, set[str]()),
        ({"git": of("mcp.git.*"), "*": ON}, {"git"}),
        ({"git": of("mcp.git.*"), "git_commit": ON}, {"git"}),
        ({"git": of("mcp.git.*"), "git_commit": ToolConfig(enable=True, command="git commit")}, set[str]()),
        ({"commit": of("mcp.git", enable="always")}, {"git"}),
        ({"commit": of("mcp.git", enable=False), "*": ON}, set[str]()),
        ({"fs_read_file": ON}, set[str]()),
    ],
)
def test_a_server_is_wanted_for_a_tool_that_is_enabled(settings: dict[str, ToolConfig], wanted: set[str]) -> None:
    assert wanted_servers(settings) == wanted
    assert wanted <= declared_servers(settings)


def test_names_of_offered_tools_tell_which_come_from_servers() -> None:
    settings = {"git": of("mcp.git.*"), "commit": of("mcp.git"), "git_up": ToolConfig(command="git pull")}

    assert on_servers(["git_log", "git_up", "commit", "fs_read_file"], settings) == {"git_log", "commit"}


def test_a_source_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="source"):
        offer({"git": of("mcp.")}, {})
