"""`fs_delete_file`."""

from __future__ import annotations

import os

from jp.conversation.entries import Facts
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.files.calling import failed, in_thread, require_consent, said, territory_of
from jp.tool.files.errors import FileAccessError
from jp.tool.files.opening import in_words, legible, parent_of, require_regular
from jp.tool.files.surroundings import FileSurroundings
from jp.tool.files.territory import Place

_DEFINITION = ToolDefinition(
    name="fs_delete_file",
    description="Delete a file. Directories and links are not deleted.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace's root or absolute."},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)


class DeleteFile:
    """A regular file that is taken away.

    Where calls run unattended, so that nobody was asked about the call, it asks before it deletes.
    """

    def __init__(self, surroundings: FileSurroundings) -> None:
        self._surroundings = surroundings

    @property
    def definition(self) -> ToolDefinition:
        """See the port."""
        return _DEFINITION

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """See the port."""
        try:
            place, status = await in_thread(self._looked_at, invocation)
            if invocation.settings.run == "unattended":
                text = f"Delete {place.written!r} ({status.st_size:,} bytes)?"
                await require_consent(invocation, "delete_file", text)
            return await in_thread(_deleted, place, status)
        except FileAccessError as error:
            return failed(error, "delete", invocation.arguments["path"])

    def _looked_at(self, invocation: ToolInvocation) -> tuple[Place, os.stat_result]:
        place = territory_of(invocation, self._surroundings).entry(str(invocation.arguments["path"]), "write")
        with in_words(place, "delete"), parent_of(place) as directory:
            return place, _status(directory, place)


def _deleted(place: Place, known: os.stat_result) -> ToolOutput:
    with in_words(place, "delete"), parent_of(place) as directory:
        status = _status(directory, place)
        if _version(status) != _version(known):
            raise FileAccessError(f"{place.written!r} was changed meanwhile, so it was not deleted")
        os.unlink(place.names[-1], dir_fd=directory)
    path = legible(place.shown)
    text = f"Deleted {path!r} ({status.st_size:,} bytes)."
    return ToolOutput(content=said(text), facts=Facts(kind="delete", path=path))


def _status(directory: int, place: Place) -> os.stat_result:
    status = os.stat(place.names[-1], dir_fd=directory, follow_symlinks=False)
    require_regular(status, place)
    return status


def _version(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
