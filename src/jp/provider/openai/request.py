"""A thread as a request of the Responses API, and back as what a prompt cache sees. Pure.

The server need not keep anything: every request holds the whole conversation, and is refused rather than cut where it
is too long.
"""

from __future__ import annotations

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Thread
from jp.provider.asking import merged
from jp.provider.base import Sections, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.models import canonical_name, find_model
from jp.provider.openai.content import text_part
from jp.provider.openai.items import PROVIDER, build_items
from jp.provider.openai.parameters import (
    PROTECTED,
    Summary,
    caching_of,
    choice_of,
    left_out,
    reasoning_of,
    sampling_sent,
)
from jp.provider.openai.strictness import answer_format, tool_of
from jp.provider.table.openai import is_own, prompt_cache

RENDERER = 2

_PATH = "/v1/responses"
_MARKER = "prompt_cache_breakpoint"


def _mark(part: JsonObject | None) -> None:
    if part is not None:
        part[_MARKER] = {"mode": "explicit"}


def render(thread: Thread, *, provider: str = PROVIDER, summary: Summary = "auto", store: bool = False) -> WireRequest:
    """The request for `thread`. The same thread gives the same bytes.

    `provider` is whose reasoning is its own, `summary` how much is to be shown of it. `store` lets the server keep
    the request and its answer; it makes no use of them.

    Raises:
        ConfigurationError: a parameter is one that cannot be set.
        ProviderError: a new attachment is one that the model does not take (`unsupported`), or there is nothing to
            send (`invalid_request`).
    """
    model = find_model(PROVIDER, thread.model)
    model = msgspec.structs.replace(model, details=msgspec.structs.replace(model.details, id=thread.model))
    parameters = thread.parameters
    conversation = build_items(thread, model, provider=provider)
    if not conversation.items:
        raise ProviderError("there is no message to send", kind="invalid_request")
    system = [text_part(text) for text in thread.system if text.strip()]
    if parameters.cache != "off" and prompt_cache(canonical_name(thread.model)) == "explicit":
        _mark(system[-1] if system else None)
        _mark(conversation.last_resource)
    reasoning = reasoning_of(parameters, model, summary=summary)
    wanted = None if thread.schema is None else answer_format(thread.schema, model)
    has_reasoning = model.abilities.thinking != "none" and is_own(thread.model)
    optional: JsonObject = {
        "include": ["reasoning.encrypted_content"] if has_reasoning else None,
        "tools": [tool_of(tool, model) for tool in thread.tools],
        "tool_choice": choice_of(parameters, thread.tools),
        "reasoning": reasoning.wire,
        "text": None if wanted is None else {"format": wanted},
        "max_output_tokens": parameters.max_tokens,
        **sampling_sent(parameters, model, reasoning),
        **caching_of(thread),
    }
    body: JsonObject = {
        "model": thread.model,
        "stream": model.abilities.streams,
        "store": store,
        "truncation": "disabled",
        **{name: value for name, value in optional.items() if value not in (None, [])},
    }
    prompt: list[JsonObject] = [{"type": "message", "role": "system", "content": system}] if system else []
    body["input"] = [*prompt, *conversation.items]
    return WireRequest(
        path=_PATH,
        model=thread.model,
        body=merged(body, parameters.other, protected=PROTECTED),
        framing="sse" if model.abilities.streams else "json",
        left_out=left_out(parameters, model, reasoning),
        prefix_bound=(thread.model, *model.abilities.reads) if model.abilities.bound_thinking else (),
    )


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _unmarked(part: JsonObject) -> JsonObject:
    return {name: value for name, value in part.items() if name != _MARKER}


def _blocks(item: JsonObject) -> tuple[bytes, ...]:
    if item.get("role") not in {"user", "system"}:
        return (_canonical(item),)
    parts: list[JsonObject] = item["content"]
    return tuple(_canonical(_unmarked(part)) for part in parts)


def _bound_settings(request: WireRequest) -> tuple[bytes, ...]:
    """Return the parameters whose change invalidates reasoning (guides/keep-prefix-unchanged, 2026-11-22)."""
    reasoning: JsonObject = request.body.get("reasoning") or {}
    text: JsonObject = request.body.get("text") or {}
    return (_canonical(reasoning.get("effort")), _canonical(text.get("format")))


def sections(request: WireRequest) -> Sections:
    """The parts of `request` that prompt caches see, without the markers."""
    items: list[JsonObject] = request.body["input"]
    tools: list[JsonObject] = request.body.get("tools", [])
    has_system = items[0].get("role") == "system"
    return Sections(
        tools=tuple(map(_canonical, tools)),
        system=_blocks(items[0]) if has_system else (),
        messages=tuple(
            (_canonical(item.get("role", item["type"])), *_blocks(item)) for item in items[1 if has_system else 0 :]
        ),
        settings=_bound_settings(request) if request.prefix_bound else (),
    )
