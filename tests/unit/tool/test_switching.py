from __future__ import annotations

import pytest

from jp.cli.terminal.wording import worded
from jp.config.entries import Enable, ToolConfig
from jp.errors import UsageError
from jp.tool.toolbox import ToolSwitch

STATES: dict[str, Enable | None] = {
    "fs_list": None,
    "fs_read": True,
    "git_log": False,
    "git_push": "explicit",
    "recall": "always",
}


def switch(*specifications: str, **more: Enable | None) -> dict[str, bool]:
    settings = {name: ToolConfig(enable=enable) for name, enable in (STATES | more).items()}
    return ToolSwitch(settings, STATES.keys(), {*STATES, "packaged"}.__contains__).switch(specifications)


@pytest.mark.parametrize(
    ("specifications", "switched"),
    [
        (["*"], {"fs_list": True, "git_log": True}),
        (["!*"], {"fs_read": False}),
        (["fs_*"], {"fs_list": True}),
        (["git_push"], {"git_push": True}),
        (["!git_push"], {}),
        (["git_push", "!*"], {"git_push": False, "fs_read": False}),
        (["!*", "fs_read"], {"fs_read": True}),
        (["fs_read", "recall", "!git_log"], {}),
        (["*", "!git_*"], {"fs_list": True, "git_log": False}),
        (["packaged"], {"packaged": True}),
    ],
)
def test_tools_are_switched_from_left_to_right(specifications: list[str], switched: dict[str, bool]) -> None:
    assert switch(*specifications) == switched


def test_the_star_of_the_configuration_counts_for_tools_that_say_nothing() -> None:
    every: dict[str, Enable | None] = {"*": True}

    assert switch("!fs_*", **every) == {"fs_list": False, "fs_read": False}


def test_who_speaks_for_a_body_of_tools_speaks_until_one_is_named() -> None:
    settings = {"git": ToolConfig(source="mcp.git.*"), "git_log": ToolConfig(), "git_add": ToolConfig()}
    groups = {"git_log": "git", "git_add": "git"}

    def switched(*specifications: str) -> dict[str, bool]:
        return ToolSwitch(settings, settings.keys(), settings.__contains__, groups=groups).switch(specifications)

    assert switched("git", "!git_add", "git_log") == {"git": True, "git_add": False}
    assert switched("git_log", "!git", "git_add") == {"git_log": True, "git_add": True}


@pytest.mark.parametrize(
    ("specification", "message", "hint"),
    [
        ("fs_raed", "--tool names an unknown tool 'fs_raed'", "did you mean 'fs_read'?"),
        ("!zz", "--no-tool names an unknown tool 'zz'", "the tools are: "),
        ("", "--tool names an unknown tool ''", "the tools are: "),
        ("x*", "--tool 'x*' matches no tool", "the tools are: "),
        ("!recall", "--no-tool cannot take 'recall' away: it is always offered", "enable=false"),
    ],
)
def test_what_cannot_be_switched_is_an_error(specification: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        switch(specification)

    assert worded(raised.value.message) == message
    assert hint in raised.value.hint
