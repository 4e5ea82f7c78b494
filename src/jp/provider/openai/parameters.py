"""How a request is asked for: reasoning, sampling, the choice of tool, the prompt cache. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, cast

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import CachePolicy, Effort, Parameters, Thread, ToolDefinition
from jp.provider.abilities import Level, Model
from jp.provider.asking import cache_not_sent, not_sent, sampling_of
from jp.provider.effort import effort_of, is_off, nearest_level
from jp.provider.models import canonical_name
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
