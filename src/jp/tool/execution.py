"""Run a program for a call: bounded and confined."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, assert_never

import msgspec
from msgspec.structs import replace

from jp.config.entries import SandboxConfig
from jp.context.evidence import first_error
from jp.conversation.entries import Facts, Question
from jp.conversation.resource import AudioBlock, Block, ImageBlock, Resource, ResourceBlock, ResourceLink, TextBlock
from jp.errors import JpError
from jp.process.environment import exit_code_text, find_program
from jp.tool.base import ToolInvocation, ToolOutput, text_of
from jp.tool.templates import CommandLine

if TYPE_CHECKING:
    from jp.process.guardian import CapturedOutput, ProcessResult
    from jp.process.sandbox.policy import Confinement, Limits


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
    """Return what `text`, all that was said, comes to; None where it has none of the forms, and so is just text."""
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
    """Return a question: a choice if there is something to choose from, and none if there is nothing."""
    if kind != "boolean":
        kind = "select" if options else "text"
    return Question(id=identity, text=text, kind=kind, options=options, default=default)


def _question_in(result: _CallResult) -> Question | None:
    """Return the first question; what else is there was said before it was answered."""
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


KEPT_BYTES = 4 * 1024 * 1024
"""Of each output so much is kept: what a model is shown of it is bounded anyway, and the whole goes to the log."""

MOST_BYTES = 256 * 1024 * 1024
"""A program that prints more is stopped: what lies between the beginning and the end is lost already."""

TIMEOUT_SECS = 120
"""Default seconds for a program."""

GRACE_SECS = 2.0


class ProgramError(JpError):
    """A program cannot be started."""


async def execute(
    line: CommandLine,
    *,
    root: Path,
    timeout_secs: float | None,
    named: Collection[str] = (),
    stdin: bytes | None = None,
    sandbox: Confinement | None = None,
) -> ProcessResult:
    """Run a command in `root`. `timeout_secs` 0 means forever; `named` are variables that it gets besides the usual.

    `sandbox` confines it, None where nothing does. Cancellation, too, ends it with all that it started.

    Raises:
        ProgramError: it cannot be started.
        SandboxError: it must not run, because it cannot be confined.
    """
    from jp.process.environment import child_environment
    from jp.process.guardian import OutputLimits, ProcessLimits, Program, run

    here = os.getcwd()  # noqa: PTH109 - text
    directory = os.path.join(here, root)  # noqa: PTH118 - text
    environment = child_environment(os.environ, cwd=here, directory=directory, named=named)
    program = Program(
        words=_words(line, directory, environment),
        directory=directory,
        environment={**environment, **line.variables},
        stdin=stdin,
        sandbox=sandbox,
    )
    _check(line)
    seconds = TIMEOUT_SECS if timeout_secs is None else timeout_secs or math.inf
    limits = ProcessLimits(timeout_secs=seconds, grace_secs=GRACE_SECS)
    try:
        return await run(program, output=OutputLimits(kept=KEPT_BYTES, most=MOST_BYTES), limits=limits)
    except OSError as error:
        raise _not_started(line, directory, error) from None


def _words(line: CommandLine, directory: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    name = line.words[0]
    path = find_program(name, directory, environment)
    if path is not None:
        return (path, *line.words[1:])
    is_beside = os.path.lexists(f"{directory}/{name}")
    where = f"; the file in the workspace is './{name}'" if is_beside else ", neither in PATH nor as a path"
    raise ProgramError(f"there is no program {name!r}{where}")


def _check(line: CommandLine) -> None:
    """Refuse what no program can be given.

    Raises:
        ProgramError: a word or a value has a zero byte, or is no Unicode.
    """
    for word in (*line.words, *line.variables.values()):
        try:
            has_zero = b"\0" in os.fsencode(word)
        except UnicodeEncodeError:
            raise ProgramError(f"{word!r} is not valid Unicode, so no program can be given it") from None
        if has_zero:
            raise ProgramError(f"{word!r} has a zero byte, which no program can be given")


def _not_started(line: CommandLine, directory: str, error: OSError) -> ProgramError:
    name = line.words[0]
    if error.errno == errno.E2BIG:
        return ProgramError(f"the arguments for {name!r} are too long for a command line")
    if not os.path.isdir(directory):  # noqa: PTH112 - text
        return ProgramError(f"there is no directory {directory!r} to run {name!r} in")
    return ProgramError(f"cannot run {name!r}: {error.strerror or error}")


def said(captured: CapturedOutput) -> str:
    """Return what was printed, as text. A sentence stands where something is missing."""
    head = captured.head.decode("utf-8", "replace")
    if not captured.omitted:
        return (captured.head + captured.tail).decode("utf-8", "replace")
    tail = captured.tail.decode("utf-8", "replace")
    return f"{head}\n[… {captured.omitted:,} bytes were not kept …]\n{tail}"


def is_text(captured: CapturedOutput) -> bool:
    """Return whether it can be shown as text."""
    return b"\0" not in captured.head and b"\0" not in captured.tail


def no_text(captured: CapturedOutput) -> str:
    """Return what is said of what cannot be shown as text."""
    return f"{_size(captured):,} bytes that are no text"


def transcript(ended: ProcessResult, *, timeout_secs: float | None = None) -> ToolOutput:
    """Return all that a program has said and how it ended, each marked. An exit code that is not 0 is an error."""
    sections = [f"<exit_code>{exit_code_text(ended.exit_code)}</exit_code>"]
    for name, captured in (("stdout", ended.stdout), ("stderr", ended.stderr)):
        text = said(captured) if is_text(captured) else f"[{no_text(captured)}]"
        if text:
            sections.append(f"<{name}>\n{text}{'' if text.endswith(chr(10)) else chr(10)}</{name}>")
    stopped = _why_stopped(ended, timeout_secs)
    if stopped:
        sections.insert(0, stopped)
    is_error = bool(ended.exit_code) or ended.stopped is not None
    return ToolOutput(
        content=(TextBlock(text="\n".join(sections) + "\n"),),
        is_error=is_error,
        facts=facts_of(ended, stopped=stopped),
    )


def facts_of(ended: ProcessResult, *, stopped: str = "") -> Facts:
    """Return what a stand-in says of it: the first error is why it was `stopped`, if it was; without secrets."""
    error = stopped
    if ended.exit_code and not stopped:
        from jp.context.redaction import redact

        error = first_error(redact(said(ended.stderr)).text) or first_error(redact(said(ended.stdout)).text)
    return Facts(kind="terminal", exit_code=_as_a_shell(ended.exit_code), first_error=error or None)


def _as_a_shell(code: int) -> int:
    return code if code >= 0 else 128 - code


def _size(captured: CapturedOutput) -> int:
    return len(captured.head) + len(captured.tail) + captured.omitted


def _why_stopped(ended: ProcessResult, timeout_secs: float | None) -> str:
    match ended.stopped:
        case "time":
            seconds = TIMEOUT_SECS if timeout_secs is None else timeout_secs
            return f"It was stopped: it took longer than {seconds:g} s."
        case "output":
            return f"It was stopped: it printed more than {MOST_BYTES // 1024 // 1024} MiB."
        case None:
            return ""


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """The confinement of one tool's programs.

    Args:
        name: that of the tool.
        default: the mode where the configuration does not say.
        private: gives the directories of jp itself, which no program may read.
    """

    name: str
    default: Literal["workspace-write", "read-only", "off"]
    private: Callable[[], Sequence[str]] = tuple

    def confinement(self, settings: SandboxConfig, root: str, *, is_agreed: bool) -> Confinement | None:
        """Return the limits of a program; None where it has none."""
        if (settings.mode or self.default) == "off":
            return None
        from jp.process.sandbox.policy import confinement_of

        return confinement_of(settings, default=self.default, root=root, private=self.private(), is_agreed=is_agreed)

    def of_call(self, invocation: ToolInvocation) -> Confinement | None:
        """Return the limits of a call's program; None where it has none."""
        settings = invocation.settings.sandbox
        return self.confinement(settings, str(invocation.root.absolute()), is_agreed=invocation.is_agreed)

    def limits(self, invocation: ToolInvocation) -> Limits:
        """Return what confines a call. Nothing is said where nothing does because that is the default."""
        from jp.process.sandbox.policy import Limits

        confinement = self.of_call(invocation)
        if confinement is None:
            said = "" if self.default == "off" else "not confined: the configuration turns the sandbox off"
            return Limits(word="off", text=said)
        from jp.process.sandbox.launcher import in_force

        return in_force(confinement)

    def explained(self, output: ToolOutput, ended: ProcessResult, invocation: ToolInvocation) -> ToolOutput:
        """Return `output`, and where the sandbox may have stopped its program, a sentence that says so.

        The person is told, too, with the setting that allows it. Of a program that did not fail, only what it said on
        its standard error counts.
        """
        confinement = self.of_call(invocation)
        if confinement is None:
            return output
        from jp.process.sandbox.launcher import mechanism_for, rules_for
        from jp.process.sandbox.policy import Landlock, NoMechanism, denied_use, limits_text

        mechanism = mechanism_for(confinement)
        if not invocation.is_agreed and isinstance(mechanism, Landlock | NoMechanism):
            # Nobody was asked, so nobody has read it in the question.
            invocation.notice(f"{self.name!r} ran: {self.limits(invocation).text}")
        use = denied_use(text_of(output) if output.is_error else said(ended.stderr), confinement)
        if use is None or isinstance(mechanism, NoMechanism):
            return output
        limits = limits_text(confinement, mechanism, rules_for(confinement, {}).frozen_because)
        invocation.notice(f"the sandbox may have stopped {self.name!r}: {limits}; {self._remedy(confinement, use)}")
        sentence = f"The sandbox may be the reason: this ran in a sandbox, where {limits}.\n"
        return replace(output, content=(*output.content, TextBlock(text=sentence)))

    def _remedy(self, confinement: Confinement, use: Literal["network", "write"]) -> str:
        key = f"conversation.tools.{self.name}.sandbox"
        if confinement.mode == "read-only":
            return f"`{key}.mode=workspace-write` allows more"
        return f"`{key}.network=true` allows it" if use == "network" else f"`{key}.writable` allows more directories"
