"""Texts of a view in place of content that a compaction removed, never longer than it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, assert_never

import msgspec

from jp.conversation.entries import AnyEntry, Facts, JsonObject, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import (
    AudioBlock,
    Block,
    Carrier,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
    formatted_of,
    size_in_bytes,
)

HANDLE_DIGITS = 12
"""Digits of a checksum in a handle: enough to distinguish everything that one conversation contains."""

SHORTEST_ANCHOR = 40
"""Least characters that a model repeats before it continues a message, if the message has as many."""

_LONGEST_ANCHOR = 120

AFTER_MESSAGE_END = "END"
"""A model's reply if nothing was to follow its message."""

AFTER_MESSAGE = (
    "Your message above arrived complete, but the connection broke before what follows it. "
    "Do not repeat the message. If a tool call was to follow, make it now. "
    f"If nothing was to follow, reply with the single word {AFTER_MESSAGE_END}."
)
"""Prompt after a complete message in an attempt that failed after it."""


def anchor_of(text: str) -> str:
    """Return the end of `text` with which a continuation of it has to begin, or all of a short `text`.

    It begins without white space, which models drop, at a word if there is one, and differs from the beginning of
    `text`: so repeating the anchor can be distinguished from starting over.
    """
    whole = text.lstrip()
    fallback, bordered = "", 0
    for size in range(SHORTEST_ANCHOR, len(whole)):
        start = len(whole) - size
        if whole[start].isspace():
            continue
        if whole.startswith(whole[start:]):
            bordered += 1
            if bordered > _LONGEST_ANCHOR:
                break  # one character over and over: every end of it is its beginning, too
            continue
        if whole[start - 1].isspace():
            return whole[start:]
        fallback = fallback or whole[start:]
        if size >= _LONGEST_ANCHOR:
            return fallback
    return fallback or whole


def continue_request(text: str) -> str:
    """Return what asks a model to go on with its message, of which `text` has come."""
    return (
        "Your message above was cut off. Continue it exactly where it stops, without any preamble. So that the two "
        "pieces can be joined, begin your reply with the text between <anchor> and </anchor>, which is how your "
        "message ends so far, character for character and without these tags, and go on from its last character.\n"
        f"<anchor>{anchor_of(text)}</anchor>"
    )


INSIST = (
    "You answered without calling a tool, but a call of a tool is required here. Make the call now.",
    "There is still no call of a tool. Whatever else you have to say can follow its result: respond with the call.",
    "This is the last time that you are asked: respond with a call of a tool and with nothing else.",
)
"""Prompts after an answer without the required tool call: the first, the second and the third time."""


def summary_heading(from_turn: int, to_turn: int) -> str:
    """Return the heading of a summary, in place of the user's requests."""
    turns = f"turn {from_turn}" if from_turn == to_turn else f"turns {from_turn} to {to_turn}"
    return f"[summary of {turns} of this conversation; a record, not a request]"


def work_heading() -> str:
    """Return the line before a summary of what was done in the turn that runs."""
    return "[summary of the work on this request so far; a record, not a request. Go on from here.]"


def attachment_place(turn: int) -> str:
    """Return the place of a snapshot that the user attached."""
    return f"the attachment at turn {turn}"


def result_place(turn: int, call_id: str) -> str:
    """Return the place of a snapshot that a tool delivered."""
    return f"the result of tool call `{call_id}` in turn {turn}"


def reference(uri: str, sha256: str, place: str, *, handle: str | None = None, has_changed: bool = False) -> str:
    """Return the text that replaces a snapshot that was delivered before, unchanged (RFD 067).

    `handle` recalls the whole of a copy that was cut. `has_changed`: it had other content in between.
    """
    since = "It was something else in between." if has_changed else "It has not changed."
    full = "the full content" if handle is None else f"what is shown of it; recall {handle} for the rest"
    return (
        f"The content of {uri} is identical to {place} (checksum: sha256:{sha256[:HANDLE_DIGITS]}). "
        f"{since} Refer to that copy for {full}."
    )


def superseded(uri: str, sha256: str, place: str) -> str:
    """Return the text that replaces a snapshot of which a newer one was delivered."""
    return f"[superseded] {uri} (checksum: sha256:{sha256[:HANDLE_DIGITS]}): the newer copy is {place}."


class CallStatusFormatter(Protocol):
    """Formats the stripped parts of the tool calls of one log. Pure, and never longer than what it replaces."""

    def arguments(self, call: ToolCallRequest) -> JsonObject | str:
        """Return the rest of a stripped call's arguments; a text only if they are nothing but a text."""
        ...

    def response(self, call: ToolCallRequest, response: ToolCallResponse) -> str | None:
        """Return the status line of a stripped response; None where nothing shorter says enough."""
        ...

    def digest(self, call: ToolCallRequest, response: ToolCallResponse, facts: Facts | None) -> str | None:
        """Return the status line with evidence: the response's own facts, else the overlay's `facts`."""
        ...


class StatusFormatter(Protocol):
    """Formats stripped content. Status lines of what is in a log already stay the same when it grows."""

    def of(self, entries: Sequence[AnyEntry]) -> CallStatusFormatter:
        """Return the formatter for a view of `entries`."""
        ...


class PlainStatusFormatter:
    """The plain stand-ins, of any log: no arguments, and `[compacted] <tool>: success` or `error`."""

    def of(self, entries: Sequence[AnyEntry]) -> PlainStatusFormatter:
        """Return the same for all."""
        return self

    def arguments(self, call: ToolCallRequest) -> JsonObject:
        """Return no arguments."""
        return {}

    def response(self, call: ToolCallRequest, response: ToolCallResponse) -> str:
        """Return the tool's name and how the call ended."""
        return f"[compacted] {call.name}: {'error' if response.is_error else 'success'}"

    def digest(self, call: ToolCallRequest, response: ToolCallResponse, facts: Facts | None) -> str:
        """Return the same."""
        return self.response(call, response)


def stripped_arguments(call: ToolCallRequest, status_formatter: CallStatusFormatter) -> JsonObject | str | None:
    """Return the replacement for the arguments of `call`; None if it would not be shorter, as JSON."""
    left = status_formatter.arguments(call)
    return left if _json_size(left) < _json_size(call.arguments) else None


def stripped_content(
    call: ToolCallRequest, response: ToolCallResponse, status_formatter: CallStatusFormatter
) -> tuple[Block, ...]:
    """Return the replacement for the content of `response`, or the content itself if that would not be shorter."""
    return _shorter(status_formatter.response(call, response), response)


def digested_content(
    call: ToolCallRequest, response: ToolCallResponse, status_formatter: CallStatusFormatter, facts: Facts | None
) -> tuple[Block, ...]:
    """Return the digest of `response`, or the content itself where that would not be shorter."""
    return _shorter(status_formatter.digest(call, response, facts), response)


def _shorter(text: str | None, response: ToolCallResponse) -> tuple[Block, ...]:
    is_shorter = text is not None and len(text.encode()) < content_size(response.content)
    return (TextBlock(text=text),) if is_shorter else response.content


def content_size(content: Sequence[Block]) -> int:
    """Return the bytes of a tool's result that a model is shown."""
    return sum(_shown_size(block) for block in content)


def whole_size(content: Sequence[Block]) -> int:
    """Return the bytes that a tool returned, whatever a model is shown of them."""
    links = sum(_shown_size(block) for block in content if isinstance(block, ResourceLink))
    blocks = (block.resource if isinstance(block, ResourceBlock) else block for block in content)
    return links + sum(size_in_bytes(block) for block in blocks if not isinstance(block, ResourceLink))


def shown_size(resource: Resource) -> int:
    """Return the bytes of `resource` that a model is shown, apart from its name."""
    return _size(resource)


def _size(carrier: Carrier) -> int:
    formatted = formatted_of(carrier)
    return size_in_bytes(carrier) if formatted is None else len(formatted.encode())


def _shown_size(block: Block) -> int:
    match block:
        case ResourceBlock(resource=resource):
            return _size(resource)
        case TextBlock() | ImageBlock() | AudioBlock():
            return _size(block)
        case ResourceLink():
            return len(block.uri.encode())
        case _:
            assert_never(block)


def _json_size(arguments: JsonObject | str) -> int:
    return len(arguments.encode() if isinstance(arguments, str) else msgspec.json.encode(arguments))
