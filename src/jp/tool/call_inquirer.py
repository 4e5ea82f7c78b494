"""Who answers the questions of one call: whoever does it, in time that is not the call's, and so that it is told of."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING

from jp.conversation.entries import Question, ToolCallRequest
from jp.tool.base import Answer, Inquired, Inquirer, ToolEvent, Unanswered

if TYPE_CHECKING:
    from anyio import CancelScope


class CallInquirer:
    """Passes questions on to `inquirer`. `scope` stops the call; `is_unanswered` says that nobody could answer."""

    def __init__(
        self, call: ToolCallRequest, inquirer: Inquirer, scope: CancelScope, tell: Callable[[ToolEvent], None]
    ) -> None:
        self.is_unanswered = False
        self._call = call
        self._inquirer = inquirer
        self._scope = scope
        self._tell = tell
        self._asking = 0
        self._left = inf

    async def ask(self, question: Question, *, person_only: bool = False) -> Answer | Unanswered:
        """See the port."""
        with self._standing_clock():
            answer = await self._inquirer.ask(question, person_only=person_only)
        if isinstance(answer, Answer):
            self._tell(Inquired(call=self._call, question=question, answer=answer))
        elif answer.cause == "nobody":
            self.is_unanswered = True
        return answer

    @contextmanager
    def _standing_clock(self) -> Generator[None]:
        """Let no time of the call pass, as long as any of its questions is open."""
        from anyio import current_time

        if not self._asking:
            self._left = self._scope.deadline - current_time()
            self._scope.deadline = inf
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self._scope.deadline = current_time() + self._left
