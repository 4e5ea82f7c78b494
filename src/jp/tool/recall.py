"""`recall`: what was left out of a view, a page at a time, from the log of the conversation in which it is called."""

from __future__ import annotations

import re
from typing import Literal, Protocol

import msgspec

from jp.conversation.entries import Facts
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.errors import JpError
from jp.tool.base import Stream, ToolInvocation, ToolOutput, error_output
from jp.tool.bounding import BOUND
from jp.tool.toolbox import RECALL

_NOTE = 120
"""How many bytes what is said below a page takes at most."""

_SMALLEST_PAGE = 256

_DEFINITION = ToolDefinition(
    name=RECALL,
    description=(
        "Read what was left out of this conversation to save room. Where text was cut stands "
        "[[cut:…:HANDLE:+CHARACTERS]] from offset BYTES; what stands for an old result or argument says recall HANDLE. "
        "search_history finds handles by words. "
        "It gives one page of the original and the offset of the next one."
    ),
    parameters={
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": "The handle as it stands there, such as 0123abcd."},
            "offset": {"type": "integer", "description": "The byte to begin at; without it, at the beginning."},
            "lines": {"type": "integer", "description": "At most so many lines; without it, as many as fit."},
        },
        "required": ["handle"],
        "additionalProperties": False,
    },
)

_WHERE = "A handle stands in [[cut:…:HANDLE:+CHARACTERS]], or after the word recall in what stands for an old result."


class HandleError(JpError):
    """A handle names nothing in this conversation, or several things."""


class FoundContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a handle names, as it was. `uri` and `mime_type` are there where the log says them."""

    handle: str
    sha256: str
    data: bytes
    is_text: bool
    uri: str | None = None
    mime_type: str | None = None

    @property
    def kind(self) -> str:
        """What content that is no text is called."""
        return f"binary content ({self.mime_type or 'of unknown type'})"


class Contents(Protocol):
    """Finds contents by their handles."""

    def find(self, handle: str, stream: Stream) -> FoundContent:
        """What `handle` names in `stream`, and nowhere else.

        Raises:
            HandleError: it names nothing, or several contents; in words for the model.
            StorageError: the content cannot be read.
        """
        ...


class Recall:
    """The tool. A page fits into the tool's own bound with what is said of it, so that it is never cut itself.

    It is text, whatever it is a page of: a part of a resource is no delivery of the resource.
    """

    @property
    def in_pages(self) -> Literal[True]:
        """See `jp.tool.bounding.InPages`."""
        return True

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    @property
    def definition(self) -> ToolDefinition:
        """See the class."""
        return _DEFINITION

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Read it in a thread of its own: the disk may hang."""
        from anyio.to_thread import run_sync

        wanted = _handle_in(str(invocation.arguments["handle"]))
        try:
            found = await run_sync(self._contents.find, wanted, invocation.stream, abandon_on_cancel=True)
        except HandleError as error:
            return error_output(f"{error.message}. {_WHERE}")
        return _page(found, invocation)


def _handle_in(text: str) -> str:
    """The handle that `text` is, or has in it where it is a whole marker."""
    marked = re.search(r"\[\[cut:[^:\]]*:([0-9a-f]+):", text)
    return text if marked is None else marked[1]


def _page(found: FoundContent, invocation: ToolInvocation) -> ToolOutput:
    from jp.context.pages import page_of_text

    offset, lines = invocation.arguments.get("offset", 0), invocation.arguments.get("lines")
    size = len(found.data)
    if not found.is_text:
        told = f"`{found.handle}` is {found.kind} of {size} bytes, which is no text"
        return error_output(f"{told}: the user can see it with `jp conversation recall {found.handle}`.")
    if not 0 <= offset < max(size, 1):
        return error_output(f"offset is {offset}, but `{found.handle}` has {size} bytes, counted from 0.")
    if lines is not None and lines < 1:
        return error_output(f"lines is {lines}, but a page has at least 1.")
    limit = max((invocation.settings.max_bytes or BOUND) - _NOTE, _SMALLEST_PAGE)
    page = page_of_text(found.data, int(offset), lines=None if lines is None else int(lines), most=limit)
    end = page.offset + len(page.data)
    more = "this is the end" if page.next_offset is None else f"go on with offset {page.next_offset}"
    text = page.data.decode("utf-8", "replace")
    note = f"[bytes {page.offset} to {end} of {size} of {found.handle}; {more}]"
    return ToolOutput(
        content=(TextBlock(text=text), TextBlock(text=note)) if text else (TextBlock(text=note),),
        facts=Facts(kind="read", path=found.uri),
    )
