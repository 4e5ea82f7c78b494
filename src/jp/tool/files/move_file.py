"""`fs_move_file`."""

from __future__ import annotations

import os

import msgspec

from jp.conversation.entries import Facts
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.files.calling import failed, in_thread, require_consent, said, territory_of
from jp.tool.files.errors import FileAccessError
from jp.tool.files.opening import created_parent_of, in_words, legible, parent_of, require_regular, status_of
from jp.tool.files.surroundings import FileSurroundings
from jp.tool.files.territory import Place
from jp.tool.files.writing import put_over, put_where_nothing_is

_DEFINITION = ToolDefinition(
    name="fs_move_file",
    description=(
        "Move or rename a file, with the directories that its new place needs. A file that is there already is only "
        "overwritten if the user agrees."
    ),
    parameters={
        "type": "object",
        "properties": {
            "source": {"type": "string", "description": "The file, relative to the workspace's root or absolute."},
            "target": {"type": "string", "description": "Its new path, with the file's name."},
        },
        "required": ["source", "target"],
        "additionalProperties": False,
    },
)


class _Move(msgspec.Struct, frozen=True, kw_only=True):
    """`overwritten` is the size of the file that is at the target, None where there is none."""

    source: Place
    target: Place
    overwritten: int | None


class MoveFile:
    """A regular file under another path. Links are not moved: what they lead to would be, or they would break."""

    def __init__(self, surroundings: FileSurroundings) -> None:
        self._surroundings = surroundings

    @property
    def definition(self) -> ToolDefinition:
        """See the port."""
        return _DEFINITION

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """See the port."""
        try:
            move = await in_thread(self._planned, invocation)
            if move.overwritten is not None:
                text = f"{move.target.written!r} exists ({move.overwritten:,} bytes). Overwrite it?"
                await require_consent(invocation, "overwrite_file", text)
            return await in_thread(_moved, move)
        except FileAccessError as error:
            return failed(error, "move", invocation.arguments["target"])

    def _planned(self, invocation: ToolInvocation) -> _Move:
        territory = territory_of(invocation, self._surroundings)
        source = territory.entry(str(invocation.arguments["source"]), "write")
        written = str(invocation.arguments["target"])
        if written.endswith("/"):
            raise FileAccessError(f"{written!r} is a directory; name the file's new path")
        target = territory.entry(written, "write")
        with in_words(source, "move"), parent_of(source) as directory:
            status = os.stat(source.names[-1], dir_fd=directory, follow_symlinks=False)
            require_regular(status, source)
        size = _size_of(target)
        if source.path == target.path:
            raise FileAccessError(f"{source.written!r} and {target.written!r} are the same path")
        return _Move(source=source, target=target, overwritten=size)


def _size_of(target: Place) -> int | None:
    try:
        with parent_of(target) as directory:
            status = status_of(directory, target.names[-1])
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileAccessError(f"cannot move to {target.written!r}: {error.strerror}") from None
    if status is None:
        return None
    require_regular(status, target)
    return status.st_size


def _moved(move: _Move) -> ToolOutput:
    source, target = move.source, move.target
    with in_words(source, "move"), parent_of(source) as here:
        require_regular(os.stat(source.names[-1], dir_fd=here, follow_symlinks=False), source)
        with in_words(target, "move to"), created_parent_of(target) as there:
            if move.overwritten is None:
                _put(here, there, move)
            else:
                put_over(here, source.names[-1], there, target)
    old, new = legible(source.shown), legible(target.shown)
    return ToolOutput(content=said(f"Moved {old!r} to {new!r}."), facts=Facts(kind="move", path=new))


def _put(here: int, there: int, move: _Move) -> None:
    try:
        put_where_nothing_is(here, move.source.names[-1], there, move.target.names[-1])
    except FileExistsError:
        message = f"{move.target.written!r} was created meanwhile, so nothing was moved"
        raise FileAccessError(message) from None
