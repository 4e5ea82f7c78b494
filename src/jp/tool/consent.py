"""Approval of calls and results, by rules, by remembered answers or by a person; and questions that tools ask."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, assert_never

import msgspec
from msgspec.structs import replace

from jp.config.entries import QuestionConfig, ResultMode, RuleConfig, RunMode
from jp.conversation.entries import JsonObject, Question, ToolCallRequest, TurnStart
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.errors import ConfigurationError
from jp.tool.base import (
    Answer,
    Confined,
    Inquirer,
    Previewed,
    Stream,
    Toolbox,
    ToolInvocation,
    ToolOutput,
    Unanswered,
    error_output,
    with_text,
)
from jp.tool.rules import CheckedCall, LastingRule, Paths, lasting_rules, problems_of, run_mode, with_arguments
from jp.tool.toolbox import FILE_TOOLS, BuiltIn, source_of

if TYPE_CHECKING:
    from anyio import Lock


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a person is asked about, with the arguments that it would run with.

    `preview` is what the tool says that it would do; `problems` says of other arguments why they do not fit; `rules`
    are those in effect, and `lasting_rules` those that could be added; `limits` is what confines the call, empty where
    that is no matter.
    """

    call: ToolCallRequest
    arguments: JsonObject
    preview: str | None
    problems: Callable[[JsonObject], Sequence[str]]
    rules: Sequence[RuleConfig]
    lasting_rules: Callable[[], Sequence[LastingRule]]
    limits: str = ""


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """Yes. `remember`: also to each such call of this turn."""

    remember: bool = False


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """No, perhaps with a `reason`. `remember`: also to each such call of this turn."""

    reason: str = ""
    remember: bool = False


class EditedArguments(msgspec.Struct, frozen=True, kw_only=True):
    """Other arguments, in which there are no problems."""

    arguments: JsonObject


class ReplacedText(msgspec.Struct, frozen=True, kw_only=True):
    """Another text in place of a result's."""

    text: str


class NoApprover(msgspec.Struct, frozen=True):
    """It turns out that nobody can be asked."""


class Approver(Protocol):
    """Asks a person, one question after the other."""

    async def approve(self, proposal: Proposal) -> Approval | Refusal | EditedArguments | NoApprover:
        """Ask whether a call may run."""
        ...

    async def edit(self, proposal: Proposal) -> Approval | Refusal | EditedArguments | NoApprover:
        """Have the arguments of a call edited, and where that comes to nothing, ask."""
        ...

    async def deliver(
        self, call: ToolCallRequest, output: ToolOutput
    ) -> Approval | Refusal | ReplacedText | NoApprover:
        """Ask whether the model gets a result."""
        ...

    async def edit_result(
        self, call: ToolCallRequest, output: ToolOutput
    ) -> Approval | Refusal | ReplacedText | NoApprover:
        """Have the text of a result edited, and where that comes to nothing, ask."""
        ...


class Allowed(msgspec.Struct, frozen=True):
    """The call may run, or its result be given."""


class Denied(msgspec.Struct, frozen=True, kw_only=True):
    """The call must not run, or its result not be given.

    `skipped`: the configuration says so. `refused`: `--deny-all` does. `declined`: the person who was asked did,
    perhaps with a `reason`. `nobody`: it had to be asked, and nobody can be.
    """

    cause: Literal["skipped", "refused", "declined", "nobody"]
    reason: str = ""


Decision = Allowed | Denied


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """The command line's answer for this turn to every question about a tool.

    `approved` are the names of `--approve`, `approve_all` and `deny_all` the flags of those names; a name wins over
    `deny_all`, and `deny_all` over `approve_all`.
    """

    approved: frozenset[str] = frozenset()
    approve_all: bool = False
    deny_all: bool = False


def decide(name: str, mode: RunMode | ResultMode, answers: Answers) -> Decision | None:
    """Return whether a call of tool `name` may run, or its result be given; None where a person has to be asked.

    What is to be skipped is skipped, whatever was approved; what is unattended is not asked about, so no answer
    concerns it.
    """
    match mode:
        case "skip":
            return Denied(cause="skipped")
        case "unattended":
            return Allowed()
        case "ask" | "edit":
            return _answer(name, answers)
        case _:
            assert_never(mode)


def _answer(name: str, answers: Answers) -> Decision | None:
    if name in answers.approved:
        return Allowed()
    if answers.deny_all:
        return Denied(cause="refused")
    return Allowed() if answers.approve_all else None


def explain(name: str, denied: Denied) -> str:
    """Return the result of a call that did not run, in words for the model."""
    why = _reason(denied, f"calls of {name!r}", f"{name!r}")
    return f"This call did not run: {why} Do not repeat it; go on without it, or say what it is needed for."


def explain_withheld(name: str, denied: Denied) -> str:
    """Return the text that the model gets in place of a result."""
    why = _reason(denied, f"results of {name!r}", f"giving you the result of {name!r}")
    return f"This call ran, but you are not given its result: {why} Do not repeat it."


def _reason(denied: Denied, skipped: str, needing: str) -> str:
    said = f" The user said: {denied.reason}" if denied.reason else ""
    match denied.cause:
        case "skipped":
            why = f"the configuration says that {skipped} are skipped"
        case "refused":
            why = "the user denied everything in this turn that needs approval"
        case "declined":
            why = "the user was asked and declined"
        case "nobody":
            why = f"{needing} needs the user's approval, and nobody can be asked here"
        case _:
            assert_never(denied.cause)
    return f"{why}.{said}"


def _turn_of(stream: Stream) -> str:
    """Return the id of the turn in which a call is made. No answer holds in the next one."""
    return next((entry.id for entry in reversed(stream.entries) if isinstance(entry, TurnStart)), "")


PREVIEW_SECS = 5.0
"""Seconds to wait for a tool's preview."""

Invoke = Callable[[CheckedCall], ToolInvocation]


class PendingApproval(msgspec.Struct, frozen=True, kw_only=True):
    """A call about which a person has to be asked. With `edits_first`, its arguments are edited before."""

    checked: CheckedCall
    edits_first: bool


class DeliveredResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result that the model is given. `denied`: it is withheld without a person's consent."""

    output: ToolOutput
    denied: bool = False


class Consent:
    """The consent to calls and their results.

    `approver` is None where nobody can be asked. `real` is what the links on the disk make of an absolute path; it may
    raise OSError.
    """

    def __init__(
        self, answers: Answers, approver: Approver | None, *, real: Callable[[str], str] = os.path.realpath
    ) -> None:
        self._answers = answers
        self._approver = approver
        self._real = real
        self._remembered: dict[tuple[str, str, bytes], bool] = {}
        """The answers of a person, by turn, tool and arguments."""

    async def known(self, checked: CheckedCall, root: Path) -> Decision | PendingApproval:
        """Return what is decided without asking."""
        mode = await self._mode(checked, root)
        decision = decide(checked.call.name, mode, self._answers)
        return PendingApproval(checked=checked, edits_first=mode == "edit") if decision is None else decision

    async def ask(self, asking: PendingApproval, stream: Stream, invoke: Invoke) -> CheckedCall | Denied:
        """Return the call as the person lets it run, perhaps with other arguments; without a person, it must not.

        `invoke` makes what a call would be run with.
        """
        reply: CheckedCall | PendingApproval | Denied = asking
        while isinstance(reply, PendingApproval):
            reply = await self._reply(reply, stream, invoke)
        return reply

    async def deliver(self, checked: CheckedCall, output: ToolOutput) -> DeliveredResult:
        """Return what the model is given where a call ended with `output`."""
        mode = checked.configured.settings.result or "unattended"
        decision = decide(checked.call.name, mode, self._answers)
        if decision is None and self._approver is not None:
            about = self._approver.edit_result if mode == "edit" else self._approver.deliver
            match await about(checked.call, output):
                case Approval():
                    decision = Allowed()
                case ReplacedText(text=text):
                    return DeliveredResult(output=with_text(output, text))
                case Refusal(reason=reason):
                    decision = Denied(cause="declined", reason=reason)
                case NoApprover():
                    pass
        return _given(checked, output, decision or Denied(cause="nobody"))

    async def _mode(self, checked: CheckedCall, root: Path) -> RunMode:
        settings = checked.configured.settings
        paths = Paths(root=str(root), real=self._real)
        if not settings.rules:
            return run_mode(settings, checked.arguments, paths)
        from anyio.to_thread import run_sync

        return await run_sync(run_mode, settings, checked.arguments, paths, abandon_on_cancel=True)

    async def _reply(
        self, asking: PendingApproval, stream: Stream, invoke: Invoke
    ) -> CheckedCall | PendingApproval | Denied:
        checked, approver = asking.checked, self._approver
        agreed = replace(checked, is_agreed=True)
        if approver is None:
            return Denied(cause="nobody")
        key = (_turn_of(stream), checked.call.name, msgspec.json.encode(checked.arguments, order="deterministic"))
        remembered = self._remembered.get(key)
        if remembered is not None:
            return agreed if remembered else Denied(cause="declined")
        proposal = await self._proposal(agreed, invoke)
        reply = await (approver.edit(proposal) if asking.edits_first else approver.approve(proposal))
        if isinstance(reply, Approval | Refusal) and reply.remember:
            self._remembered[key] = isinstance(reply, Approval)
        match reply:
            case Approval():
                return agreed
            case Refusal(reason=reason):
                return Denied(cause="declined", reason=reason)
            case EditedArguments(arguments=edited):
                return PendingApproval(checked=_edited(checked, edited), edits_first=False)
            case NoApprover():
                return Denied(cause="nobody")
            case _:
                assert_never(reply)

    async def _proposal(self, checked: CheckedCall, invoke: Invoke) -> Proposal:
        def problems(arguments: JsonObject) -> list[str]:
            return problems_of(with_arguments(checked, arguments))

        def lasting() -> Sequence[LastingRule]:
            paths = Paths(root=str(invocation.root), real=self._real)
            is_own = name in FILE_TOOLS and isinstance(source_of(name, settings, FILE_TOOLS), BuiltIn)
            return lasting_rules(tool.definition, settings, checked.arguments, paths, is_file_tool=is_own)

        name, invocation = checked.call.name, invoke(checked)
        tool, settings = checked.configured.tool, checked.configured.settings
        limits = tool.sandbox_limits(invocation).text if isinstance(tool, Confined) else ""
        return Proposal(
            call=checked.call,
            arguments=checked.arguments,
            preview=await _preview(checked, invoke),
            problems=problems,
            rules=settings.rules,
            lasting_rules=lasting,
            limits=limits,
        )


async def _preview(checked: CheckedCall, invoke: Invoke) -> str | None:
    tool = checked.configured.tool
    if not isinstance(tool, Previewed):
        return None
    from anyio import move_on_after

    try:
        with move_on_after(PREVIEW_SECS):
            return await tool.preview(invoke(checked))
    except Exception:  # noqa: BLE001  a tool may raise anything, and it fails again when it runs
        return None
    return None


def _edited(checked: CheckedCall, arguments: JsonObject) -> CheckedCall:
    edited = with_arguments(checked, arguments)
    return msgspec.structs.replace(edited, is_edited=True) if isinstance(edited, CheckedCall) else checked


def _given(checked: CheckedCall, output: ToolOutput, decision: Decision) -> DeliveredResult:
    match decision:
        case Allowed():
            return DeliveredResult(output=output)
        case Denied(cause=cause):
            told = TextBlock(text=explain_withheld(checked.call.name, decision))
            withheld = ToolOutput(content=(told,), is_error=output.is_error)
            return DeliveredResult(output=withheld, denied=cause != "skipped")
        case _:
            assert_never(decision)


ANSWER = "answer"
"""The member that holds the answer, where it is asked for as JSON."""


def fits(question: Question, value: Any) -> bool:
    """Return whether `value` answers `question`."""
    match question.kind:
        case "boolean":
            return isinstance(value, bool)
        case "select":
            return value in question.options
        case "text":
            return isinstance(value, str)
        case _:
            assert_never(question.kind)


def expected(question: Question) -> str:
    """Return what an answer has to be, in words."""
    match question.kind:
        case "boolean":
            return "true or false"
        case "select":
            return f"one of {', '.join(map(repr, question.options)) or 'no options'}"
        case "text":
            return "a text"
        case _:
            assert_never(question.kind)


def answer_schema(question: Question) -> JsonObject:
    """Return the JSON Schema of an object whose only member is the answer."""
    answer: JsonObject = {"type": "boolean" if question.kind == "boolean" else "string"}
    if question.kind == "select":
        answer["enum"] = list(question.options)
    return {"type": "object", "properties": {ANSWER: answer}, "required": [ANSWER], "additionalProperties": False}


_UNSET = QuestionConfig()
_NOBODY = Unanswered(cause="nobody")

_AnswerKey = tuple[str, str, bytes]
"""A turn, a tool, and what it asks."""


class Respondent(Protocol):
    """A person or the model, who may answer what a call asks."""

    async def answer(self, question: Question, call: ToolCallRequest, stream: Stream) -> Answer | Unanswered:
        """Answer; what is answered fits the question."""
        ...


class Inquiries:
    """The questions of the calls of a query. `person` and `model` are None where they cannot be asked."""

    def __init__(self, toolbox: Toolbox, *, person: Respondent | None, model: Respondent | None) -> None:
        self.toolbox = toolbox
        self.person = person
        self.model = model
        self.known: dict[_AnswerKey, Answer] = {}
        self.locks: defaultdict[_AnswerKey, Lock] = defaultdict(_lock)

    def inquirer(self, call: ToolCallRequest, stream: Stream) -> Inquirer:
        """Return who answers the questions of `call`."""
        return _CallInquirer(self, call, stream)


def _lock() -> Lock:
    from anyio import Lock

    return Lock()


class _CallInquirer:
    """Has the questions of one call answered."""

    def __init__(self, inquiries: Inquiries, call: ToolCallRequest, stream: Stream) -> None:
        self._with = inquiries
        self._call = call
        self._stream = stream

    async def ask(self, question: Question, *, person_only: bool = False) -> Answer | Unanswered:
        """See the port. Where several calls ask the same thing at once, it is asked once.

        Raises:
            ConfigurationError: the answer that is always given does not fit.
        """
        settings = self._settings(question)
        if settings.answer is not None:
            return self._configured(question, settings)
        key = self._key(question)
        async with self._with.locks[key]:
            known = self._with.known.get(key)
            if known is not None:
                return msgspec.structs.replace(known, model=None, usage=None)
            answer = await self._ask(question, settings, person_only=person_only)
            if isinstance(answer, Answer):
                self._with.known[key] = answer
            return answer

    def _settings(self, question: Question) -> QuestionConfig:
        configured = self._with.toolbox.get(self._call.name)
        return _UNSET if configured is None else configured.settings.questions.get(question.id, _UNSET)

    def _configured(self, question: Question, settings: QuestionConfig) -> Answer:
        if fits(question, settings.answer):
            return Answer(value=settings.answer, by="config")
        key = f"conversation.tools.{self._call.name}.questions.{question.id}.answer"
        raise ConfigurationError(
            f"{key!r} is {settings.answer!r}, but {question.text!r} is answered by {expected(question)}"
        )

    def _key(self, question: Question) -> _AnswerKey:
        return _turn_of(self._stream), self._call.name, msgspec.json.encode(question)

    async def _ask(self, question: Question, settings: QuestionConfig, *, person_only: bool) -> Answer | Unanswered:
        """Ask one after the other; who declines has spoken."""
        person, model = self._with.person, self._with.model
        both = (model, person) if settings.target == "assistant" else (person, model)
        for respondent in (person,) if person_only else both:
            if respondent is not None:
                answer = await respondent.answer(question, self._call, self._stream)
                if answer != _NOBODY:
                    return answer
        return _NOBODY


DEFINITION = ToolDefinition(
    name="ask_user",
    description=(
        "Ask the user one question, and wait for the answer. For what only they can know or decide; what you can find "
        "out or sensibly assume, do not ask."
    ),
    parameters={
        "type": "object",
        "properties": {
            "question": {"type": "string", "description": "The question, with what they need to know to answer it."},
            "options": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The answers that they may choose from; without it they write one.",
            },
        },
        "required": ["question"],
        "additionalProperties": False,
    },
)

_NO_PERSON = (
    "Nobody can be asked here. Go on with what you would sensibly assume and say so, or say in your answer what you "
    "need to know."
)


class AskUser:
    """The tool with which the model asks the user, a new question each time."""

    definition = DEFINITION

    def __init__(self) -> None:
        self._numbers = count(1)

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Ask."""
        text = str(invocation.arguments["question"]).strip()
        options = tuple(dict.fromkeys(map(str, invocation.arguments.get("options") or ())))
        if not text:
            return error_output("The question is empty, so nobody was asked.")
        question = Question(
            id=f"question-{next(self._numbers)}", text=text, kind="select" if options else "text", options=options
        )
        answer = await invocation.inquirer.ask(question, person_only=True)
        if isinstance(answer, Answer):
            return ToolOutput(content=(TextBlock(text=f"The user answered: {answer.value}"),))
        return error_output(_NO_PERSON if answer.cause == "nobody" else "The user was asked, and gave no answer.")
