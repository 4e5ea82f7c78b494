"""`ask_user`: the model asks the person."""

from __future__ import annotations

from itertools import count

from jp.conversation.entries import Question
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import Answer, ToolInvocation, ToolOutput, error_output

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

_NOBODY = (
    "Nobody can be asked here. Go on with what you would sensibly assume and say so, or say in your answer what you "
    "need to know."
)


class AskUser:
    """Asks a person, anew each time, and nobody else."""

    def __init__(self) -> None:
        self._numbers = count(1)

    @property
    def definition(self) -> ToolDefinition:
        """See the port."""
        return DEFINITION

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
        return error_output(_NOBODY if answer.cause == "nobody" else "The user was asked, and gave no answer.")
