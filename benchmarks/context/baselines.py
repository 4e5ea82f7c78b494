"""Six simple ways to make room, as agents and providers have them. None of them can recall anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from context.rounds import align_back, index_groups, leading_systems
from context.schemes import trimmed
from jp.context.budget import estimate_message, estimate_messages
from jp.context.types import Message, Meta, Transcript, texts_of

MASKED = "[old output omitted: {lines} lines]"
CLEARED = "[old tool result content cleared]"
_EXIT = re.compile(r"(?i)exit(?:ed with)? code:? (-?[0-9]{1,3})")
_WRONG = re.compile(r"(?i)\b(?:error|fail(?:ed|ure)?|fatal|panic|exception)\b")
STUB = "[{count} earlier messages were left out]"


class Forgetful:
    """What every scheme without a store has in common."""

    def recallable(self, messages: Transcript) -> Iterator[str]:
        """Nothing."""
        return iter(())


class Truncation(Forgetful):
    """The newest messages that fit; system messages stay."""

    def compact(self, messages: Transcript, target: int) -> Transcript:
        """`messages` without the oldest."""
        return trimmed(messages, target)


class Masking(Forgetful):
    """The results of all but the newest ten rounds become a placeholder that says how long they were."""

    keep = 10

    def compact(self, messages: Transcript, target: int) -> Transcript:
        """`messages` with masked results, without the oldest where that is not enough."""
        return trimmed(self.applied(messages), target)

    def applied(self, messages: Transcript) -> Transcript:
        """As an agent does before each request, whatever there is room for."""
        rounds = [group for group in index_groups(messages).groups if group.kind == "round"]
        start = rounds[-self.keep].start if len(rounds) >= self.keep else 0
        return tuple(
            cleared(row, MASKED.format(lines=sum(text.count("\n") + 1 for text in texts_of(row))))
            if row.role == "tool" and at < start
            else row
            for at, row in enumerate(messages)
        )


class Placeholders(Forgetful):
    """All but the newest five results become one fixed placeholder."""

    keep = 5

    def compact(self, messages: Transcript, target: int) -> Transcript:
        """`messages` with placeholders, without the oldest where that is not enough."""
        return trimmed(self.applied(messages), target)

    def applied(self, messages: Transcript) -> Transcript:
        """As an agent does before each request, whatever there is room for."""
        results = [at for at, row in enumerate(messages) if row.role == "tool"]
        old = set(results[: max(len(results) - self.keep, 0)])
        return tuple(cleared(row, CLEARED) if at in old else row for at, row in enumerate(messages))


class ClearOldest(Forgetful):
    """The oldest results are cleared until all fits, but for the newest three."""

    keep = 3

    def compact(self, messages: Transcript, target: int) -> Transcript:
        """`messages` with some results cleared, without the oldest messages where that is not enough."""
        return trimmed(_replaced(messages, target, self.keep, lambda _: CLEARED), target)


class KeepLast(Forgetful):
    """The newest twenty messages, and a message that says how many there were before them."""

    keep = 20

    def compact(self, messages: Transcript, target: int) -> Transcript:
        """`messages` without the oldest; fewer than twenty where they do not fit."""
        systems = leading_systems(messages)
        earlier = [row for row in messages[systems:] if row.meta.kind == "summary"]
        rest = tuple(row for row in messages[systems:] if row.meta.kind != "summary")
        if len(rest) <= self.keep:
            return trimmed(messages, target)
        start = align_back(index_groups(rest), len(rest) - self.keep)
        gone = start + sum(int("".join(texts_of(row)).split()[0].lstrip("[")) for row in earlier)
        stub = Message(role="user", content=STUB.format(count=gone), meta=Meta(kind="summary", hidden=True))
        return trimmed((*messages[:systems], stub, *rest[start:]), target)


def cleared(message: Message, placeholder: str) -> Message:
    """`message` with `placeholder` for its content, if that is shorter."""
    shorter = replace(message, content=placeholder)
    return shorter if estimate_message(shorter) < estimate_message(message) else message


class MaskedOutcomes(Forgetful):
    """The oldest results become their exit code and their lines about errors until all fits, but the newest."""

    keep = 1

    def compact(self, messages: Transcript, target: int) -> Transcript:
        """`messages` with masked results, without the oldest where that is not enough."""
        return trimmed(_replaced(messages, target, self.keep, _outcome), target)


def _replaced(messages: Transcript, target: int, keep: int, placeholder: Callable[[Message], str]) -> Transcript:
    """`messages` with `placeholder` for the oldest results but the newest `keep`, until `target` is reached."""
    results = [at for at, row in enumerate(messages) if row.role == "tool"]
    rows = list(messages)
    tokens = estimate_messages(rows)
    for at in results[: max(len(results) - keep, 0)]:
        if tokens <= target:
            break
        row = cleared(rows[at], placeholder(rows[at]))
        tokens += estimate_message(row) - estimate_message(rows[at])
        rows[at] = row
    return tuple(rows)


def _outcome(row: Message) -> str:
    text = "".join(texts_of(row))
    code = _EXIT.search(text)
    wrong = [line[:200] for line in text.splitlines() if _WRONG.search(line)][:10]
    return "\n".join((f"[old output omitted{f': exit code {code[1]}' if code else ''}]", *wrong))
