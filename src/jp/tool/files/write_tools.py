"""`fs_create_file`, `fs_modify_file`, `fs_move_file` and `fs_delete_file`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from jp.conversation.entries import Facts
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.files.access import (
    Content,
    FileAccessError,
    FileNames,
    ResolvedPath,
    created_parent_of,
    encoded,
    file_errors,
    legible,
    mode_of,
    parent_of,
    read_whole,
    require_regular,
    status_of,
    text_of,
)
from jp.tool.files.changes import (
    Edit,
    FileTool,
    access_of,
    create,
    difference,
    in_thread,
    matches_of,
    put_over,
    put_where_nothing_is,
    replace,
    replaced_exactly,
    replaced_matches,
    require_consent,
    text_result,
)

if TYPE_CHECKING:
    from anyio import Lock


MOST_SHOWN = 200
"""The most lines of a diff that the model is shown."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a file from `old` to `new`."""

    place: ResolvedPath
    known: Content
    old: str
    new: str

    def diff(self) -> str:
        """Return the change as a unified diff, whole: it is what a person consents to."""
        return difference(legible(self.place.shown), self.old, self.new).text()


class Previews:
    """Previews of calls, so that a file that somebody else has changed since is noticed.

    What calls of the same tool have made of it meanwhile, one after the other, was shown too.
    """

    def __init__(self) -> None:
        self._shown: dict[bytes, str] = {}
        self._made: dict[str, list[str]] = {}

    def remember(self, invocation: ToolInvocation, known: Content) -> None:
        """Keep in mind what the file had when the call was shown."""
        self._shown[_identity(invocation)] = _checksum(known.data)

    def require_same(self, invocation: ToolInvocation, place: ResolvedPath, known: Content) -> None:
        """See that a file has what it had when the call was shown, if it was.

        Raises:
            FileAccessError: it has not.
        """
        current = _checksum(known.data)
        shown = self._shown.pop(_identity(invocation), current)
        made_since = self._made.get(place.path, [])
        if shown == current or (shown in made_since and made_since[-1] == current):
            return
        raise FileAccessError(
            f"{place.written!r} has changed since this call was shown, so nothing was written; read it again"
        )

    def made(self, place: ResolvedPath, old: bytes, new: bytes) -> None:
        """Keep in mind that a call has made the one content of the other."""
        since = self._made.setdefault(place.path, [])
        if not since or since[-1] != _checksum(old):
            since[:] = [_checksum(old)]
        since.append(_checksum(new))


def apply_change(change: Change) -> ToolOutput:
    """Make the change, whole or not at all.

    Raises:
        FileAccessError: the file is not what is known of it any more, or cannot be written.
    """
    place = change.place
    with file_errors(place, "write"), parent_of(place) as directory:
        replace(directory, place, change.new.encode(), known=change.known)
    path = legible(place.shown)
    found = difference(path, change.old, change.new)
    facts = Facts(kind="patch", path=path, lines=f"{found.first}-{found.last}")
    return ToolOutput(content=text_result(f"Changed {path!r}:\n{found.text(MOST_SHOWN)}"), facts=facts)


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _identity(invocation: ToolInvocation) -> bytes:
    return msgspec.json.encode((str(invocation.root), invocation.arguments), order="sorted")


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


class CreateFile(FileTool):
    """The tool that creates a file, or overwrites one after a question."""

    definition = _DEFINITION
    kind = "write"

    def __init__(self, names: FileNames) -> None:
        super().__init__(names)
        self._previews = Previews()

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

    async def work(self, invocation: ToolInvocation) -> ToolOutput:
        """See the base."""
        data = encoded(_content(invocation), "'content'")
        place, known = await in_thread(self._looked_at, invocation)
        if known is None:
            return await in_thread(_created, place, data)
        self._previews.require_same(invocation, place, known)
        text = f"{place.written!r} exists ({len(known.data):,} bytes). Overwrite it?"
        await require_consent(invocation, "overwrite_file", text)
        return await in_thread(_overwritten, place, data, known)

    def _looked_at(self, invocation: ToolInvocation) -> tuple[ResolvedPath, Content | None]:
        """Return the file, and what it has if it is there."""
        access = access_of(invocation, self._names)
        place = access.place(str(invocation.arguments["path"]), "write")
        if not place.names or place.written.endswith("/"):
            raise FileAccessError(f"{place.written!r} is a directory")
        return place, None if mode_of(place) is None else read_whole(place)


def _content(invocation: ToolInvocation) -> str:
    return str(invocation.arguments.get("content", ""))


def _created(place: ResolvedPath, data: bytes) -> ToolOutput:
    with file_errors(place, "create"), created_parent_of(place) as directory:
        create(directory, place, data)
    return _done("Created", place, data)


def _overwritten(place: ResolvedPath, data: bytes, known: Content) -> ToolOutput:
    with file_errors(place, "write"), parent_of(place) as directory:
        replace(directory, place, data, known=known)
    return _done("Overwrote", place, data)


def _done(did: str, place: ResolvedPath, data: bytes) -> ToolOutput:
    path = legible(place.shown)
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    counted = f"{lines:,} line{'s' if lines != 1 else ''}, {len(data):,} bytes"
    return ToolOutput(content=text_result(f"{did} {path!r}: {counted}."), facts=Facts(kind="write", path=path))


_MOVE_DEFINITION = ToolDefinition(
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

    source: ResolvedPath
    target: ResolvedPath
    overwritten: int | None


class MoveFile(FileTool):
    """A regular file under another path. Links are not moved: what they lead to would be, or they would break."""

    definition = _MOVE_DEFINITION
    kind = "move"
    path_argument = "target"

    async def work(self, invocation: ToolInvocation) -> ToolOutput:
        """See the base."""
        move = await in_thread(self._planned, invocation)
        if move.overwritten is not None:
            text = f"{move.target.written!r} exists ({move.overwritten:,} bytes). Overwrite it?"
            await require_consent(invocation, "overwrite_file", text)
        return await in_thread(_moved, move)

    def _planned(self, invocation: ToolInvocation) -> _Move:
        access = access_of(invocation, self._names)
        source = access.entry(str(invocation.arguments["source"]), "write")
        written = str(invocation.arguments["target"])
        if written.endswith("/"):
            raise FileAccessError(f"{written!r} is a directory; name the file's new path")
        target = access.entry(written, "write")
        with file_errors(source, "move"), parent_of(source) as directory:
            status = os.stat(source.names[-1], dir_fd=directory, follow_symlinks=False)
            require_regular(status, source)
        size = _size_of(target)
        if source.path == target.path:
            raise FileAccessError(f"{source.written!r} and {target.written!r} are the same path")
        return _Move(source=source, target=target, overwritten=size)


def _size_of(target: ResolvedPath) -> int | None:
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
    with file_errors(source, "move"), parent_of(source) as here:
        require_regular(os.stat(source.names[-1], dir_fd=here, follow_symlinks=False), source)
        with file_errors(target, "move to"), created_parent_of(target) as there:
            if move.overwritten is None:
                _put(here, there, move)
            else:
                put_over(here, source.names[-1], there, target)
    old, new = legible(source.shown), legible(target.shown)
    return ToolOutput(content=text_result(f"Moved {old!r} to {new!r}."), facts=Facts(kind="move", path=new))


def _put(here: int, there: int, move: _Move) -> None:
    try:
        put_where_nothing_is(here, move.source.names[-1], there, move.target.names[-1])
    except FileExistsError:
        message = f"{move.target.written!r} was created meanwhile, so nothing was moved"
        raise FileAccessError(message) from None


_DELETE_DEFINITION = ToolDefinition(
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


class DeleteFile(FileTool):
    """A regular file that is taken away.

    Where calls run unattended, so that nobody was asked about the call, it asks before it deletes.
    """

    definition = _DELETE_DEFINITION
    kind = "delete"

    async def work(self, invocation: ToolInvocation) -> ToolOutput:
        """See the base."""
        place, status = await in_thread(self._looked_at, invocation)
        if invocation.settings.run == "unattended":
            text = f"Delete {place.written!r} ({status.st_size:,} bytes)?"
            await require_consent(invocation, "delete_file", text)
        return await in_thread(_deleted, place, status)

    def _looked_at(self, invocation: ToolInvocation) -> tuple[ResolvedPath, os.stat_result]:
        place = access_of(invocation, self._names).entry(str(invocation.arguments["path"]), "write")
        with file_errors(place, "delete"), parent_of(place) as directory:
            return place, _status(directory, place)


def _deleted(place: ResolvedPath, known: os.stat_result) -> ToolOutput:
    with file_errors(place, "delete"), parent_of(place) as directory:
        status = _status(directory, place)
        if _version(status) != _version(known):
            raise FileAccessError(f"{place.written!r} was changed meanwhile, so it was not deleted")
        os.unlink(place.names[-1], dir_fd=directory)
    path = legible(place.shown)
    text = f"Deleted {path!r} ({status.st_size:,} bytes)."
    return ToolOutput(content=text_result(text), facts=Facts(kind="delete", path=path))


def _status(directory: int, place: ResolvedPath) -> os.stat_result:
    status = os.stat(place.names[-1], dir_fd=directory, follow_symlinks=False)
    require_regular(status, place)
    return status


def _version(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


_MARK = "\ufeff"


class TextForm(msgspec.Struct, frozen=True, kw_only=True):
    """A file's byte order mark and line ends."""

    has_mark: bool
    has_returns: bool

    def spelled(self, text: str) -> str:
        """Return `text` as the file has it."""
        body = text.replace("\n", "\r\n") if self.has_returns else text
        return f"{_MARK}{body}" if self.has_mark else body

    def plain(self, text: str) -> str:
        """Return what somebody says of the file's text, with its line ends."""
        return text.replace("\r\n", "\n") if self.has_returns else text


def split_text(raw: str) -> tuple[str, TextForm]:
    """Return the text in `raw`, and its form; together they give `raw` again, byte for byte.

    Only where each line ends with a carriage return and a line feed are the former no part of the text.
    """
    body = raw.removeprefix(_MARK)
    pairs = body.count("\r\n")
    has_returns = pairs > 0 and pairs == body.count("\n")
    form = TextForm(has_mark=body != raw, has_returns=has_returns)
    return form.plain(body), form


_MODIFY_FILE = ToolDefinition(
    name="fs_modify_file",
    description=(
        "Change a text file: replace texts in it by others. The patterns are applied in their order, each to what the "
        "one before left; if one does not fit, nothing is changed. The result is a diff."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace's root or absolute."},
            "patterns": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "old": {
                            "type": "string",
                            "description": (
                                "The text to replace, exactly as the file has it, with enough around it that it is "
                                "there once only."
                            ),
                        },
                        "new": {"type": "string", "description": "The text to put there."},
                        "replace_all": {
                            "type": "boolean",
                            "description": "Replace it wherever it is, not just once; false by default.",
                        },
                    },
                    "required": ["old", "new"],
                    "additionalProperties": False,
                },
            },
            "replace_using_regex": {
                "type": "boolean",
                "description": (
                    "Each 'old' is a regular expression of Python ('^' and '$' are the ends of lines), and in 'new' "
                    "'$1' and '${name}' are groups and '$$' is a dollar sign; false by default."
                ),
            },
        },
        "required": ["path", "patterns"],
        "additionalProperties": False,
    },
)


class ModifyFile(FileTool):
    """Edits of one file: all of them or none, in its line ends, and only in the file that was looked at."""

    definition = _MODIFY_FILE
    kind = "patch"

    def __init__(self, names: FileNames) -> None:
        super().__init__(names)
        self._previews = Previews()

    @cached_property
    def _lock(self) -> Lock:
        from anyio import Lock

        return Lock()

    async def preview(self, invocation: ToolInvocation) -> str | None:
        """See the port, `jp.tool.base.Previewed`."""
        try:
            change = await self._planned(invocation)
        except FileAccessError:
            return None
        self._previews.remember(invocation, change.known)
        return change.diff()

    async def work(self, invocation: ToolInvocation) -> ToolOutput:
        """See the base."""
        # Calls of one cycle run side by side, and several may be about one file.
        async with self._lock:
            change = await self._planned(invocation)
            self._previews.require_same(invocation, change.place, change.known)
            output = await in_thread(apply_change, change)
            self._previews.made(change.place, change.known.data, change.new.encode())
            return output

    async def _planned(self, invocation: ToolInvocation) -> Change:
        place, known = await in_thread(self._read, invocation)
        raw = text_of(known.data, place.written)
        text, form = split_text(raw)
        uses_expressions = invocation.arguments.get("replace_using_regex", False)
        for edit in _edits(invocation):
            if uses_expressions:
                text, _ = replaced_matches(text, edit, await in_thread(matches_of, edit, text))
            else:
                plain = Edit(
                    number=edit.number,
                    old=form.plain(edit.old),
                    new=form.plain(edit.new),
                    replace_all=edit.replace_all,
                )
                text, _ = replaced_exactly(text, plain)
        new = form.spelled(text)
        if new == raw:
            raise FileAccessError(f"the patterns leave {place.written!r} as it is")
        return Change(place=place, known=known, old=raw, new=new)

    def _read(self, invocation: ToolInvocation) -> tuple[ResolvedPath, Content]:
        access = access_of(invocation, self._names)
        written = str(invocation.arguments["path"])
        access.place(written, "read")
        place = access.place(written, "write")
        return place, read_whole(place)


def _edits(invocation: ToolInvocation) -> list[Edit]:
    patterns = invocation.arguments["patterns"]
    if not patterns:
        raise FileAccessError("'patterns' is empty")
    for pattern in patterns:
        encoded(pattern["old"] + pattern["new"], "a pattern")
    return [
        Edit(
            number=number,
            old=pattern["old"],
            new=pattern["new"],
            replace_all=pattern.get("replace_all", False),
        )
        for number, pattern in enumerate(patterns, 1)
    ]


_ALL = (CreateFile, DeleteFile, ModifyFile, MoveFile)
TOOLS: Mapping[str, type[FileTool]] = {tool.definition.name: tool for tool in _ALL}
