"""What a person is asked before a tool runs or its result is given: the words, the keys, and what they show.

Whatever the model or a tool wrote is escaped: what is shown decodes to what runs.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from jp.conversation.entries import JsonObject, ToolCallRequest
from jp.render.approval import Sheet, argument_lines, is_plain_name, value_text
from jp.render.escape import escape, escape_line
from jp.render.prompts import About, ask_key, tell
from jp.render.tty import can_ask
from jp.render.units import count_text, size_text
from jp.tool.approver import Proposal
from jp.tool.base import ToolOutput
from jp.tool.results import other_than_text, text_of

_LONGEST_VALUE = 60
_LONGEST_CALL = 120

_CALL_KEYS = {
    "y": "run it",
    "n": "do not run it",
    "Y": "run it, and for the rest of this turn every call with these arguments",
    "N": "do not run it, and for the rest of this turn no call with these arguments",
    "p": "show the next page: what it would do, then all of the arguments",
    "r": "do not run it, and say why",
    "e": "edit the arguments",
    "?": "help",
}
_RESULT_KEYS = {
    "y": "give it to the model",
    "n": "keep it back",
    "p": "show the next page",
    "r": "keep it back, and say why",
    "e": "edit it",
    "?": "help",
}


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question with its keys, and what it is about."""

    text: str
    keys: Mapping[str, str]
    about: About


def call_question(proposal: Proposal, *, color: bool) -> Question:
    """Return the question whether a call may run."""
    name = escape_line(proposal.call.name)
    call = _call_in_words(name, proposal.arguments)
    texts = [escape(proposal.preview.removesuffix("\n"))] if proposal.preview else []
    if proposal.arguments and not (texts and call):
        texts.append(argument_lines(proposal.arguments))
    if call is None and len(name) > _LONGEST_VALUE:
        texts, name = [f"tool: {name}", *texts], "this tool"
    about = About(
        sheets=tuple(Sheet(text=text) for text in texts),
        is_shown=bool(proposal.preview) or call is None,
        color=color,
    )
    limits = f"{escape_line(proposal.limits)}\n" if proposal.limits else ""
    return Question(text=f"{limits}Run {call or f'{name} with these arguments'}?", keys=_CALL_KEYS, about=about)


def result_question(call: ToolCallRequest, output: ToolOutput) -> Question:
    """Return the question whether the model gets a result."""
    text = text_of(output)
    size = f"{count_text(len(text.splitlines()), 'line')}, {size_text(len(text.encode('utf-8', 'replace')))}"
    others = other_than_text(output)
    beside = f", and {count_text(others, 'part')} that cannot be shown" if others else ""
    failed = ", a failure" if output.is_error else ""
    return Question(
        text=f"Give the model the result of {escape_line(call.name)} ({size}{beside}{failed})?",
        keys=_RESULT_KEYS,
        about=About(sheets=(Sheet(text=escape(text)),) if text else ()),
    )


async def answer_to(question: Question) -> str | None:
    """Return the key that the person chose; None where nobody can be asked. Whoever says nothing, says no."""
    while True:
        asked = f"{question.text} [{','.join(question.keys)}]"
        key = await ask_key(asked, question.keys, default="n", about=question.about)
        match key:
            case None:
                return "n" if can_ask() else None
            case "p":
                tell("There is nothing else to show.\n")
            case _:
                return key


def _call_in_words(name: str, arguments: JsonObject) -> str | None:
    """Return the call with all of its arguments, as long as they are short: `fs_read_file(path="a.py")`."""
    values = [value_text(value) for value in arguments.values()]
    said = ", ".join(f"{key}={value}" for key, value in zip(arguments, values, strict=True))
    is_plain = all(map(is_plain_name, arguments)) and not any("\n" in str(value) for value in arguments.values())
    is_short = len(name) + len(said) <= _LONGEST_CALL and all(len(value) <= _LONGEST_VALUE for value in values)
    return f"{name}({said})" if is_plain and is_short else None
