"""`fs_read_file`."""

from __future__ import annotations

from jp.conversation.entries import Facts, JsonObject
from jp.conversation.resource import Resource, ResourceBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.files.calling import failed, in_thread, territory_of
from jp.tool.files.opening import legible, read_whole, text_of
from jp.tool.files.surroundings import FileSurroundings
from jp.tool.files.territory import FileAccessError

_DEFINITION = ToolDefinition(
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
    """A text file as a `resource` block; a part of it has a fragment such as `#L10-200`."""

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
            return await in_thread(_read, invocation, self._surroundings)
        except FileAccessError as error:
            return failed(error, "read", invocation.arguments["path"])


def _read(invocation: ToolInvocation, surroundings: FileSurroundings) -> ToolOutput:
    arguments = invocation.arguments
    place = territory_of(invocation, surroundings).place(str(arguments["path"]), "read")
    text = text_of(read_whole(place).data, place.written)
    uri = surroundings.uri(place.path)
    total, lines = text.count("\n") + bool(text and not text.endswith("\n")), None
    if "start_line" in arguments or "end_line" in arguments:
        text, lines = _selected(text, arguments, place.written)
        uri = f"{uri}#L{lines}"
    resource = Resource(uri=uri, mime_type=surroundings.mime_type(place.path), text=text)
    facts = Facts(kind="read", path=legible(place.shown), lines=lines, total_lines=total)
    return ToolOutput(content=(ResourceBlock(resource=resource),), facts=facts)


def _selected(text: str, arguments: JsonObject, written: str) -> tuple[str, str]:
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
        raise FileAccessError(f"start_line is {start}, but {written!r} has {len(lines)} lines")
    if end < start:
        raise FileAccessError(f"end_line is {end}, before start_line {start}")
    last = min(end, len(lines))
    ended = last < len(lines) or text.endswith("\n")
    return "\n".join(lines[start - 1 : last]) + ("\n" if ended else ""), f"{start}-{last}"
