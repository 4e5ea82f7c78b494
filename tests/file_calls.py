"""Calls of file tools, and who answers what they ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio

from jp.config.entries import AccessConfig, FileRuleConfig, RunMode, ToolConfig
from jp.conversation.entries import Question
from jp.conversation.resource import TextBlock
from jp.tool.base import Answer, NobodyToAsk, Tool, ToolInvocation, ToolOutput, Unanswered


class Answering:
    """Answers each question alike, after doing what a test needs; remembers the questions."""

    def __init__(self, value: object, *, first: Callable[[], object] = str) -> None:
        self._value = value
        self._first = first
        self.questions: list[Question] = []

    async def ask(self, question: Question, *, person_only: bool = False) -> Answer | Unanswered:
        assert person_only, "the model must not consent to what it wants itself"
        self.questions.append(question)
        self._first()
        return Answer(value=self._value, by="user")


def invocation(
    root: Path,
    arguments: dict[str, Any],
    *,
    access: Sequence[FileRuleConfig] = (),
    run: RunMode | None = None,
    inquirer: Answering | NobodyToAsk | None = None,
) -> ToolInvocation:
    settings = ToolConfig(run=run, access=AccessConfig(fs=tuple(access)))
    return ToolInvocation(arguments=arguments, root=root, settings=settings, inquirer=inquirer or NobodyToAsk())


def call(tool: Tool, root: Path, **arguments: object) -> ToolOutput:
    """Run a tool without settings, with nobody to ask."""
    return anyio.run(tool.run, invocation(root, arguments))


def text(output: ToolOutput) -> str:
    """What a result that is text says."""
    (block,) = output.content
    assert isinstance(block, TextBlock)
    return block.text or ""


def failure(output: ToolOutput) -> str:
    """What a failure says."""
    assert output.is_error, output
    return text(output)
