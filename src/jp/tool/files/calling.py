"""One call of a file tool: what it may reach, and its work in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from jp.conversation.entries import Facts, Question
from jp.conversation.resource import TextBlock
from jp.tool.base import Answer, ToolInvocation, ToolOutput
from jp.tool.files.errors import FileAccessError
from jp.tool.files.opening import legible
from jp.tool.files.surroundings import FileSurroundings
from jp.tool.files.territory import Territory

P = ParamSpec("P")
T = TypeVar("T")


def territory_of(invocation: ToolInvocation, surroundings: FileSurroundings) -> Territory:
    """What the call may reach."""
    return Territory(invocation.root, invocation.settings.access.fs, surroundings)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do blocking work: a file system that hangs must not hang what cancels this."""
    from functools import partial

    from anyio.to_thread import run_sync

    return await run_sync(partial(work, *args, **kwargs), abandon_on_cancel=True)


async def require_consent(invocation: ToolInvocation, identity: str, text: str) -> None:
    """Ask a question whose answer has to be yes.

    Raises:
        FileAccessError: it is not, or there is nobody to ask.
    """
    question = Question(id=identity, text=text, kind="boolean", default=False)
    answer = await invocation.inquirer.ask(question, person_only=True)
    if isinstance(answer, Answer):
        if answer.value is True:
            return
        raise FileAccessError(f"{text} The answer was no, so nothing was done.")
    why = "nobody can be asked here" if answer.cause == "nobody" else "it was not answered"
    raise FileAccessError(f"{text} That needs the user's consent, and {why}, so nothing was done.")


def failed(error: FileAccessError, kind: str, path: object = None) -> ToolOutput:
    """The result of a call that did nothing. `path` is what it names, where that is one path."""
    facts = Facts(kind=kind, path=legible(path) if isinstance(path, str) else None, first_error=error.message)
    return ToolOutput(content=said(error.message), is_error=True, facts=facts)


def said(text: str) -> tuple[TextBlock, ...]:
    """A result that is text."""
    return (TextBlock(text=text),)
