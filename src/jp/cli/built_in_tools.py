"""The tools that come with jp, by name; each is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jp.tool.base import Tool


def _read_file() -> Tool:
    from jp.cli.file_names import AttachmentNames
    from jp.tool.builtin import ReadFile

    return ReadFile(AttachmentNames())


def _run_command() -> Tool:
    from jp.tool.local.run_command import RunCommand

    return RunCommand()


BUILT_IN: Mapping[str, Callable[[], Tool]] = {
    "fs_read_file": _read_file,
    "run_command": _run_command,
}
"""A function that imports and makes the tool, for each that is off until it is enabled."""

STANDING = ("ask_user", "describe_tools", "recall", "refresh_resource")
"""The names of those that a request offers by itself where they are of use."""
