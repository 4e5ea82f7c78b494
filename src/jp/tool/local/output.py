"""What a local tool says on its standard output: blocks, an outcome in the form of the original, a question. Pure."""

from __future__ import annotations

from typing import Any, Literal, assert_never

import msgspec

from jp.conversation.entries import Question
from jp.conversation.resource import AudioBlock, Block, ImageBlock, Resource, ResourceBlock, ResourceLink, TextBlock

_Kind = Literal["boolean", "select", "text"]


class Returned(msgspec.Struct, frozen=True, kw_only=True):
    """A result. `is_error` is None where the tool does not say whether it is one."""

    content: tuple[Block, ...]
    is_error: bool | None = None


class _QuestionBlock(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="question"):
    id: str
    text: str
    kind: _Kind = "text"
    options: tuple[str, ...] = ()
    default: Any = None


class _CallResult(msgspec.Struct, frozen=True, kw_only=True):
    content: tuple[TextBlock | ResourceBlock | ImageBlock | AudioBlock | ResourceLink | _QuestionBlock, ...]
    is_error: bool | None = msgspec.field(default=None, name="isError")


class _Success(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="success"):
    content: str


class _Error(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="error"):
    message: str
    trace: tuple[str, ...] = ()


class _Select(msgspec.Struct, frozen=True, kw_only=True):
    options: tuple[str, ...]


class _SelectType(msgspec.Struct, frozen=True, kw_only=True):
    select: _Select = msgspec.field(name="Select")


class _OriginalQuestion(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    text: str
    preamble: str | None = msgspec.field(default=None, name="pre_amble")
    answer_type: Literal["Boolean", "Text"] | _SelectType = "Text"
    default: Any = None


class _NeedsInput(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="needs_input"):
    question: _OriginalQuestion


_RESULT = msgspec.json.Decoder(_CallResult)
_OUTCOME = msgspec.json.Decoder(_Success | _Error | _NeedsInput)


def read_output(text: str) -> Returned | Question | None:
    """What `text`, all that was said, comes to; None where it has none of the forms, and so is just text."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        result = _RESULT.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _outcome(text)
    return _question_in(result) or _returned(result)


def _outcome(text: str) -> Returned | Question | None:
    try:
        outcome = _OUTCOME.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    match outcome:
        case _Success(content=content):
            return Returned(content=(TextBlock(text=content),), is_error=False)
        case _Error(message=message, trace=trace):
            said = "\n".join([message, *trace])
            return Returned(content=(TextBlock(text=said),), is_error=True)
        case _NeedsInput(question=question):
            return _asked(question)
        case _ as never:
            assert_never(never)


def _asked(question: _OriginalQuestion) -> Question:
    text = "\n".join(filter(None, (question.preamble, question.text)))
    match question.answer_type:
        case "Boolean":
            return _question(question.id, text, "boolean", default=question.default)
        case "Text":
            return _question(question.id, text, "text", default=question.default)
        case _SelectType(select=select):
            return _question(question.id, text, "select", options=select.options, default=question.default)
        case _ as never:
            assert_never(never)


def _question(identity: str, text: str, kind: _Kind, *, options: tuple[str, ...] = (), default: Any) -> Question:
    """A question. Where there is something to choose from it is a choice, and where there is nothing it is none."""
    if kind != "boolean":
        kind = "select" if options else "text"
    return Question(id=identity, text=text, kind=kind, options=options, default=default)


def _question_in(result: _CallResult) -> Question | None:
    """The first question; what else is there was said before it was answered."""
    asked = next((block for block in result.content if isinstance(block, _QuestionBlock)), None)
    if asked is None:
        return None
    return _question(asked.id, asked.text, asked.kind, options=asked.options, default=asked.default)


def _returned(result: _CallResult) -> Returned | None:
    blocks = [_plain(block) for block in result.content if not isinstance(block, _QuestionBlock)]
    content = tuple(block for block in blocks if block is not None)
    return Returned(content=content, is_error=result.is_error) if len(content) == len(blocks) else None


def _plain(block: Block) -> Block | None:
    """`block` with nothing but what a tool may say: not what jp itself keeps of content. None where it has none."""
    match block:
        case TextBlock(text=str(text)):
            return TextBlock(text=text, formatted=block.formatted)
        case ResourceBlock(resource=resource):
            return _plain_resource(resource)
        case ImageBlock(mime_type=mime_type, blob=bytes(blob)):
            return ImageBlock(mime_type=mime_type, blob=blob)
        case AudioBlock(mime_type=mime_type, blob=bytes(blob)):
            return AudioBlock(mime_type=mime_type, blob=blob)
        case ResourceLink():
            return block
        case _:
            return None


def _plain_resource(resource: Resource) -> ResourceBlock | None:
    if (resource.text is None) == (resource.blob is None):
        return None
    return ResourceBlock(
        resource=Resource(
            uri=resource.uri,
            mime_type=resource.mime_type,
            annotations=resource.annotations,
            name=resource.name,
            title=resource.title,
            description=resource.description,
            formatted=resource.formatted,
            text=resource.text,
            blob=resource.blob,
        )
    )
