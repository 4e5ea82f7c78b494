"""Old results of tools become short: what was done, how it ended, the lines that matter, and how to recall the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import msgspec
from msgspec.structs import replace

from jp.context.budget import estimate_message
from jp.context.digest_gate import Decision, Occasion, decide_digest
from jp.context.digest_kinds import Result, digest_of
from jp.context.duplicates import Overlaps
from jp.context.groups import GroupIndex, leading_systems, pending_group
from jp.context.handles import Artifacts
from jp.context.results import Delivered, delivered_results
from jp.context.tool_kinds import ToolKind, ToolRule, ToolRules, subject_of
from jp.context.types import Digested, Message, ReasoningBlock, StoredBlock, TextBlock, Transcript

FLOOR = 800
EXACT_ROUNDS = 3
VERSION = 1

_MOST_PERCENT = 50
_CHARACTERS_PER_TOKEN = 4
_NO_RULES: Mapping[str, ToolRule] = MappingProxyType({})

Rule = ToolKind | Literal["duplicate", "contained"]


class Digester(msgspec.Struct, frozen=True):
    """With what results are digested: where originals go, and what the host knows of its tools, by their names.

    `known` is that of a `jp.context.markers.Cutter`, where a summary may have to say of the same texts what they hold.
    """

    artifacts: Artifacts
    rules: ToolRules = _NO_RULES
    known: dict[str, str] = msgspec.field(default_factory=dict[str, str])


class DigestAction(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to the result at `position`. `sha256` is its content's, `handles` recall it; sizes are in bytes.

    `ordinal` is the number of its call among all calls of the transcript, from 0.
    """

    position: int
    ordinal: int
    call_id: str
    tool: str
    rule: Rule
    sha256: str
    original_bytes: int
    original_lines: int | None
    replacement_bytes: int
    handles: tuple[str, ...]


class Digests(msgspec.Struct, frozen=True, kw_only=True):
    """`messages` is the very object that came in where there was nothing to do. `reclaimed` are tokens."""

    messages: Transcript
    reclaimed: int = 0
    actions: tuple[DigestAction, ...] = ()


class GatedDigests(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided and, where it was to run, what came of it."""

    decision: Decision
    digests: Digests


def digest_in_time(
    messages: Transcript,
    index: GroupIndex,
    digester: Digester,
    occasion: Occasion,
    *,
    between: tuple[int, int],
) -> GatedDigests:
    """`digest_results`, if it is time for it; otherwise `messages` as they are, and nothing is kept."""
    most = sum(
        result.tokens for result in _replaceable(delivered_results(messages, index, digester.rules), index, between)
    )
    decision = decide_digest(occasion, most)
    if not decision.run:
        return GatedDigests(decision=decision, digests=Digests(messages=messages))
    pass_ = _Pass(messages, index, digester, between)
    decision = decide_digest(occasion, pass_.reclaimed)
    digests = pass_.applied() if decision.run else Digests(messages=messages)
    return GatedDigests(decision=decision, digests=digests)


def digest_results(messages: Transcript, index: GroupIndex, digester: Digester, *, between: tuple[int, int]) -> Digests:
    """`messages` with short stand-ins for the results between two positions, the second one excluded, all at once.

    The first is where the protected head ends, the second where the exact end starts: `exact_start`. What is pending,
    `verbatim`, digested already, short, or the error of the last round stays; so does what would not become half as
    long. Of results with the same content the newest is the one that the others refer to. Everything new is free of
    secrets; originals are kept.
    """
    return _Pass(messages, index, digester, between).applied()


def exact_start(messages: Sequence[Message], index: GroupIndex, tail_start: int, rounds: int = EXACT_ROUNDS) -> int:
    """Where what stays exact begins: with the tail that fits the budget, or earlier with the newest `rounds` rounds.

    A round that is pending is not counted, and exact as well.
    """
    starts = [group.start for group in index.groups if group.kind == "round" and not group.pending]
    pending = pending_group(index)
    newest = starts[-rounds] if 0 < rounds <= len(starts) else min(starts[:rounds], default=tail_start)
    start = min(newest, tail_start, len(messages) if pending is None else index.groups[pending].start)
    return max(start, leading_systems(messages))


class _Replacement(msgspec.Struct, frozen=True, kw_only=True):
    message: Message
    action: DigestAction
    saved: int


class _Pass:
    def __init__(self, messages: Transcript, index: GroupIndex, digester: Digester, between: tuple[int, int]) -> None:
        self._messages = messages
        self._artifacts = digester.artifacts
        self._known = digester.known
        self._results = delivered_results(messages, index, digester.rules)
        self._replaceable = {result.position for result in _replaceable(self._results, index, between)}
        self._overlaps = Overlaps(self._results, [result.position in self._replaceable for result in self._results])
        self._replaced: dict[int, _Replacement] = {}
        for number in range(len(self._results) - 1, -1, -1):
            self._consider(number)
        self.reclaimed = sum(replacement.saved for replacement in self._replaced.values())

    def applied(self) -> Digests:
        """The messages with their replacements, the originals of which are kept now."""
        if not self._replaced:
            return Digests(messages=self._messages)
        for position in sorted(self._replaced):
            content = self._messages[position].content
            texts = (content,) if isinstance(content, str) else _texts(content)
            for text in texts:
                self._artifacts.keep(text)
        rows = tuple(
            self._replaced[at].message if at in self._replaced else row for at, row in enumerate(self._messages)
        )
        actions = tuple(self._replaced[position].action for position in sorted(self._replaced))
        return Digests(messages=rows, reclaimed=self.reclaimed, actions=actions)

    def _consider(self, number: int) -> None:
        result = self._results[number]
        if result.position not in self._replaceable:
            return
        handles = tuple(dict.fromkeys(self._artifacts.handle(sha256) for sha256 in result.checksums))
        rule, text = self._text(number, handles)
        digested = Digested(sha256=result.sha256, original_bytes=result.size, rule=rule, version=VERSION)
        message = replace(result.message, content=text, meta=replace(result.message.meta, digested=digested))
        shorter = estimate_message(message)
        size = len(text.encode("utf-8", "surrogatepass"))
        if shorter * 100 > result.tokens * _MOST_PERCENT or size * 100 > result.size * _MOST_PERCENT:
            return
        action = DigestAction(
            position=result.position,
            ordinal=result.ordinal,
            call_id=result.call.id,
            tool=result.call.name,
            rule=rule,
            sha256=result.sha256,
            original_bytes=result.size,
            original_lines=result.lines,
            replacement_bytes=size,
            handles=handles,
        )
        self._replaced[result.position] = _Replacement(message=message, action=action, saved=result.tokens - shorter)

    def _text(self, number: int, handles: tuple[str, ...]) -> tuple[Rule, str]:
        result = self._results[number]
        rule, note = self._elsewhere(number)
        text = digest_of(
            Result(
                tool=result.call.name,
                kind=result.kind,
                size=result.size,
                lines=result.lines,
                handles=handles,
                facts=result.facts,
                is_error=result.message.is_error,
                subject=subject_of(result.call, result.rule, self._known),
                body=None if rule in {"duplicate", "contained"} else result.body,
                note=note,
            ),
            self._known,
        )
        return rule, text

    def _elsewhere(self, number: int) -> tuple[Rule, str]:
        """By which rule a result is replaced, and where its reader finds the content or what became of it."""
        result = self._results[number]
        stale = self._overlaps.stale_since(number)
        note = "" if stale is None else f"stale: changed later by {self._named(stale)}"
        elsewhere = self._overlaps.elsewhere(number)
        if elsewhere is None:
            return result.kind, note
        keeper = self._results[elsewhere.keeper]
        stands = "compacted too" if keeper.position in self._replaced else "which stands in full"
        relation = "same content as" if elsewhere.is_whole else "part of"
        note = f"{relation} the result of {self._named(elsewhere.keeper)}, {stands}"
        return "duplicate" if elsewhere.is_whole else "contained", note

    def _named(self, number: int) -> str:
        result = self._results[number]
        return f"call {result.ordinal} ({result.call.id})"


def _replaceable(results: Sequence[Delivered], index: GroupIndex, between: tuple[int, int]) -> list[Delivered]:
    start, end = between
    return [
        result
        for result in results
        if start <= result.position < end
        and _may_be_replaced(result)
        and not index.groups[index.group_of[result.position]].pending
    ]


def _may_be_replaced(result: Delivered) -> bool:
    meta = result.message.meta
    if meta.verbatim or meta.digested is not None or meta.kind == "summary":
        return False
    if result.message.is_error and result.is_last_round:
        return False
    if any(isinstance(block, ReasoningBlock) for block in result.blocks):
        return False
    length = len(result.body) if result.body is not None else result.tokens * _CHARACTERS_PER_TOKEN
    return length >= FLOOR


def _texts(content: Sequence[TextBlock | StoredBlock | ReasoningBlock]) -> list[str]:
    return [block.text for block in content if isinstance(block, TextBlock)]
