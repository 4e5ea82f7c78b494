"""Questions of tools that a model answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any, cast

import msgspec

from jp.conversation.entries import AnyEntry, ChatRequest, JsonObject, Question, ToolCallRequest, Usage, add_usage
from jp.conversation.json_text import JsonValue, find_json
from jp.conversation.thread import Parameters, Thread, UserText
from jp.provider.base import DataDelta, Provider, TextDelta, UsageReport, WireRequest
from jp.provider.errors import RETRYABLE, ProviderError
from jp.provider.registry import ModelId
from jp.tool.base import Answer, Stream, Unanswered
from jp.tool.consent import ANSWER, answer_schema, expected, fits
from jp.turn.ports import Cap

_LONGEST = 8_000
"""Of a text so many characters are told: its beginning and its end."""

_MOST_TOKENS = 2_000
_SYSTEM = (
    "A tool that you have called asks something while it runs. Answer as the user's request and your call suggest; "
    "where they do not tell, take the answer that changes and deletes the least. Say nothing but a JSON object with "
    f'the member "{ANSWER}".'
)


def inquiry_thread(model: str, question: Question, call: ToolCallRequest, entries: Sequence[AnyEntry]) -> Thread:
    """Return the request for an answer to what `call`, at the end of the stream `entries`, asks."""
    requests = (entry.content for entry in reversed(entries) if isinstance(entry, ChatRequest))
    arguments = call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()
    parts = [
        f"<request>\n{_excerpt(next(requests, ''))}\n</request>",
        f"<call>\n{call.name} {_excerpt(arguments)}\n</call>",
        f"<question>\n{_excerpt(question.text)}\n</question>",
        f"The answer is {expected(question)}{_proposed(question)}.",
    ]
    schema = answer_schema(question)
    return Thread(
        model=model,
        system=(_SYSTEM,),
        tools=(),
        events=(UserText(text="\n\n".join(parts), turn=0, schema=schema),),
        parameters=Parameters(max_tokens=_MOST_TOKENS, reasoning="off", cache="off"),
        schema=schema,
    )


def _proposed(question: Question) -> str:
    if question.default is None:
        return ""
    return f"; the tool proposes {msgspec.json.encode(question.default).decode()}"


def _excerpt(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters …]\n{text[-half:]}"


def value_in(text: str) -> Any:
    """Return the value that a model has answered, whatever it is; None where it is nothing."""
    found = find_json(text)
    value = found.value if isinstance(found, JsonValue) else None
    return cast("dict[str, Any]", value).get(ANSWER) if isinstance(value, dict) else None


_ATTEMPTS = 2


class ModelRespondent:
    """A `Respondent` that asks a model. `cap` may forbid it; `log` hears why there is no answer."""

    def __init__(
        self, model: ModelId, provider: Provider, *, cap: Cap, log: Callable[[str], None], abilities: JsonObject
    ) -> None:
        self._model = model
        self._abilities = abilities
        self._provider = provider
        self._cap = cap
        self._log = log

    async def answer(self, question: Question, call: ToolCallRequest, stream: Stream) -> Answer | Unanswered:
        """Ask, and once more where what comes is no answer."""
        thread = inquiry_thread(self._model.name, question, call, stream.entries)
        parameters = msgspec.structs.replace(thread.parameters, abilities=self._abilities)
        request = self._provider.render(msgspec.structs.replace(thread, parameters=parameters))
        asked = _Requests()
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


class _Requests:
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
