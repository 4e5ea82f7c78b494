"""Decoder of the chunks of `streamGenerateContent`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from jp.conversation.entries import JsonObject, Usage
from jp.provider.base import (
    BlockEnd,
    DataDelta,
    Finished,
    Part,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    UsageReport,
)
from jp.provider.errors import ErrorKind, ProviderError
from jp.provider.google.request import PROVIDER
from jp.provider.parameters import stream_error
from jp.provider.reader import CallStarts, decode_or_none, text_of, unreadable_error, usage_from_counts

_LENGTH = frozenset({"MAX_TOKENS", "CONTINUATION"})
_REFUSED = frozenset({
    *("SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "ESCALATION"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_OTHER", "IMAGE_RECITATION", "NO_IMAGE", "MODEL_ARMOR"),
    "PUP_LIMITED_DISABLED",
})
_FAILED: dict[str, ErrorKind] = {
    "UNEXPECTED_TOOL_CALL": "transient",
    "MALFORMED_FUNCTION_CALL": "transient",
    "MALFORMED_RESPONSE": "transient",
    "MISSING_THOUGHT_SIGNATURE": "rejected_reasoning",
}
"""Finish reasons of a failed answer. The first one is caused by tools of earlier turns; a retry usually helps."""

_NO_REASONS = frozenset({"FINISH_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED"})


class _Call(msgspec.Struct):
    name: str = ""
    id: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _Call | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    index: int | None = None
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None


class _Chunk(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: msgspec.Raw = msgspec.Raw(b"null")
    response_id: str | None = None
    error: JsonObject | str | None = None


_chunks = msgspec.json.Decoder(_Chunk)
_usages = msgspec.json.Decoder(_Usage | None)
_values = msgspec.json.Decoder(object)

_Kind = Literal["text", "thought"]


class _OpenBlock:
    """A run of parts of one kind."""

    def __init__(self, kind: _Kind, index: int) -> None:
        self.kind: _Kind = kind
        self.index = index
        self.signature: str | None = None


class GoogleDecoder:
    """Decoder of one response.

    `model` is the requested model, which signatures are stored with. `is_structured` marks text as data.
    """

    def __init__(self, *, model: str, provider: str = PROVIDER, is_structured: bool = False) -> None:
        self._provider = provider
        self._model = model
        self._is_structured = is_structured
        self._block: _OpenBlock | None = None
        self._count = 0
        self._calls = CallStarts(provider)
        self._response_id = ""
        self._reason = ""
        self._explanation = ""
        self._is_blocked = False

    def feed(self, event: str, data: bytes) -> Sequence[Part]:
        """Return the parts of one chunk. Unknown kinds have none.

        Raises:
            ProviderError: the chunk reports an error or is malformed.
        """
        if data.strip() == b"[DONE]":
            return []
        chunk = decode_or_none(_chunks, data)
        if chunk is None:
            raise self._odd(data)
        if chunk.error is not None:
            raise stream_error(data, self._provider, self._model)
        self._response_id = chunk.response_id or self._response_id
        parts: list[Part] = []
        for candidate in chunk.candidates or ():
            if not candidate.index:
                self._take_candidate(candidate, parts)
        self._take_feedback(chunk.prompt_feedback)
        if (usage := self._usage(chunk.usage_metadata)) is not None:
            parts.append(UsageReport(usage))
        return parts

    def close(self) -> Sequence[Part]:
        """Return the remaining parts, and `Finished` if the API gave a finish reason: nothing else marks the end.

        Raises:
            ProviderError: the answer ended because the model failed.
        """
        if not self._reason:
            return ()
        if not self._is_blocked and self._reason in _FAILED:
            words = self._reason.lower().replace("_", " ")
            explained = f": {self._explanation}" if self._explanation else ""
            message = f"{self._provider} ended the answer with a {words}{explained}"
            raise ProviderError(message, kind=_FAILED[self._reason])
        parts: list[Part] = []
        self._end_block(parts)
        return [*parts, self._finished()]

    def _finished(self) -> Finished:
        said = f"{self._reason}: {self._explanation}" if self._explanation else self._reason
        if self._is_blocked or self._reason in _REFUSED:
            return Finished("refused", said)
        if self._reason in _LENGTH:
            return Finished("length")
        return Finished("tools" if self._calls else "stop", "" if self._reason == "STOP" else said)

    def _take_candidate(self, candidate: _Candidate, parts: list[Part]) -> None:
        if candidate.content is not None:
            for part in candidate.content.parts or ():
                self._take_part(part, parts)
        if candidate.finish_reason and candidate.finish_reason not in _NO_REASONS:
            self._reason = candidate.finish_reason
            self._explanation = candidate.finish_message or ""

    def _take_feedback(self, feedback: _Feedback | None) -> None:
        if feedback is None or not feedback.block_reason or feedback.block_reason in _NO_REASONS:
            return
        self._is_blocked = True
        self._reason = feedback.block_reason
        self._explanation = feedback.block_reason_message or ""

    def _take_part(self, part: _Part, parts: list[Part]) -> None:
        if part.function_call is not None:
            self._end_block(parts)
            self._take_call(part.function_call, part.thought_signature, parts)
        elif part.text:
            block = self._block_for("thought" if part.thought else "text", part.thought_signature, parts)
            parts.append(self._delta(block, part.text))
            block.signature = part.thought_signature or block.signature
        elif part.thought_signature:
            self._take_signature(part.thought_signature, "thought" if part.thought else "text", parts)

    def _block_for(self, kind: _Kind, signature: str | None, parts: list[Part]) -> _OpenBlock:
        """Return the open block if it continues, else a new one; a block has one signature."""
        block = self._block
        if block is None or block.kind != kind or (signature and block.signature):
            self._end_block(parts)
            self._block = block = _OpenBlock(kind, self._next())
        return block

    def _delta(self, block: _OpenBlock, text: str) -> Part:
        if block.kind == "thought":
            return ReasoningDelta(block.index, text)
        return DataDelta(block.index, text) if self._is_structured else TextDelta(block.index, text)

    def _take_signature(self, signature: str, kind: _Kind, parts: list[Part]) -> None:
        """Add a part with only a signature: it ends the block of its kind, or is a block of its own."""
        block = self._block
        if block is not None and block.kind == kind and not block.signature:
            block.signature = signature
            return
        self._end_block(parts)
        index = self._next()
        of_text = {"part": "text"} if kind == "text" else {}
        parts += [ReasoningDelta(index, ""), BlockEnd(index, {**self._metadata(signature), **of_text})]

    def _take_call(self, call: _Call, signature: str | None, parts: list[Part]) -> None:
        index = self._next()
        arguments = text_of(call.args)
        made = f"call_{self._response_id}_{index}" if self._response_id else ""
        parts += [
            self._calls.start(index, given=call.id or made, name=call.name),
            ToolArgumentsDelta(index, "{}" if arguments == "null" else arguments),
            BlockEnd(index, self._metadata(signature)),
        ]

    def _end_block(self, parts: list[Part]) -> None:
        block, self._block = self._block, None
        if block is not None:
            # A thought is sent back to the model that made it, signed or not.
            is_kept = block.kind == "thought" or block.signature is not None
            parts.append(BlockEnd(block.index, self._metadata(block.signature) if is_kept else None))

    def _next(self) -> int:
        self._count += 1
        return self._count - 1

    def _metadata(self, signature: str | None) -> JsonObject:
        made: JsonObject = {"provider": self._provider, "model": self._model}
        return made if signature is None else {**made, "signature": signature}

    def _usage(self, raw: msgspec.Raw) -> Usage | None:
        """Return the tokens so far: each report is a total, which replaces the one before it."""
        known = decode_or_none(_usages, raw)
        if known is None:
            return None
        thoughts = known.thoughts_token_count or 0
        return usage_from_counts(
            prompt=(known.prompt_token_count or 0) + (known.tool_use_prompt_token_count or 0),
            output=(known.candidates_token_count or 0) + thoughts,
            cache_read=known.cached_content_token_count,
            reasoning=thoughts,
        )

    def _odd(self, data: bytes) -> ProviderError:
        """Return the error for a malformed chunk: the one that it reports, or that part of the answer is lost."""
        whole = decode_or_none(_values, data)
        if (isinstance(whole, dict) and "error" in whole) or (isinstance(whole, list) and whole):
            return stream_error(data, self._provider, self._model)
        return unreadable_error(self._provider)
