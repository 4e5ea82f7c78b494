"""The end of a log, read without the rest."""

from __future__ import annotations

from pathlib import Path

from jp.conversation.codec import MalformedEntryError, decode
from jp.conversation.entries import ChatRequest
from jp.workspace.files import open_to_read
from jp.workspace.layout import EVENTS

_TAIL_BYTES = 64 * 1024
_MARK = b'"chat_request"'


def last_request(directory: Path) -> str:
    """What was asked last in a conversation; empty where that does not stand near the end of its log."""
    try:
        with open(open_to_read(directory / EVENTS), "rb") as file:  # noqa: PTH123 - a descriptor
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            tail = file.read(_TAIL_BYTES)
    except OSError:
        return ""
    for line in reversed(tail.split(b"\n")):
        if _MARK not in line:
            continue
        try:
            entry = decode(line)
        except MalformedEntryError:
            continue
        if isinstance(entry, ChatRequest):
            return entry.content
    return ""
