"""`fs_list_files`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from jp.conversation.entries import Facts
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.files.calling import failed, in_thread, said, territory_of
from jp.tool.files.opening import Start, Walks, legible, mode_of
from jp.tool.files.surroundings import FileSurroundings
from jp.tool.files.territory import FileAccessError, Place, Territory

MOST_LISTED = 1_000
"""So many paths are listed; of the others it is said how many there are."""

_NO_GLOBS = " Globs are not read: give a directory as a prefix, and extensions."

_DEFINITION = ToolDefinition(
    name="fs_list_files",
    description=(
        "List the files of the workspace, one path a line. Files that ignore files such as .gitignore name, and hidden "
        "ones, are left out unless a prefix names them."
    ),
    parameters={
        "type": "object",
        "properties": {
            "prefixes": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Directories such as 'src/', or beginnings of paths such as 'src/test_'. None: all.",
            },
            "extensions": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Extensions of file names, such as 'py'. None: all.",
            },
        },
        "additionalProperties": False,
    },
)


class ListFiles:
    """Paths as text: a list has no content of its own that could be named by a URI and read again."""

    def __init__(self, surroundings: FileSurroundings) -> None:
        self._surroundings = surroundings

    @property
    def definition(self) -> ToolDefinition:
        """See the port."""
        return _DEFINITION

    @property
    def reads_only(self) -> bool:
        """True: see `jp.tool.base.ReadsOnly`."""
        return True

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """See the port."""
        try:
            return await in_thread(_listed, invocation, self._surroundings)
        except FileAccessError as error:
            return failed(error, "list")


def _listed(invocation: ToolInvocation, surroundings: FileSurroundings) -> ToolOutput:
    arguments = invocation.arguments
    prefixes = [str(prefix) for prefix in arguments.get("prefixes", ())]
    extensions = frozenset(str(extension).removeprefix(".") for extension in arguments.get("extensions", ()))
    territory = territory_of(invocation, surroundings)
    walks = Walks(territory, surroundings, extensions)
    found = {place.path: place for prefix in prefixes or ["."] for place in _of_prefix(prefix, territory, walks)}
    paths = [legible(found[path].shown) for path in sorted(found, key=lambda path: path.split("/"))]
    facts = Facts(kind="list", path=legible(prefixes[0]) if len(prefixes) == 1 else None, matches=len(paths))
    return ToolOutput(content=said(_text(paths, prefixes)), facts=facts)


def _of_prefix(prefix: str, territory: Territory, walks: Walks) -> Iterator[Place]:
    place = territory.place(prefix, "walk")
    mode = mode_of(place)
    if mode is None:
        directory, beginning = os.path.split(prefix)
        above = territory.place(directory or ".", "walk")
        if beginning and mode_of(above) is not None:
            yield from walks.files(Start(place=above, beginning=beginning))
    elif stat.S_ISDIR(mode):
        yield from walks.files(Start(place=place))
    elif stat.S_ISREG(mode) and walks.has_ending(place.path):
        yield territory.place(prefix, "read")


def _text(paths: list[str], prefixes: list[str]) -> str:
    if not paths:
        return "No files found." + (_NO_GLOBS if any("*" in prefix for prefix in prefixes) else "")
    more = len(paths) - MOST_LISTED
    note = [f"… and {more:,} more files; narrow it with prefixes or extensions"] if more > 0 else []
    return "\n".join([*paths[:MOST_LISTED], *note])
