"""A thread as a request of the Responses API. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, cast

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import CachePolicy, Effort, Parameters, Thread, ToolDefinition
from jp.provider.base import Level, Model, ResponseDecoder, Sections, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.models import canonical_name, find_model
from jp.provider.openai.items import PROVIDER, answer_format, build_items, text_part, tool_of
from jp.provider.parameters import cache_not_sent, effort_of, is_off, merged, nearest_level, not_sent, sampling_of
from jp.provider.table.openai import PromptCache, is_own, prompt_cache

_USUAL_OUTPUT = 128_000
"""What a share of the longest output is taken of where that is unknown."""

_LONGEST_KEY = 64

_OBEYED: dict[CachePolicy, PromptCache] = {"off": "explicit", "long": "extended"}
"""Which caches a policy can be asked of."""

PROTECTED = frozenset({
    *("model", "input", "instructions", "tools", "stream", "store", "include", "background", "prompt"),
    *("previous_response_id", "conversation"),
})
"""What `other` cannot set: it would not be what the log says was sent."""


Summary = Literal["auto", "concise", "detailed", "none"]


class Reasoning(msgspec.Struct, frozen=True, kw_only=True):
    """Reasoning on the wire. `is_active` says whether the model may reason."""

    wire: JsonObject | None = None
    is_active: bool = False
    effort: Level | None = None


def reasoning_of(parameters: Parameters, model: Model, *, summary: Summary = "auto") -> Reasoning:
    """How the model reasons about a request, and how much of it is shown."""
    abilities, wanted = model.abilities, parameters.reasoning
    is_unasked = (wanted is None or is_off(parameters)) and not abilities.thinks_by_default
    if abilities.thinking == "none" or (is_unasked and "none" not in abilities.levels):
        return Reasoning()
    if is_unasked and wanted is None:
        return Reasoning()
    effort = abilities.levels[0] if is_off(parameters) else _level(parameters, model)
    wire: JsonObject = {} if effort is None else {"effort": effort}
    if effort != "none":
        wire |= _shown(model, summary)
    return Reasoning(wire=wire or None, is_active=effort != "none", effort=effort)


def _shown(model: Model, summary: Summary) -> JsonObject:
    """What makes reasoning visible, and keeps it in the prompt: what is left out would break the cache."""
    name = model.details.id
    if not is_own(name):
        return {}
    shown = {} if summary == "none" else {"summary": summary}
    return {**shown, "context": "all_turns"} if prompt_cache(canonical_name(name)) == "explicit" else shown


def _level(parameters: Parameters, model: Model) -> Level | None:
    abilities = model.abilities
    if parameters.reasoning in {None, "auto"}:
        return None if abilities.thinks_by_default else nearest_level("medium", abilities.levels)
    longest = parameters.max_tokens or model.details.max_output or _USUAL_OUTPUT
    return nearest_level(cast("Effort", effort_of(parameters, longest)), abilities.levels)


def sampling_sent(parameters: Parameters, model: Model, reasoning: Reasoning) -> JsonObject:
    """Temperature and the like, as far as the model takes them."""
    abilities = model.abilities
    if not abilities.sampling or (reasoning.is_active and not abilities.sampling_while_thinking):
        return {}
    return {name: value for name, value in sampling_of(parameters).items() if name != "top_k"}


def choice_of(parameters: Parameters, tools: Sequence[ToolDefinition]) -> str | JsonObject | None:
    """The choice of tool, None where that is the model's. A name is one of `tools`."""
    match parameters.tool_choice:
        case "auto":
            return None
        case ("none" | "required") as choice:
            return choice if tools else None
        case name:
            return {"type": "function", "name": name} if tools else None


def caching_of(thread: Thread) -> JsonObject:
    """What the request says of the prompt cache, its breakpoints aside."""
    policy, kind = thread.parameters.cache, prompt_cache(canonical_name(thread.model))
    if policy == "off":
        return {"prompt_cache_options": {"mode": "explicit"}} if kind == "explicit" else {}
    caching: JsonObject = {"prompt_cache_key": thread.conversation[:_LONGEST_KEY]} if thread.conversation else {}
    return {**caching, "prompt_cache_retention": "24h"} if policy == "long" and kind == "extended" else caching


def left_out(parameters: Parameters, model: Model, reasoning: Reasoning) -> tuple[str, ...]:
    """Sentences about the parameters that are not sent as they were asked for."""
    return (*_sampling_left_out(parameters, model, reasoning), *_unmet(parameters, model, reasoning))


def _sampling_left_out(parameters: Parameters, model: Model, reasoning: Reasoning) -> Iterator[str]:
    name = model.details.id
    sent = sampling_sent(parameters, model, reasoning)
    lost = [wanted for wanted in sampling_of(parameters) if wanted not in sent]
    unknown = [wanted for wanted in lost if wanted == "top_k"]
    if untaken := [wanted for wanted in lost if wanted != "top_k"]:
        while_reasoning = " while it reasons" if model.abilities.sampling else ""
        yield not_sent(untaken, f"{name!r} takes none{while_reasoning}")
    if any(word.strip() for word in parameters.stop_words):
        unknown.append("stop_words")
    if unknown:
        yield not_sent(unknown, "the Responses API knows none")
    if prompt_cache(canonical_name(name)) != _OBEYED.get(parameters.cache):
        yield from cache_not_sent(parameters.cache, f"{name!r} keeps prompts for a while, as long as it wants")


def _unmet(parameters: Parameters, model: Model, reasoning: Reasoning) -> Iterator[str]:
    name, wanted = model.details.id, parameters.reasoning
    if wanted in {None, "auto"}:
        return
    if is_off(parameters):
        if reasoning.is_active:
            yield f"{name!r} cannot wholly be kept from reasoning"
    elif model.abilities.thinking == "none":
        yield f"reasoning {wanted!r} not sent: {name!r} does not reason"
    elif isinstance(wanted, int):
        yield f"reasoning {wanted} sent as {reasoning.effort!r}: {name!r} takes no number of tokens"
    elif wanted in {"xhigh", "max"} and reasoning.effort != wanted:
        yield f"reasoning {wanted!r} sent as {reasoning.effort!r}, the most that {name!r} knows"


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


class OpenaiAdapter:
    """OpenAI's Responses API. `provider` is under what name it is known, `summary` how much reasoning is shown.

    `store` lets the server keep requests and answers.
    """

    renderer = RENDERER

    def __init__(self, *, provider: str = PROVIDER, summary: Summary = "auto", store: bool = False) -> None:
        self.id = provider
        self._store = store
        self._summary: Summary = summary

    def render(self, thread: Thread) -> WireRequest:
        """The request for `thread`."""
        return render(thread, provider=self.id, summary=self._summary, store=self._store)

    def sections(self, request: WireRequest) -> Sections:
        """The parts of `request` that prompt caches see."""
        return sections(request)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """The origins of the reasoning that `error` is about. This is hardly ever asked for."""
        from jp.provider.openai.items import locate

        return locate(thread, error.message, provider=self.id)

    def decoder(self, request: WireRequest) -> ResponseDecoder:
        """What reads the response to `request`. It is not needed before there is one."""
        from jp.provider.openai.response import OpenaiDecoder

        return OpenaiDecoder(request, provider=self.id)

    def authorization(self, key: str) -> tuple[tuple[str, str], ...]:
        """The header that carries the key."""
        return (("authorization", f"Bearer {key}"),)
