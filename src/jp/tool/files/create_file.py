"""`fs_create_file`."""

from __future__ import annotations

from jp.conversation.entries import Facts
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.files.calling import failed, in_thread, require_consent, said, territory_of
from jp.tool.files.changes import Change, Previews
from jp.tool.files.errors import FileAccessError
from jp.tool.files.opening import (
    Content,
    created_parent_of,
    encoded,
    in_words,
    legible,
    mode_of,
    parent_of,
    read_whole,
    text_of,
)
from jp.tool.files.surroundings import FileSurroundings
from jp.tool.files.territory import Place
from jp.tool.files.writing import create, replace

_DEFINITION = ToolDefinition(
    name="fs_create_file",
    description=(
        "Create a text file, with the directories that it needs. A file that is there already is only overwritten if "
        "the user agrees; to change one, use fs_modify_file."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace's root or absolute."},
            "content": {"type": "string", "description": "All of its text; empty by default."},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)


class CreateFile:
    """A new file, or one that is written anew after a question."""

    def __init__(self, surroundings: FileSurroundings) -> None:
        self._surroundings = surroundings
        self._previews = Previews()

    @property
    def definition(self) -> ToolDefinition:
        """See the port."""
        return _DEFINITION

    async def preview(self, invocation: ToolInvocation) -> str | None:
        """See the port, `jp.tool.base.Previewed`: what overwriting changes."""
        try:
            place, known = await in_thread(self._looked_at, invocation)
            if known is None:
                return None
            old = text_of(known.data, place.written)
        except FileAccessError:
            return None
        self._previews.remember(invocation, known)
        new = _content(invocation)
        return None if old == new else Change(place=place, known=known, old=old, new=new).diff()

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """See the port."""
        try:
            data = encoded(_content(invocation), "'content'")
            place, known = await in_thread(self._looked_at, invocation)
            if known is None:
                return await in_thread(_created, place, data)
            self._previews.require_same(invocation, place, known)
            text = f"{place.written!r} exists ({len(known.data):,} bytes). Overwrite it?"
            await require_consent(invocation, "overwrite_file", text)
            return await in_thread(_overwritten, place, data, known)
        except FileAccessError as error:
            return failed(error, "write", invocation.arguments["path"])

    def _looked_at(self, invocation: ToolInvocation) -> tuple[Place, Content | None]:
        """The file, and what it has if it is there."""
        territory = territory_of(invocation, self._surroundings)
        place = territory.place(str(invocation.arguments["path"]), "write")
        if not place.names or place.written.endswith("/"):
            raise FileAccessError(f"{place.written!r} is a directory")
        return place, None if mode_of(place) is None else read_whole(place)


def _content(invocation: ToolInvocation) -> str:
    return str(invocation.arguments.get("content", ""))


def _created(place: Place, data: bytes) -> ToolOutput:
    with in_words(place, "create"), created_parent_of(place) as directory:
        create(directory, place, data)
    return _done("Created", place, data)


def _overwritten(place: Place, data: bytes, known: Content) -> ToolOutput:
    with in_words(place, "write"), parent_of(place) as directory:
        replace(directory, place, data, known=known)
    return _done("Overwrote", place, data)


def _done(did: str, place: Place, data: bytes) -> ToolOutput:
    path = legible(place.shown)
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    counted = f"{lines:,} line{'s' if lines != 1 else ''}, {len(data):,} bytes"
    return ToolOutput(content=said(f"{did} {path!r}: {counted}."), facts=Facts(kind="write", path=path))
