"""A thread as a request of the Messages API, and back as what a prompt cache sees. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import CachePolicy, Thread, ToolDefinition
from jp.provider.abilities import Model
from jp.provider.anthropic.cache_points import cache_points
from jp.provider.anthropic.content import text_block
from jp.provider.anthropic.messages import (
    PROVIDER,
    THINKING_TYPES,
    Message,
    Messages,
    build_messages,
    settle_trailing_answer,
)
from jp.provider.anthropic.parameters import PROTECTED, Choice, choice_of, left_out, longest_output, takes_sampling
from jp.provider.anthropic.thinking import BINDING_BETA, Thinking, thinking_of
from jp.provider.asking import merged, sampling_of
from jp.provider.base import Sections, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.models import find_model

RENDERER = 3

VERSION = "2023-06-01"
"""The version of the API. Later ones take no temperature, which models up to 4.6 know."""

_PATH = "/v1/messages"
_MARKER = "cache_control"


def _tool(tool: ToolDefinition, model: Model) -> JsonObject:
    wire: JsonObject = {"name": tool.name}
    if tool.description.strip():
        wire["description"] = tool.description
    wire["input_schema"] = tool.parameters if "type" in tool.parameters else {"type": "object", **tool.parameters}
    if model.details.id.startswith("claude-"):
        # Without it the API holds back each argument until it is complete: minutes of silence for a large one.
        wire["eager_input_streaming"] = True
    return wire


def _answers_a_thoughtless_call(messages: Sequence[Message]) -> bool:
    """Whether the last answer called tools without having begun with a thought."""
    answer = next((message for message in reversed(messages) if message.role == "assistant"), None)
    if answer is None:
        return False
    kinds = [block["type"] for block in answer.content]
    return "tool_use" in kinds and kinds[0] not in THINKING_TYPES


def _marker(policy: CachePolicy) -> JsonObject:
    return {"type": "ephemeral", "ttl": "1h"} if policy == "long" else {"type": "ephemeral"}


def _plead(choice: Choice, conversation: Messages) -> JsonObject | None:
    """Ask for a call in words, where there are any.

    Where the user asked, not at the end: it has to stay in its place when the model is asked again.
    """
    if not choice.plea or conversation.asked is None:
        return None
    plea = text_block(choice.plea)
    conversation.asked.content.append(plea)
    return plea


def _output_config(thinking: Thinking, schema: JsonObject | None, model: Model) -> JsonObject:
    config: JsonObject = {} if thinking.effort is None else {"effort": thinking.effort}
    if schema is not None:
        from jp.provider.anthropic.schema import answer_format

        wanted = answer_format(schema, model)
        return config if wanted is None else {**config, "format": wanted}
    return config


def _headers(betas: Sequence[str], thinking: Thinking) -> tuple[tuple[str, str], ...]:
    wanted = [*betas, BINDING_BETA] if thinking.wire is not None and "block_binding" in thinking.wire else list(betas)
    headers = [("anthropic-version", VERSION)]
    if wanted:
        headers.append(("anthropic-beta", ",".join(dict.fromkeys(wanted))))
    return tuple(headers)


def render(thread: Thread, *, betas: Sequence[str] = (), provider: str = PROVIDER) -> WireRequest:
    """The request for `thread`. The same thread gives the same bytes. `provider` is whose signatures are its own.

    Raises:
        ConfigurationError: a parameter is one that cannot be set.
        ProviderError: a new attachment is one that the API does not take (`unsupported`), or there is nothing to send
            (`invalid_request`).
    """
    model = find_model(PROVIDER, thread.model)
    parameters = thread.parameters
    conversation = build_messages(thread, provider=provider)
    messages = conversation.messages
    settle_trailing_answer(messages)
    if not messages:
        raise ProviderError("there is no message to send", kind="invalid_request")
    system = [text_block(part) for part in thread.system if part.strip()]
    tools = [_tool(tool, model) for tool in thread.tools]
    max_tokens = longest_output(parameters, model)
    choice = choice_of(parameters, thread.tools, model)
    plain = choice.forces or _answers_a_thoughtless_call(messages)
    thinking = thinking_of(parameters, model, max_tokens=max_tokens, plain=plain)
    plea = _plead(choice, conversation)
    if parameters.cache != "off":
        marked = cache_points(tools, system, messages, last_resource=conversation.last_resource, passing=plea)
        for block in marked:
            block[_MARKER] = _marker(parameters.cache)
    optional: JsonObject = {
        "system": system,
        "tools": tools,
        "tool_choice": choice.wire,
        "thinking": thinking.wire,
        "output_config": _output_config(thinking, thread.schema, model),
        "stop_sequences": [word for word in parameters.stop_words if word.strip()],
    }
    body: JsonObject = {"model": thread.model, "max_tokens": max_tokens, "stream": True}
    body.update({name: value for name, value in optional.items() if value})
    if takes_sampling(model, thinking):
        body.update(sampling_of(parameters))
    body["messages"] = [{"role": message.role, "content": message.content} for message in messages]
    return WireRequest(
        path=_PATH,
        model=thread.model,
        body=merged(body, parameters.other, protected=PROTECTED),
        headers=_headers(betas, thinking),
        left_out=left_out(parameters, model, thinking, forced=choice.forces),
        prefix_bound=(thread.model, *model.abilities.reads) if model.abilities.bound_thinking else (),
    )


def _canonical(block: JsonObject) -> bytes:
    unmarked = {name: value for name, value in block.items() if name != _MARKER}
    return msgspec.json.encode(unmarked, order="deterministic")


def sections(request: WireRequest) -> Sections:
    """The parts of `request` that prompt caches see, without the markers."""
    body = request.body
    tools: list[JsonObject] = body.get("tools", [])
    system: list[JsonObject] = body.get("system", [])
    messages: list[JsonObject] = body["messages"]
    return Sections(
        tools=tuple(map(_canonical, tools)),
        system=tuple(map(_canonical, system)),
        messages=tuple(
            (msgspec.json.encode(message["role"]), *map(_canonical, message["content"])) for message in messages
        ),
    )
