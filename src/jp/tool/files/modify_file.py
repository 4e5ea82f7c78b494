"""`fs_modify_file`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from jp.conversation.thread import ToolDefinition
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.files.calling import Change, Previews, failed, in_thread, made, territory_of
from jp.tool.files.edits import Edit, replaced_exactly, replaced_matches
from jp.tool.files.opening import Content, encoded, read_whole, text_of
from jp.tool.files.surroundings import FileSurroundings
from jp.tool.files.territory import FileAccessError, Place

if TYPE_CHECKING:
    from anyio import Lock


_MARK = "\ufeff"


class TextForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a file spells its text."""

    has_mark: bool
    has_returns: bool

    def spelled(self, text: str) -> str:
        """`text` as the file has it."""
        body = text.replace("\n", "\r\n") if self.has_returns else text
        return f"{_MARK}{body}" if self.has_mark else body

    def plain(self, text: str) -> str:
        """What somebody says of the file's text, with its line ends."""
        return text.replace("\r\n", "\n") if self.has_returns else text


def taken_apart(raw: str) -> tuple[str, TextForm]:
    """The text in `raw`, and its form; together they give `raw` again, byte for byte.

    Only where each line ends with a carriage return and a line feed are the former no part of the text.
    """
    body = raw.removeprefix(_MARK)
    pairs = body.count("\r\n")
    has_returns = pairs > 0 and pairs == body.count("\n")
    form = TextForm(has_mark=body != raw, has_returns=has_returns)
    return form.plain(body), form


_DEFINITION = ToolDefinition(
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
                    "'$1' and '${name}' stand for groups and '$$' for a dollar sign; false by default."
                ),
            },
        },
        "required": ["path", "patterns"],
        "additionalProperties": False,
    },
)


class ModifyFile:
    """Edits of one file: all of them or none, in its line ends, and only in the file that was looked at."""

    def __init__(self, surroundings: FileSurroundings) -> None:
        self._surroundings = surroundings
        self._previews = Previews()

    @cached_property
    def _lock(self) -> Lock:
        from anyio import Lock

        return Lock()

    @property
    def definition(self) -> ToolDefinition:
        """See the port."""
        return _DEFINITION

    async def preview(self, invocation: ToolInvocation) -> str | None:
        """See the port, `jp.tool.base.Previewed`."""
        try:
            change = await self._planned(invocation)
        except FileAccessError:
            return None
        self._previews.remember(invocation, change.known)
        return change.diff()

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """See the port."""
        try:
            # Calls of one cycle run side by side, and several may be about one file.
            async with self._lock:
                return await self._changed(invocation)
        except FileAccessError as error:
            return failed(error, "patch", invocation.arguments["path"])

    async def _changed(self, invocation: ToolInvocation) -> ToolOutput:
        change = await self._planned(invocation)
        self._previews.require_same(invocation, change.place, change.known)
        output = await in_thread(made, change)
        self._previews.made(change.place, change.known.data, change.new.encode())
        return output

    async def _planned(self, invocation: ToolInvocation) -> Change:
        place, known = await in_thread(self._read, invocation)
        raw = text_of(known.data, place.written)
        text, form = taken_apart(raw)
        uses_expressions = invocation.arguments.get("replace_using_regex", False)
        for edit in _edits(invocation):
            if uses_expressions:
                from jp.tool.files.edits import matches_of

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

    def _read(self, invocation: ToolInvocation) -> tuple[Place, Content]:
        territory = territory_of(invocation, self._surroundings)
        written = str(invocation.arguments["path"])
        territory.place(written, "read")
        place = territory.place(written, "write")
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
