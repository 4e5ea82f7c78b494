"""The tools that come with jp."""

from __future__ import annotations

import os

from jp.conversation.entries import Facts, JsonObject
from jp.conversation.resource import Resource, ResourceBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import Tool, ToolInvocation, ToolOutput, error_output
from jp.tool.confined import ConfinedFile, FileAccessError, FileNames, open_confined

MAX_BYTES = 10 * 1024 * 1024
"""What is read of one file at most, as for an attachment."""

_READ_FILE = ToolDefinition(
    name="fs_read_file",
    description=(
        "Read a text file of the workspace, or some of its lines. Lines count from 1; start_line and end_line are "
        "both included and may be left out."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace's root or absolute."},
            "start_line": {"type": "integer", "description": "The first line."},
            "end_line": {"type": "integer", "description": "The last line; past the end of the file means its end."},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)


class ReadFile:
    """`fs_read_file`: a text file as a `resource` block; a part of it has a fragment such as `#L10-200`."""

    def __init__(self, names: FileNames) -> None:
        self._names = names

    @property
    def definition(self) -> ToolDefinition:
        """See the class."""
        return _READ_FILE

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Read in a thread of its own: a file system that hangs must not hang what cancels this."""
        from anyio.to_thread import run_sync

        try:
            return await run_sync(_read_file, invocation, self._names, abandon_on_cancel=True)
        except FileAccessError as error:
            return error_output(error.message)


def built_in_tools(names: FileNames) -> tuple[Tool, ...]:
    """Every tool that comes with jp, enabled or not."""
    return (ReadFile(names),)


def _read_file(invocation: ToolInvocation, names: FileNames) -> ToolOutput:
    arguments = invocation.arguments
    path = str(arguments["path"])
    opened = open_confined(invocation.root, path, names)
    text = _text(opened, path)
    uri = names.uri(opened.path)
    lines = None
    if "start_line" in arguments or "end_line" in arguments:
        text, lines = _selected(text, arguments, path)
        uri = f"{uri}#L{lines}"
    resource = Resource(uri=uri, mime_type="text/plain", text=text)
    facts = Facts(kind="read", path=_legible(opened.relative), lines=lines)
    return ToolOutput(content=(ResourceBlock(resource=resource),), facts=facts)


def _legible(path: str) -> str:
    """`path` as text that any log can hold: names are bytes, and need not be UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")


def _text(opened: ConfinedFile, path: str) -> str:
    with open(opened.descriptor, "rb") as file:  # noqa: PTH123  a descriptor has no path
        size = opened.size
        # A file may grow while it is read, and those of /proc say that they are empty.
        data = b"" if size > MAX_BYTES else file.read(MAX_BYTES + 1)
    if max(size, len(data)) > MAX_BYTES:
        raise FileAccessError(f"{path!r} is larger than {MAX_BYTES:,} bytes, which is the most that is read")
    if b"\0" in data:
        raise FileAccessError(f"{path!r} is binary ({len(data):,} bytes), not text")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FileAccessError(f"{path!r} is not UTF-8 text: byte {error.start:,} does not fit") from None


def _selected(text: str, arguments: JsonObject, path: str) -> tuple[str, str]:
    """The lines that `arguments` ask for, and their range such as `10-200`.

    A line ends with a line feed, as in an editor: a last one opens no further line.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    start = int(arguments.get("start_line", 1))
    end = int(arguments.get("end_line", len(lines)))
    if start < 1:
        raise FileAccessError(f"start_line is {start}, but lines count from 1")
    if start > len(lines):
        raise FileAccessError(f"start_line is {start}, but {path!r} has {len(lines)} lines")
    if end < start:
        raise FileAccessError(f"end_line is {end}, before start_line {start}")
    last = min(end, len(lines))
    ended = last < len(lines) or text.endswith("\n")
    return "\n".join(lines[start - 1 : last]) + ("\n" if ended else ""), f"{start}-{last}"
