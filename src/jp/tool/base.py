"""The tool port: tools, their calls and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

import msgspec

from jp.config.entries import ToolConfig
from jp.conversation.entries import AnyEntry, Facts, JsonObject, Question, ToolCallRequest, Usage
from jp.conversation.resource import Block, Carrier, ResourceBlock, TextBlock
from jp.conversation.thread import ToolDefinition

if TYPE_CHECKING:
    from jp.process.sandbox.policy import Limits


C = TypeVar("C", bound=Carrier)


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's result. A failure is a result too: the model reads it."""

    content: tuple[Block, ...]
    is_error: bool = False
    facts: Facts | None = None


class CallStarted(msgspec.Struct, frozen=True, kw_only=True):
    """A call is about to run: from here on it may have effects."""

    call: ToolCallRequest


class CallOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one call. `denied`: it needed a person's consent, or an answer, and nobody gave it.

    `duration_ms` is None where nothing ran.
    """

    call: ToolCallRequest
    output: ToolOutput
    duration_ms: int | None = None
    denied: bool = False


class QuestionAnswered(msgspec.Struct, frozen=True, kw_only=True):
    """A tool asked something while it ran, and it was answered."""

    call: ToolCallRequest
    question: Question
    answer: Answer


class CallProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A tool says how far it is."""

    call: ToolCallRequest
    text: str


ToolEvent = CallStarted | CallProgress | QuestionAnswered | CallOutcome
"""Events while calls run."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to a tool's question, and its author: a person, the model, or the configuration.

    Of an answer of the model, `model` is its id and `usage` what the provider reported.
    """

    value: Any
    by: Literal["user", "assistant", "config"]
    model: str | None = None
    usage: Usage | None = None


class Unanswered(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody answered: nobody could be asked, or who was asked declined."""

    cause: Literal["nobody", "declined"]


class Inquirer(Protocol):
    """Has a tool's question answered: by the configuration, a person or the model."""

    async def ask(self, question: Question, *, person_only: bool = False) -> Answer | Unanswered:
        """Ask. What was answered before in this turn is answered alike.

        `person_only`: the model must not answer. It is so with consent.
        """
        ...


class NoInquirer:
    """An inquirer that has no answer."""

    async def ask(self, question: Question, *, person_only: bool = False) -> Answer | Unanswered:
        """See the port."""
        del question, person_only
        return Unanswered(cause="nobody")


class Stream(Protocol):
    """The log of the conversation in which a call is made, while the call runs."""

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """Return the stream so far, content in the form in which it is stored."""
        ...

    def load(self, carrier: C, /) -> C:
        """Return the carrier with its content inline.

        Raises:
            StorageError: the blob is missing or damaged.
        """
        ...


@runtime_checkable
class OnDisk(Protocol):
    """A stream that may lie on disk."""

    @property
    def directory(self) -> Path | None:
        """Return the directory of its conversation; None where nothing of it is written."""
        ...


def directory_of(stream: object) -> Path | None:
    """Return the directory of the conversation that `stream` is the log of; None where there is none."""
    return stream.directory if isinstance(stream, OnDisk) else None


class NoStream:
    """Of a call that is made outside of any conversation."""

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """Return no entries."""
        return ()

    def load(self, carrier: C, /) -> C:
        """Return the carrier as it is."""
        return carrier


def _ignore(text: str) -> None:
    del text


class ToolInvocation(msgspec.Struct, frozen=True, kw_only=True):
    """A call with everything that a tool needs to run.

    `root` confines built-in file tools. `settings` are the configuration's word on this tool. `inquirer` answers what
    the tool has to ask while it runs; `progress` shows a person one line of how far it is, `notice` what they should
    know although the call goes on, `log` tells who looks for a reason. `stream` is the log of the conversation that the
    call belongs to. `is_agreed`: a person has seen this call and lets it run.
    """

    arguments: JsonObject
    root: Path
    settings: ToolConfig = ToolConfig()
    inquirer: Inquirer = NoInquirer()
    progress: Callable[[str], None] = _ignore
    notice: Callable[[str], None] = _ignore
    log: Callable[[str], None] = _ignore
    stream: Stream = NoStream()
    is_agreed: bool = False


class Tool(Protocol):
    """A function that the model may call."""

    @property
    def definition(self) -> ToolDefinition:
        """Return the definition for the model."""
        ...

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Run it. Cancellation stops it."""
        ...


@runtime_checkable
class Previewed(Protocol):
    """A tool that can say what a call would do, for the person who is asked whether it may."""

    async def preview(self, invocation: ToolInvocation) -> str | None:
        """Return a unified diff, or lines of text, without control sequences; None where the arguments say it all.

        Nothing is changed by it. Of a long one the beginning is shown unasked. What fails here fails when the call
        runs: then None.
        """
        ...


@runtime_checkable
class Confined(Protocol):
    """A tool whose calls the operating system may confine."""

    def sandbox_limits(self, invocation: ToolInvocation) -> Limits:
        """Return what confines a call. Its text is for the person who is asked, empty where nothing has to be said."""
        ...


@runtime_checkable
class OwnTimeout(Protocol):
    """A tool that heeds `timeout_secs` itself, so that what it has said until then is not lost."""

    @property
    def keeps_time(self) -> bool:
        """Return True."""
        ...


@runtime_checkable
class ReadsOnly(Protocol):
    """A tool whose calls change nothing: it does not matter in which order they run."""

    @property
    def reads_only(self) -> bool:
        """Return whether it is so."""
        ...


class ConfiguredTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool and its settings: its own, and where it has none those that hold for every tool."""

    tool: Tool
    settings: ToolConfig


Toolbox = Mapping[str, ConfiguredTool]
"""Tools by name."""


class Delivery(Protocol):
    """Makes of what a tool returned what is recorded: bounded, and marked where it was delivered before. Pure."""

    def __call__(self, configured: ConfiguredTool, output: ToolOutput, entries: Sequence[AnyEntry]) -> ToolOutput:
        """Return the output to record. `entries` is the stored stream, with the call's turn and its earlier results."""
        ...


def error_output(text: str) -> ToolOutput:
    """Return a failure, in words for the model."""
    return ToolOutput(content=(TextBlock(text=str(text)),), is_error=True)  # a text with remedies is not encoded


def text_of(output: ToolOutput) -> str:
    """Return all text of a result, its blocks apart by a blank line."""
    return "\n\n".join(text for block in output.content if (text := _text(block)) is not None)


def other_than_text(output: ToolOutput) -> int:
    """Return how many blocks of a result are no text."""
    return sum(_text(block) is None for block in output.content)


def with_text(output: ToolOutput, text: str) -> ToolOutput:
    """Return `output` with `text` in place of its own, without its facts; blocks other than text stay."""
    if text == text_of(output):
        return output
    others = tuple(block for block in output.content if _text(block) is None)
    return ToolOutput(content=(TextBlock(text=text), *others), is_error=output.is_error)


def _text(block: Block) -> str | None:
    match block:
        case TextBlock(text=text):
            return text
        case ResourceBlock(resource=resource):
            return resource.text
        case _:
            return None
