"""The tools that come with jp, by name; each is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from jp.tool import standing
from jp.tool.builtin import FILE_TOOLS

if TYPE_CHECKING:
    from jp.tool.base import Tool
    from jp.tool.files.surroundings import FileSurroundings


def _on_files(make: Callable[[FileSurroundings], Tool]) -> Tool:
    from jp.cli.file_names import AttachmentNames

    return make(AttachmentNames())


def _run_command() -> Tool:
    from jp.cli.file_names import private_directories
    from jp.tool.local.confining import Sandbox
    from jp.tool.local.run_command import RunCommand

    return RunCommand(Sandbox(name="run_command", default="workspace-write", private=private_directories))


def _web_fetch() -> Tool:
    from jp.cli.web import AttachmentWeb
    from jp.tool.web_fetch import WebFetch

    return WebFetch(AttachmentWeb())


BUILT_IN: Mapping[str, Callable[[], Tool]] = {
    **{name: partial(_on_files, make) for name, make in FILE_TOOLS.items()},
    "run_command": _run_command,
    "web_fetch": _web_fetch,
}
"""A function that imports and makes the tool, for each that is off until it is enabled."""

STANDING = tuple(sorted(standing.STANDING))
"""The names of those that a request offers by itself where they are of use."""
