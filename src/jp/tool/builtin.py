"""The tools that come with jp and work on files, by name; each is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jp.tool.base import Tool
    from jp.tool.files.territory import FileSurroundings


def _create_file(surroundings: FileSurroundings) -> Tool:
    from jp.tool.files.write_tools import CreateFile

    return CreateFile(surroundings)


def _delete_file(surroundings: FileSurroundings) -> Tool:
    from jp.tool.files.write_tools import DeleteFile

    return DeleteFile(surroundings)


def _grep_files(surroundings: FileSurroundings) -> Tool:
    from jp.tool.files.read_tools import GrepFiles

    return GrepFiles(surroundings)


def _list_files(surroundings: FileSurroundings) -> Tool:
    from jp.tool.files.read_tools import ListFiles

    return ListFiles(surroundings)


def _modify_file(surroundings: FileSurroundings) -> Tool:
    from jp.tool.files.write_tools import ModifyFile

    return ModifyFile(surroundings)


def _move_file(surroundings: FileSurroundings) -> Tool:
    from jp.tool.files.write_tools import MoveFile

    return MoveFile(surroundings)


def _read_file(surroundings: FileSurroundings) -> Tool:
    from jp.tool.files.read_tools import ReadFile

    return ReadFile(surroundings)


FILE_TOOLS: Mapping[str, Callable[[FileSurroundings], Tool]] = {
    "fs_create_file": _create_file,
    "fs_delete_file": _delete_file,
    "fs_grep_files": _grep_files,
    "fs_list_files": _list_files,
    "fs_modify_file": _modify_file,
    "fs_move_file": _move_file,
    "fs_read_file": _read_file,
}
"""A function that imports and makes the tool."""
