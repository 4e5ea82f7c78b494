"""The model as the one who answers what a tool asks: a request of its own, beside the turn.

What was asked and answered is in the log, with the tokens that it took; no request shows it to the model again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

from jp.cli.query.inquiry_words import inquiry_thread, value_in
from jp.conversation.entries import Question, ToolCallRequest, Usage, add_usage
from jp.provider.base import Provider, WireRequest
from jp.provider.errors import RETRYABLE, ProviderError
from jp.provider.parts import DataDelta, TextDelta, UsageReport
from jp.provider.registry import ModelId
from jp.tool.answers import expected, fits
from jp.tool.base import Answer, Stream, Unanswered
from jp.turn.ports import Cap

_ATTEMPTS = 2


class ModelRespondent:
    """A `Respondent` that asks a model. `cap` may forbid it; `log` hears why there is no answer."""

    def __init__(self, model: ModelId, provider: Provider, *, cap: Cap, log: Callable[[str], None]) -> None:
        self._model = model
        self._provider = provider
        self._cap = cap
        self._log = log

    async def answer(self, question: Question, call: ToolCallRequest, stream: Stream) -> Answer | Unanswered:
        """Ask, and once more where what comes is no answer."""
        request = self._provider.render(inquiry_thread(self._model.name, question, call, stream.entries))
        asked = _Asked()
        problem = ""
        for _ in range(_ATTEMPTS):
            if not self._cap.permits(request):
                problem = "the limit on costs leaves nothing for it"
                break
            try:
                value = value_in(await asked.ask(self._provider, request))
            except ProviderError as error:
                problem = error.message
                if error.kind not in RETRYABLE:
                    break
                continue
            if fits(question, value):
                return Answer(value=value, by="assistant", model=str(self._model), usage=asked.usage)
            problem = f"its answer is not {expected(question)}"
        self._log(f"{call.name} asks {question.text!r}, and {str(self._model)!r} gives no answer: {problem}")
        return Unanswered(cause="nobody")


class _Asked:
    """Requests for one answer, and what they took together; None where nobody has said so."""

    def __init__(self) -> None:
        self.usage: Usage | None = None

    async def ask(self, provider: Provider, request: WireRequest) -> str:
        texts: list[str] = []
        taken: Usage | None = None
        async with aclosing(provider.stream(request)) as parts:
            async for part in parts:
                match part:
                    case TextDelta(text=text) | DataDelta(text=text):
                        texts.append(text)
                    case UsageReport(usage=usage):
                        taken = usage
                    case _:
                        pass
        if taken is not None:
            self.usage = taken if self.usage is None else add_usage(self.usage, taken)
        return "".join(texts)
