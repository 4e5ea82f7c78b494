"""What the official SDK says of Chat Completions: whether a request is one, and what a stream says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import msgspec
import openai
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from pydantic import TypeAdapter

from certificates import WITHOUT_CERTIFICATES
from jp.conversation.entries import Usage
from sdk_types import assert_typed
from stories import Story, Told

_FOREIGN = {
    "": frozenset({"top_k", "reasoning", "session_id", "chat_template_kwargs", "reasoning_format", "provider"}),
    "messages": frozenset({"reasoning", "reasoning_content", "reasoning_details"}),
    "tool_calls": frozenset({"index"}),
    "content": frozenset({"cache_control"}),
    "response_format": frozenset({"schema"}),
}
"""What servers take that OpenAI does not, by where it stands."""

ANY = frozenset(name for names in _FOREIGN.values() for name in names)


_ADAPTER = TypeAdapter[Any](CompletionCreateParamsStreaming)


def _own(value: object, place: str = "", *, foreign: frozenset[str]) -> object:
    """The value without what only other servers take."""
    if isinstance(value, list):
        return [_own(item, place, foreign=foreign) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    given = cast("dict[str, object]", value)
    omitted = _FOREIGN.get(place, frozenset[str]()) & foreign
    return {name: _own(item, name, foreign=foreign) for name, item in given.items() if name not in omitted}


def assert_accepted(body: dict[str, Any], *, foreign: Iterable[str] = ANY) -> None:
    """The SDK's types have a place for everything in `body`, and miss nothing.

    `foreign` are the names of what this server takes and OpenAI does not.
    """
    assert_typed(cast("dict[str, Any]", _own(body, foreign=frozenset(foreign))), _ADAPTER)


def story_of_sdk(url: str) -> Story:
    """The SDK's reading of what a server streams: one answer, its pieces put together."""
    state: Any = ChatCompletionStreamState()
    thoughts: list[str] = []
    usage: Any = None
    reaching = openai.DefaultHttpxClient(verify=WITHOUT_CERTIFICATES)
    with openai.OpenAI(api_key="test", base_url=url, max_retries=0, http_client=reaching) as client:
        stream = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}], stream=True)
        for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                extra: dict[str, Any] = choice.delta.model_extra or {}
                thoughts.append(extra.get("reasoning") or extra.get("reasoning_content") or "")
            state.handle_chunk(chunk)
    choice: Any = state.get_final_completion().choices[0]
    return Story(_blocks("".join(thoughts), choice.message), str(choice.finish_reason), _usage(usage))


def _blocks(thought: str, message: Any) -> list[Told]:
    blocks = [Told("reasoning", thought)] if thought else []
    if message.content:
        blocks.append(Told("message", message.content))
    for call in message.tool_calls or ():
        arguments = msgspec.json.encode(msgspec.json.decode(call.function.arguments or "{}")).decode()
        blocks.append(Told("tool_call", arguments, call_id=call.id, name=call.function.name))
    return blocks


def _usage(usage: Any) -> Usage:
    if usage is None:
        return Usage()
    cached = (usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens) or 0
    reasoning = (usage.completion_tokens_details and usage.completion_tokens_details.reasoning_tokens) or 0
    return Usage(
        input=usage.prompt_tokens - cached,
        output=usage.completion_tokens,
        cache_read=cached,
        reasoning=min(reasoning, usage.completion_tokens),
    )
