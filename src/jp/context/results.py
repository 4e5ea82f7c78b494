"""The results of a transcript with what is known of them: their calls, their content, what their tools recorded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec

from jp.context.budget import estimate_message, size_of
from jp.context.groups import GroupIndex
from jp.context.handles import checksum_of
from jp.context.tool_kinds import ToolKind, ToolRule, ToolRules, kind_of
from jp.context.types import Block, Call, Facts, Message, StoredBlock, TextBlock

_NO_RULE = ToolRule()


class Delivered(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The result at `position`, which answers `call`; `ordinal` is the number of that among all calls, from 0."""

    position: int
    ordinal: int
    call: Call
    message: Message
    kind: ToolKind
    rule: ToolRule
    is_last_round: bool

    @property
    def facts(self) -> Facts:
        """What the tool recorded."""
        return self.message.meta.facts or Facts()

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The content, as blocks."""
        content = self.message.content
        return (TextBlock(text=content),) if isinstance(content, str) else content

    @cached_property
    def body(self) -> str | None:
        """All of its text, None where not all of it is at hand."""
        texts = [block.text for block in self.blocks if isinstance(block, TextBlock)]
        return "".join(texts) if len(texts) == len(self.blocks) else None

    @cached_property
    def checksums(self) -> tuple[str, ...]:
        """The sha256 of each of its blocks."""
        return tuple(
            block.sha256 if isinstance(block, StoredBlock) else checksum_of(block.text) for block in self.blocks
        )

    @cached_property
    def sha256(self) -> str:
        """What tells its content from any other; of a single text or stored content, its checksum."""
        return self.checksums[0] if len(self.checksums) == 1 else checksum_of(" ".join(self.checksums))

    @cached_property
    def size(self) -> int:
        """Bytes of its content."""
        return size_of(self.message) - len(self.message.call_id.encode("utf-8", "surrogatepass"))

    @cached_property
    def tokens(self) -> int:
        """What it costs now."""
        return estimate_message(self.message)

    @property
    def lines(self) -> int | None:
        """How many lines its text has; None where that is not known of all of it."""
        counts = [_lines(block) for block in self.blocks]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None


def delivered_results(messages: Sequence[Message], index: GroupIndex, rules: ToolRules) -> list[Delivered]:
    """All results that answer a call of their round, in order."""
    found: list[Delivered] = []
    ordinal = 0
    last_round = max((number for number, group in enumerate(index.groups) if group.kind == "round"), default=-1)
    for number, group in enumerate(index.groups):
        if group.kind != "round":
            continue
        calls = {call.id: (ordinal + at, call) for at, call in enumerate(messages[group.start].calls)}
        ordinal += len(messages[group.start].calls)
        for position in range(group.start + 1, group.end):
            message = messages[position]
            if message.call_id not in calls:
                continue
            at, call = calls[message.call_id]
            rule = rules.get(call.name, _NO_RULE)
            found.append(
                Delivered(
                    position=position,
                    ordinal=at,
                    call=call,
                    message=message,
                    kind=kind_of(message.meta.facts, rule),
                    rule=rule,
                    is_last_round=number == last_round,
                )
            )
    return found


def _lines(block: Block) -> int | None:
    if isinstance(block, StoredBlock):
        return block.lines
    return block.text.count("\n") + (not block.text.endswith("\n") and bool(block.text))
