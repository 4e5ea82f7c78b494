"""Parts: what a provider's stream is made of, whatever the vendor."""

from __future__ import annotations

from typing import Literal

import msgspec

from jp.conversation.entries import InputChange, JsonObject, Usage


class TextDelta(msgspec.Struct, frozen=True):
    """More of the message in block `index`."""

    index: int
    text: str


class ReasoningDelta(msgspec.Struct, frozen=True):
    """More of the reasoning in block `index`; empty text opens a block that has metadata only."""

    index: int
    text: str


class DataDelta(msgspec.Struct, frozen=True):
    """More of the structured output's JSON in block `index`."""

    index: int
    text: str


class ToolCallStart(msgspec.Struct, frozen=True):
    """A call begins in block `index`. `call_id` is never empty: an adapter makes one where the provider gives none."""

    index: int
    call_id: str
    name: str


class ToolArgumentsDelta(msgspec.Struct, frozen=True):
    """More of the JSON text of a call's arguments."""

    index: int
    text: str


class BlockEnd(msgspec.Struct, frozen=True):
    """Block `index` is complete. `metadata` is opaque: signatures, item ids, encrypted reasoning."""

    index: int
    metadata: JsonObject | None = None


class KeepAlive(msgspec.Struct, frozen=True):
    """The provider is there but has nothing to say."""


class UsageReport(msgspec.Struct, frozen=True):
    """Tokens so far; a later report replaces an earlier one."""

    usage: Usage


class InputReport(msgspec.Struct, frozen=True):
    """Changes that the provider made to the request; a later report replaces an earlier one."""

    changes: tuple[InputChange, ...]


class Finished(msgspec.Struct, frozen=True):
    """The response is complete. `detail` explains a refusal.

    `is_final` says of an answer that reached its length that the provider does not want to be asked to go on with it.
    """

    reason: Literal["stop", "tools", "length", "refused"]
    detail: str = ""
    is_final: bool = False


Part = (
    TextDelta
    | ReasoningDelta
    | DataDelta
    | ToolCallStart
    | ToolArgumentsDelta
    | BlockEnd
    | KeepAlive
    | UsageReport
    | InputReport
    | Finished
)
