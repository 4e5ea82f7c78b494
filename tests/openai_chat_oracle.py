"""What OpenAI's SDK says of Chat Completions: whether a request is one, and what a stream says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from stories import Story, Told

if TYPE_CHECKING:
    from openai.types.chat.chat_completion_chunk import Choice, ChoiceDeltaToolCall

_FINISHES = {"stop": "stop", "tool_calls": "tools", "length": "length"}


@cache
def _adapter() -> Any:
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
    from pydantic import TypeAdapter

    return TypeAdapter(CompletionCreateParamsStreaming)


def _plain(value: object) -> object:
    """The value with everything lazy read: only reading validates it."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in cast("Mapping[str, object]", value).items()}
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return [_plain(item) for item in cast("Iterable[object]", value)]


def assert_accepted(body: dict[str, Any], *, own: Iterable[str], own_of_answers: Iterable[str] = ()) -> None:
    """The SDK's types have a place for everything in `body`, and miss nothing.

    What they do not know they would drop, so what comes out has to equal what went in. `own` are the fields that only
    this server knows, `own_of_answers` those of an assistant's message.
    """
    known = {name: value for name, value in body.items() if name not in set(own)}
    hidden = set(own_of_answers)
    known["messages"] = [
        {name: value for name, value in message.items() if name not in hidden} for message in body["messages"]
    ]

    assert _plain(_adapter().validate_python(known)) == known


class _Reading:
    """One answer, put together from what the SDK makes of its events."""

    def __init__(self) -> None:
        self._texts = {"reasoning": "", "message": ""}
        self._calls: dict[int, Told] = {}
        self._finish = ""

    def take(self, choice: Choice) -> None:
        self._finish = choice.finish_reason or self._finish
        extra = choice.delta.model_extra or {}
        self._texts["reasoning"] += extra.get("reasoning") or extra.get("reasoning_content") or ""
        self._texts["message"] += choice.delta.content or ""
        for piece in choice.delta.tool_calls or ():
            self._call(piece)

    def story(self) -> Story:
        blocks = [Told(kind, text) for kind, text in self._texts.items() if text]
        return Story([*blocks, *self._calls.values()], _FINISHES[self._finish])

    def _call(self, piece: ChoiceDeltaToolCall) -> None:
        call = self._calls.setdefault(piece.index, Told("tool_call"))
        call.call_id = call.call_id or piece.id or ""
        if piece.function is not None:
            call.name += piece.function.name or ""
            call.text += piece.function.arguments or ""


def read_by_sdk(url: str) -> Story:
    """What the SDK reads of a stream: reasoning, text, then calls. The count of tokens is left out."""
    import openai

    reading = _Reading()
    with openai.OpenAI(api_key="test", base_url=url, max_retries=0) as client:
        asked = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}], stream=True)
        for choice in (choice for chunk in asked for choice in chunk.choices):
            reading.take(choice)
    return reading.story()
