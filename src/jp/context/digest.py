"""Old tool results as digests: which, when, and duplicates among them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import msgspec
from msgspec.structs import replace

from jp.context.budget import Budget, estimate_message, size_of, threshold
from jp.context.digest_lines import CHANGING, Result, ToolKind, ToolRule, ToolRules, digest_of, kind_of, subject_of
from jp.context.groups import GroupIndex, leading_systems, pending_group
from jp.context.markers import Artifacts, checksum_of
from jp.context.types import Block, Call, Digested, Facts, Message, ReasoningBlock, StoredBlock, TextBlock, Transcript

_TIER_PERCENT = 75
_LEAST_TOKENS = 4_096
_LEAST_PERCENT = 10

Verdict = Literal["over_threshold", "cold_cache", "below_threshold", "not_rearmed", "too_little"]
"""Why it runs, or does not. `not_rearmed`: it has grown too little since the last time. `too_little`: there is too
little to gain.
"""


class Occasion(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens: `used` is what the next request would take, measured or estimated.

    `is_cold` says that the provider's cache has expired. `rearm_at` is what the last `Decision` that ran came with; a
    host keeps it with the conversation, so that it survives a restart.
    """

    budget: Budget
    used: int
    is_cold: bool = False
    rearm_at: int = 0


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """`rearm_at`: so many tokens must be used before it runs again; what it was where it does not run now."""

    run: bool
    verdict: Verdict
    rearm_at: int


def digest_threshold(budget: Budget) -> int:
    """From how many tokens on old results are digested: before anything has to be summarised."""
    return threshold(budget) * _TIER_PERCENT // 100


def least_reclaimed(occasion: Occasion) -> int:
    """How many tokens a digest has to free: a tenth of the request and at least 4,096, in a small window fewer."""
    least = min(_LEAST_TOKENS, max(occasion.budget.window, 0) * _LEAST_PERCENT // 100)
    return max(least, occasion.used * _LEAST_PERCENT // 100, 1)


def decide_digest(occasion: Occasion, reclaimable: int) -> Decision:
    """Whether to digest now, where that would free `reclaimable` tokens.

    With a warm cache only from the threshold on, and after a digest only once the request has grown by what that freed.
    """
    if not occasion.is_cold:
        if occasion.used < digest_threshold(occasion.budget):
            return Decision(run=False, verdict="below_threshold", rearm_at=occasion.rearm_at)
        if occasion.used < occasion.rearm_at:
            return Decision(run=False, verdict="not_rearmed", rearm_at=occasion.rearm_at)
    if reclaimable < least_reclaimed(occasion):
        return Decision(run=False, verdict="too_little", rearm_at=occasion.rearm_at)
    verdict = "cold_cache" if occasion.is_cold else "over_threshold"
    return Decision(run=True, verdict=verdict, rearm_at=occasion.used)


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


_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_NEWEST_READS = 8
"""So many reads of one path are looked through for a range."""


class Elsewhere(msgspec.Struct, frozen=True):
    """Where the content of a result stands as well: in the result number `keeper`, as it is or as a part of it."""

    keeper: int
    is_whole: bool


class Overlaps:
    """Finds, for results in the order of their transcript, what else has their content."""

    def __init__(self, results: Sequence[Delivered], replaceable: Sequence[bool]) -> None:
        self._results = results
        self._newest: dict[str, int] = {}
        self._reads: dict[str, list[int]] = {}
        self._changes: dict[str, list[int]] = {}
        for number, result in enumerate(results):
            if result.message.meta.digested is None:
                self._newest[result.sha256] = number
            path = result.facts.path
            if path and result.kind == "read" and not replaceable[number] and result.body is not None:
                self._reads.setdefault(path, []).append(number)
            if path and result.kind in CHANGING and not result.message.is_error:
                self._changes.setdefault(path, []).append(number)

    def elsewhere(self, number: int) -> Elsewhere | None:
        """The newest result with the same content as this one, or a read that stays and has it as a part."""
        result = self._results[number]
        newest = self._newest.get(result.sha256, number)
        if newest > number:
            return Elsewhere(newest, is_whole=True)
        if result.kind != "read" or result.body is None or not result.facts.path:
            return None
        for other in reversed(self._reads.get(result.facts.path, [])[-_NEWEST_READS:]):
            if other > number and _contains(self._results[other], result):
                return Elsewhere(other, is_whole=False)
        return None

    def stale_since(self, number: int) -> int | None:
        """The first later result of a call that changed the path that this one read."""
        result = self._results[number]
        if result.kind != "read" or not result.facts.path:
            return None
        changes = self._changes.get(result.facts.path, [])
        at = bisect_right(changes, number)
        return changes[at] if at < len(changes) else None


def _contains(outer: Delivered, inner: Delivered) -> bool:
    """Whether a read of more lines has those of another, word for word: what changed in between does not."""
    wide, narrow = _RANGE.fullmatch(outer.facts.lines), _RANGE.fullmatch(inner.facts.lines)
    if narrow is None or (outer.facts.lines and wide is None):
        return False
    if wide is not None and not int(wide[1]) <= int(narrow[1]) <= int(narrow[2]) <= int(wide[2]):
        return False
    return (inner.body or "").rstrip("\n") in (outer.body or "")


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
