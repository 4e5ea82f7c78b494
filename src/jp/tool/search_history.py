"""`search_history`: excerpts of what the conversation holds, also where it is hidden, by words and without secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from jp.conversation.entries import Facts
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import Stream, ToolInvocation, ToolOutput, error_output
from jp.tool.bounding import BOUND
from jp.tool.toolbox import SEARCH

_EXCERPTS = 5
_MOST_EXCERPTS = 20
_NOTE = 160
"""Bytes that the note below the excerpts takes at most."""

_HEADING = 160
"""Bytes that what is said above an excerpt takes besides what describes the content."""

_SMALLEST_TEXT = 120
_ABOUT_SHARE = 3
"""Share of an excerpt's room (one part in so many) for the description of its content."""

_DEFINITION = ToolDefinition(
    name=SEARCH,
    description=(
        "Search this conversation, also what is hidden by now. Gives the best excerpts of messages, results, arguments "
        "and attachments, each with a handle and an offset from which recall reads on. Secrets are redacted."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Words of the text: names, paths, parts of an error."},
            "limit": {"type": "integer", "description": f"Excerpts at most; without it, {_EXCERPTS}."},
        },
        "required": ["query"],
        "additionalProperties": False,
    },
)


class FoundPassage(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that was found, and where: from byte `offset` on of the content with this `handle`."""

    handle: str
    turn: int
    about: str
    offset: int
    size: int
    text: str


class History(Protocol):
    """Finds passages of a conversation by words."""

    def search(self, query: str, limit: int, stream: Stream) -> Sequence[FoundPassage]:
        """Return at most `limit` passages of `stream`, the best first. Any text is a query."""
        ...


class SearchHistory:
    """The tool. Its excerpts fit into the tool's own bound, so that none is cut."""

    @property
    def in_pages(self) -> Literal[True]:
        """See `jp.tool.bounding.InPages`."""
        return True

    def __init__(self, history: History) -> None:
        self._history = history

    @property
    def definition(self) -> ToolDefinition:
        """See the class."""
        return _DEFINITION

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Search in a thread, because the disk may hang."""
        from anyio.to_thread import run_sync

        from jp.context.search import words_of

        query, limit = str(invocation.arguments["query"]), int(invocation.arguments.get("limit", _EXCERPTS))
        if not 1 <= limit <= _MOST_EXCERPTS:
            return error_output(f"limit is {limit}, but can be 1 to {_MOST_EXCERPTS}.")
        words = words_of(query)
        if not words:
            return error_output("The query has no word: write words that stand in the text.")
        found = await run_sync(self._history.search, query, limit, invocation.stream, abandon_on_cancel=True)
        if not found:
            text = "Nothing in this conversation has any of these words. Try other words, or parts of names."
            return ToolOutput(content=(TextBlock(text=text),), facts=Facts(kind="search", matches=0))
        shown = _excerpts(found, words, invocation.settings.max_bytes or BOUND)
        more = f"; other words or limit (at most {_MOST_EXCERPTS}) give others" if len(found) == limit else ""
        note = f"[{len(shown)} excerpts; recall with a handle and its offset reads on{more}]"
        return ToolOutput(
            content=(TextBlock(text="\n\n".join((*shown, note))),), facts=Facts(kind="search", matches=len(found))
        )


def _excerpts(found: Sequence[FoundPassage], words: Sequence[str], bound: int) -> list[str]:
    """Return as many excerpts as fit; each gets the same room, and what a short one leaves, the ones after it."""
    from jp.context.search import window

    left = bound - _NOTE
    shown: list[str] = []
    for position, one in enumerate(found):
        room = left // (len(found) - position) - _HEADING
        if room < _SMALLEST_TEXT and shown:
            break
        about = window(one.about, (), max(room, _SMALLEST_TEXT) // _ABOUT_SHARE)
        text = window(one.text, words, max(room - len(about.encode()), _SMALLEST_TEXT))
        where = f"recall {one.handle} offset {one.offset} of {one.size} bytes"
        shown.append(f"[turn {one.turn}; {about}; {where}]\n{text}")
        left -= len(shown[-1].encode()) + 2
    return shown
