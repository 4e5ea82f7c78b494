"""What a summarizer is shown of the messages that leave: originals without secrets, in bounds, in as few parts as fit.

Summaries are not shown: what an earlier one knew is handed over typed. Reasoning is not shown either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

import msgspec

from jp.context.anchors import is_real_user
from jp.context.estimate import estimate_tokens
from jp.context.excerpt import cut_plainly, without_secrets
from jp.context.handles import Artifacts
from jp.context.spoken import speaks
from jp.context.types import Block, Message, ReasoningBlock, StoredBlock, TextBlock

SAID_LIMIT = 6_000
RESULT_LIMIT = 6_000
ARGUMENTS_LIMIT = 1_500

_SQUEEZES = (1, 3, 10, 30)
"""By what the limits are divided, one after the other, until everything fits."""

_OMITTED = "[{count} messages left out here]"
_HEAD_PERCENT = 45


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A text that the model is shown, whole: who or what says it, and how much of it may stand.

    `is_said`: the person's own words.
    """

    label: str
    text: str
    limit: int
    is_output: bool = False
    is_said: bool = False


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The pieces of messages, in their order, redacted. `spoke` is whether a person says any of it."""

    pieces: tuple[Piece, ...]
    spoke: bool


def read_source(messages: Sequence[Message], artifacts: Artifacts, known: dict[str, str] | None = None) -> Source:
    """All that `messages` say, do and get; in place of a digest stands what it was made of, where that was kept.

    `known` is what `jp.context.redaction.redacted` remembers.
    """
    pieces = _pieces(messages, artifacts, {} if known is None else known)
    return Source(pieces=tuple(pieces), spoke=any(map(speaks, messages)))


def parts_of(source: Source, room: int, most: int) -> tuple[str, ...]:
    """`source` as at most `most` texts of at most `room` tokens each.

    Long pieces are cut, ever shorter until everything fits; where even that is too much, what stands in between is
    left out, with a note.
    """
    texts: list[str] = []
    for squeeze in _SQUEEZES:
        if texts and not any(len(piece.text) > piece.limit // squeeze for piece in source.pieces):
            continue
        texts = [_shown(piece, squeeze) for piece in source.pieces]
        parts = _packed(texts, room)
        if len(parts) <= most:
            return parts
    return _packed(_ends(texts, room, most), room)[:most]


def _packed(texts: Sequence[str], room: int) -> tuple[str, ...]:
    parts: list[list[str]] = []
    tokens = 0
    for text in texts:
        cost = estimate_tokens(text) + 1
        if not parts or tokens + cost > room:
            parts.append([])
            tokens = 0
        parts[-1].append(text)
        tokens += cost
    return tuple("\n".join(part) for part in parts)


def _ends(texts: Sequence[str], room: int, most: int) -> list[str]:
    """The first and the last of `texts` that fill `most` parts of `room` tokens, a little more of the last."""
    costs = [estimate_tokens(text) + 1 for text in texts]
    whole = max(room - max(costs), 0) * most
    head, left = 0, whole * _HEAD_PERCENT // 100
    while head < len(texts) and costs[head] <= left:
        left -= costs[head]
        head += 1
    tail, left = len(texts), whole - whole * _HEAD_PERCENT // 100
    while tail > head and costs[tail - 1] <= left:
        tail -= 1
        left -= costs[tail]
    return [*texts[:head], _OMITTED.format(count=tail - head), *texts[tail:]]


def _shown(piece: Piece, squeeze: int) -> str:
    return f"{piece.label}\n{cut_plainly(piece.text, piece.limit // squeeze)}\n"


def _pieces(messages: Sequence[Message], artifacts: Artifacts, known: dict[str, str]) -> Iterator[Piece]:
    names: dict[str, str] = {}
    for position, message in enumerate(messages):
        if message.meta.kind == "summary":
            continue
        text = without_secrets(original_text(message, artifacts), known)
        if message.role == "tool":
            label = f"[{position}] result of {names.get(message.call_id, 'a tool')}{_ended(message)}:"
            yield Piece(label=label, text=text, limit=RESULT_LIMIT, is_output=True)
            for said in message.meta.said:
                label = f"[{position}] person, asked {without_secrets(said.question, known)!r}:"
                yield Piece(label=label, text=without_secrets(said.answer, known), limit=SAID_LIMIT, is_said=True)
            continue
        if text.strip():
            label, is_said = f"[{position}] {_speaker(message)}:", is_real_user(message)
            yield Piece(label=label, text=text, limit=SAID_LIMIT, is_said=is_said)
        for call in message.calls:
            names[call.id] = call.name
            arguments = without_secrets(call.arguments, known)
            yield Piece(label=f"[{position}] call of {call.name}:", text=arguments, limit=ARGUMENTS_LIMIT)


def original_text(message: Message, artifacts: Artifacts) -> str:
    """What `message` says; in place of a digest, what that was made of, where it was kept."""
    digested = message.meta.digested
    if digested is not None:
        original = artifacts.recall(artifacts.handle(digested.sha256))
        if original is not None:
            return original
    if isinstance(message.content, str):
        return message.content
    return "\n\n".join(filter(None, (_text_of(block, artifacts) for block in message.content)))


def _text_of(block: Block, artifacts: Artifacts) -> str:
    match block:
        case TextBlock(text=text):
            return text
        case ReasoningBlock():
            return ""
        case StoredBlock(sha256=sha256, chars=chars):
            handle = artifacts.handle(sha256)
            found = artifacts.recall(handle) if chars is not None else None
            kind = block.mime_type or "content"
            return f"[{kind}, {block.size} bytes, handle {handle}]" if found is None else found
        case _:
            assert_never(block)


def _speaker(message: Message) -> str:
    if message.meta.kind == "synthetic" or message.meta.hidden:
        return "host"
    return {"user": "person", "assistant": "model", "system": "host"}.get(message.role, "host")


def _ended(message: Message) -> str:
    facts = message.meta.facts
    code = facts.exit_code if facts is not None else None
    if code is not None:
        return f" (exit {code})"
    return " (error)" if message.is_error else ""
