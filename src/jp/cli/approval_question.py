"""What a person is asked before a tool runs or its result is given: the words, the keys, and what they show."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import indent

import msgspec

from jp.conversation.entries import JsonObject, ToolCallRequest
from jp.render.amounts import count_text, size_text
from jp.render.preview import preview_text
from jp.render.prompt import ask_key, can_ask, tell
from jp.render.sanitise import one_line, sanitise
from jp.render.tool_call import arguments_text, call_text
from jp.tool.approver import Proposal
from jp.tool.base import ToolOutput
from jp.tool.results import text_of

PREVIEW_LINES = 60
"""So many lines of a preview are shown unasked."""

_CALL_KEYS = {
    "y": "run it",
    "n": "do not run it",
    "Y": "run it, and for the rest of this turn every call with these arguments",
    "N": "do not run it, and for the rest of this turn no call with these arguments",
    "p": "print all of the arguments",
    "r": "do not run it, and say why",
    "e": "edit the arguments",
    "?": "help",
}
_RESULT_KEYS = {
    "y": "give it to the model",
    "n": "keep it back",
    "p": "print all of it",
    "r": "keep it back, and say why",
    "e": "edit it",
    "?": "help",
}


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question with its keys. `introduction` is shown before it, `whole` where everything is wanted."""

    text: str
    keys: Mapping[str, str]
    whole: str
    introduction: str = ""


def call_question(proposal: Proposal, *, colour: bool) -> Question:
    """Whether a call may run."""
    call = ToolCallRequest(call_id="", name=proposal.call.name, arguments=proposal.arguments)
    arguments = msgspec.json.format(msgspec.json.encode(proposal.arguments), indent=2).decode()
    preview = _legible(proposal.arguments) if proposal.preview is None else proposal.preview
    return Question(
        text=f"Run {call_text(call)}?",
        keys=_CALL_KEYS,
        whole=preview_text(proposal.preview or "", colour=colour) + sanitise(arguments) + "\n",
        introduction=preview_text(preview, colour=colour, most_lines=PREVIEW_LINES) + _limits(proposal),
    )


def _limits(proposal: Proposal) -> str:
    return f"{one_line(proposal.limits)}\n" if proposal.limits else ""


def _legible(arguments: JsonObject) -> str:
    """The arguments where the question shortens them: nobody shall let run what they cannot see."""
    if arguments_text(arguments) == arguments_text(arguments, is_whole=True):
        return ""
    return "\n".join(f"{name}: {_value(value)}" for name, value in arguments.items())


def _value(value: object) -> str:
    if isinstance(value, str) and "\n" in value:
        return indent(f"\n{value}", "  ", lambda line: line != "\n")
    return msgspec.json.encode(value).decode()


def result_question(call: ToolCallRequest, output: ToolOutput) -> Question:
    """Whether the model gets a result."""
    text = text_of(output)
    size = f"{count_text(len(text.splitlines()), 'line')}, {size_text(len(text.encode('utf-8', 'replace')))}"
    failed = ", a failure" if output.is_error else ""
    return Question(
        text=f"Give the model the result of {one_line(call.name)} ({size}{failed})?",
        keys=_RESULT_KEYS,
        whole=sanitise(text).rstrip("\n") + "\n",
    )


def answer_to(question: Question) -> str | None:
    """The key that the person chose; None where nobody can be asked. Whoever says nothing, says no."""
    tell(question.introduction)
    while True:
        key = ask_key(f"{question.text} [{','.join(question.keys)}]", question.keys, default="n")
        match key:
            case None:
                return "n" if can_ask() else None
            case "p":
                tell(question.whole)
            case "?":
                tell("".join(f"{key}  {meaning}\n" for key, meaning in question.keys.items()))
            case _:
                return key
