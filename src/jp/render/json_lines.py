"""Renderer for scripts: every entry as one line of JSON on stdout, as soon as it is recorded; nothing else.

A line is `{"schema":1, …}` and then the entry's own fields, with content inline (bytes as base64). The JSON Schema that
a `chat_request` may carry is called `output_schema` here: `schema` is the version of the line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from jp.conversation.entries import AnyEntry, Header, encode
from jp.render.channel import Channel
from jp.render.sanitize import sanitize
from jp.render.status import StatusRenderer
from jp.turn.ports import ToolNews

SCHEMA = 1
"""The version of a line. Fields are only added within a version."""

_CONTROL = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def entry_line(entry: AnyEntry, *, conversation: str = "") -> str:
    """Return the line of `entry`, with its line feed; control characters are escaped, which JSON reads alike.

    `conversation` is the id to put into the line, if not empty.
    """
    head: dict[str, Any] = {"schema": SCHEMA, **({"conversation": conversation} if conversation else {})}
    encoded = encode(entry).decode().strip()
    inner = encoded[1:].lstrip()
    if '"schema"' in encoded or inner == "}":
        fields: dict[str, Any] = msgspec.json.decode(encoded)
        if "schema" in fields:
            fields["output_schema"] = fields.pop("schema")
        line = msgspec.json.encode({**head, **fields}).decode()
    else:
        line = f"{msgspec.json.encode(head).decode()[:-1]},{inner}"
    return f"{escape_controls(line)}\n"


def escape_controls(json: str) -> str:
    """Return `json` with control characters escaped; it decodes to the same value."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", json)


class JsonRenderer:
    """Writes entries to `out`; notices go to `aside`, as JSON too."""

    def __init__(self, out: Channel, aside: StatusRenderer) -> None:
        self._out = out
        self._aside = aside
        out.shares_sink(aside.channel)

    def begin(self, conversation: str, entries: Sequence[AnyEntry]) -> None:
        """Write what was written before the turn; the header says the id of its conversation."""
        for entry in entries:
            line = entry_line(entry, conversation=conversation if isinstance(entry, Header) else "")
            self._out.write_bytes(line.encode())

    def text(self, text: str) -> None:
        """Show nothing: the text comes as an entry."""

    def reasoning(self, text: str) -> None:
        """Show nothing: the reasoning comes as an entry."""

    def block_end(self) -> None:
        """Show nothing."""

    def tool(self, event: ToolNews) -> None:
        """Show nothing: calls and results come as entries."""

    def notice(self, text: str) -> None:
        """Write a notice to stderr, in the form that commands give theirs."""
        self._aside.say(escape_controls(msgspec.json.encode({"schema": SCHEMA, "note": sanitize(text)}).decode()))

    def entry(self, entry: AnyEntry) -> None:
        """Write an entry."""
        self._aside.restart()
        self._out.write_bytes(entry_line(entry).encode())

    def set_paused(self, *, is_paused: bool) -> None:
        """Leave the terminal to a question, or take it back."""
        self._aside.set_paused(is_paused=is_paused)

    def close(self) -> None:
        """Show nothing more."""
        self._aside.close()

    async def animate(self) -> None:
        """Say for how long nothing came, until cancelled."""
        await self._aside.animate()
