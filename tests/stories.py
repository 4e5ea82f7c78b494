"""What a response says, in a form in which several readers of it can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from jp.conversation.entries import JsonObject, Usage
from jp.provider.base import (
    BlockEnd,
    DataDelta,
    Finished,
    InputReport,
    KeepAlive,
    Part,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
)


class Told(msgspec.Struct):
    """One block: `text` is what was said, thought, or given as arguments; `opaque` is a signature or redacted data."""

    kind: str
    text: str = ""
    opaque: str = ""
    call_id: str = ""
    name: str = ""

    @property
    def arguments(self) -> JsonObject:
        return msgspec.json.decode(self.text, type=JsonObject)


class Story(msgspec.Struct):
    """Everything that was told, in order."""

    blocks: list[Told] = []
    finish: str = ""
    usage: Usage = Usage()


_KINDS: dict[type[Part], str] = {
    TextDelta: "message",
    DataDelta: "data",
    ReasoningDelta: "reasoning",
    ToolArgumentsDelta: "tool_call",
}


def _opaque(metadata: Mapping[str, Any] | None) -> str:
    known = metadata or {}
    return str(known.get("signature", known.get("redacted", "")))


def told(parts: Iterable[Part]) -> Story:
    """What parts tell. Every block has to be ended, and nothing may follow `Finished`."""
    teller = _Teller()
    for part in parts:
        assert not teller.story.finish
        teller.hear(part)
    assert teller.ended == set(teller.blocks)
    teller.story.blocks = [teller.blocks[index] for index in sorted(teller.blocks)]
    return teller.story


class _Teller:
    def __init__(self) -> None:
        self.story = Story()
        self.blocks: dict[int, Told] = {}
        self.ended: set[int] = set()

    def hear(self, part: Part) -> None:
        match part:
            case TextDelta() | DataDelta() | ReasoningDelta() | ToolArgumentsDelta():
                block = self.blocks.setdefault(part.index, Told(_KINDS[type(part)]))
                assert block.kind == _KINDS[type(part)]
                block.text += part.text
            case ToolCallStart(index=index, call_id=call_id, name=name):
                self.blocks[index] = Told("tool_call", call_id=call_id, name=name)
            case BlockEnd(index=index, metadata=metadata):
                self.blocks[index].opaque = _opaque(metadata)
                self.ended.add(index)
            case UsageReport(usage=usage):
                self.story.usage = usage
            case Finished(reason=reason):
                self.story.finish = reason
            case KeepAlive() | InputReport():
                pass
