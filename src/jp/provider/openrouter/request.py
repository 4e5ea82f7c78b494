"""OpenRouter: many vendors' models behind one Chat Completions API."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import JsonObject
from jp.conversation.thread import AssistantReasoning, CachePolicy, Parameters, Thread, ToolCall, ToolResult, UserText
from jp.provider.base import Abilities, Level, Model, WireRequest
from jp.provider.chat.messages import Quirks, Server
from jp.provider.chat.request import ChatAdapter, ServerOptions, choice_of
from jp.provider.models import is_made_by, model_for
from jp.provider.parameters import cache_not_sent, effort_of, is_off, nearest_level, not_sent, object_at, sampling_of

PROVIDER = "openrouter"

_LEVELS: tuple[Level, ...] = ("minimal", "low", "medium", "high", "xhigh")
_LEAST_BUDGET = 1024
_ASSUMED_OUTPUT = 32_000
"""Output limit that a number of tokens is a share of, if none is set."""

_OFF: JsonObject = {"enabled": False}


class Reasoning(msgspec.Struct, frozen=True, kw_only=True):
    """Reasoning on the wire. `is_active` says whether the model may reason."""

    wire: JsonObject | None
    is_active: bool
    omitted: tuple[str, ...] = ()


def reasoning_of(thread: Thread, model: Model, *, forced: bool) -> Reasoning:
    """Return the reasoning settings of a request. `forced` means that it has to call a tool."""
    parameters, abilities = thread.parameters, model.abilities
    wanted = parameters.reasoning
    if abilities.thinking == "none":
        is_unmet = wanted not in {None, "auto"} and not is_off(parameters)
        why = f"reasoning {wanted!r} not sent: {thread.model!r} does not reason"
        return Reasoning(wire=None, is_active=False, omitted=(why,) if is_unmet else ())
    if is_off(parameters):
        return _off(parameters, abilities, thread.model)
    is_active = wanted is not None or abilities.thinks_by_default
    if is_active and abilities.thinking_off == "disabled" and _must_not(thread, forced=forced):
        why = f"reasoning {wanted!r} not sent: {thread.model!r} does not reason about this call"
        return Reasoning(wire=_OFF, is_active=False, omitted=() if wanted in {None, "auto"} else (why,))
    wire = _wire(parameters, abilities)
    omitted = tuple(_unmet(parameters, wire or {}))
    return Reasoning(wire=wire, is_active=is_active, omitted=omitted)


def _off(parameters: Parameters, abilities: Abilities, name: str) -> Reasoning:
    if abilities.thinking_off == "disabled":
        return Reasoning(wire=_OFF, is_active=False)
    least = nearest_level("xlow", _levels(parameters, abilities))
    hidden: JsonObject = {"effort": least, "exclude": True}
    return Reasoning(wire=hidden, is_active=True, omitted=(f"{name!r} cannot wholly be kept from reasoning",))


def _levels(parameters: Parameters, abilities: Abilities) -> tuple[Level, ...]:
    """Return the levels that a model is sent: those that OpenRouter lists for it, else all that OpenRouter maps."""
    if "levels" in parameters.abilities:
        return abilities.levels
    return (*_LEVELS, "max") if "max" in abilities.levels else _LEVELS


def _must_not(thread: Thread, *, forced: bool) -> bool:
    """Return whether Anthropic's API would reject a request with reasoning.

    With reasoning, a call cannot be forced, and an answer that called a tool has to begin with a thought.
    """
    return _maker(thread.model) == "anthropic" and (forced or _goes_on_without_thought(thread))


def _goes_on_without_thought(thread: Thread) -> bool:
    """Return whether the last answer called tools and did not begin with a thought."""
    has_calls = False
    for event in reversed(thread.events):
        match event:
            case UserText(synthetic=False):
                break
            case ToolCall():
                has_calls = True
            case AssistantReasoning(metadata=metadata) if has_calls:
                is_own = is_made_by(metadata, PROVIDER, thread.model)
                return not is_own or "reasoning_details" not in (metadata or {})
            case ToolResult() if has_calls:
                break
            case _:
                continue
    return has_calls


def _wire(parameters: Parameters, abilities: Abilities) -> JsonObject | None:
    match parameters.reasoning:
        case None:
            return None
        case "auto":
            return {"enabled": True}
        case int(tokens) if abilities.budgets:
            return {"max_tokens": max(_LEAST_BUDGET, min(tokens, _ceiling(parameters, tokens)))}
        case _:
            effort = effort_of(parameters, parameters.max_tokens or _ASSUMED_OUTPUT)
            level = None if effort is None else nearest_level(effort, _levels(parameters, abilities))
            return {"enabled": True} if level is None else {"effort": level}


def _ceiling(parameters: Parameters, tokens: int) -> int:
    """Thoughts and answer share the longest output."""
    longest = parameters.max_tokens
    return tokens if longest is None else longest - longest // 10


def _unmet(parameters: Parameters, wire: JsonObject) -> Iterator[str]:
    """Sentences about reasoning that is not sent as it was asked for."""
    wanted, level = parameters.reasoning, wire.get("effort")
    if wanted == "max" and level != "max":
        yield f"reasoning 'max' sent as {level!r}, the most that the model is known to take"
    elif isinstance(wanted, int) and wire.get("max_tokens") != wanted:
        if "max_tokens" not in wire:
            yield f"reasoning {wanted} sent as {level!r}: the model takes no number of tokens"
            return
        sent = wire["max_tokens"]
        why = (
            "the least that there is"
            if sent > wanted
            else f"the longest output, {parameters.max_tokens}, holds the answer too"
        )
        yield f"reasoning {wanted} sent as {sent}: {why}"
    elif parameters.abilities and level is not None and wanted not in {"xlow", level}:
        yield f"reasoning {wanted!r} sent as {level!r}, the nearest that OpenRouter lists for the model"


QUIRKS = Quirks(
    return_reasoning="reasoning",
    documents=True,
    media=frozenset({
        *("audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3"),
        *("video/mp4", "video/mpeg", "video/quicktime", "video/webm"),
    }),
    stream_usage=False,
    text_parts=True,
    numbers_calls=True,
)
"""It reports tokens unasked, and gives the vendors what they take of the rest."""

_LONGEST_SESSION = 128


_SERVER = Server(provider=PROVIDER, kind=PROVIDER, quirks=QUIRKS)
_MISTRAL = replace(_SERVER, quirks=replace(QUIRKS, call_ids="short", user_after_tool=False))
"""Server settings for models of Mistral, whose requests are passed on unchanged to a stricter server."""


class OpenrouterAdapter(ChatAdapter):
    """OpenRouter's Chat Completions. `headers` say on whose behalf it is asked.

    `store` lets it pass requests on to vendors that keep them.
    """

    def __init__(self, headers: tuple[tuple[str, str], ...], *, store: bool = False) -> None:
        self._headers = headers
        self._store = store
        super().__init__(_SERVER)

    def render(self, thread: Thread) -> WireRequest:
        """Return the request for `thread`."""
        server = _MISTRAL if _maker(thread.model) == "mistralai" else _SERVER
        request = self.render_for(thread, server, asked(thread, headers=self._headers))
        if self._store:
            return request
        # Behind the parameters, which say nothing of where requests may be kept.
        routing: JsonObject = {**object_at(request.body, "provider"), "data_collection": "deny"}
        return replace(request, body={**request.body, "provider": routing})


def asked(thread: Thread, *, headers: tuple[tuple[str, str], ...] = ()) -> ServerOptions:
    """Return the settings that only OpenRouter has: reasoning, one vendor for a conversation, prompt caching."""
    parameters = thread.parameters
    model = model_for(PROVIDER, thread)
    choice = choice_of(parameters, thread.tools, model, QUIRKS)
    reasoning = reasoning_of(thread, model, forced=choice.forces)
    fields: JsonObject = {} if reasoning.wire is None else {"reasoning": reasoning.wire}
    if thread.conversation and parameters.cache != "off":
        fields["session_id"] = thread.conversation[:_LONGEST_SESSION]
    abilities = model.abilities
    takes_sampling = abilities.sampling and (abilities.sampling_while_thinking or not reasoning.is_active)
    unsampled = () if takes_sampling else tuple(sampling_of(parameters))
    why = f"{thread.model!r} takes none{' while it reasons' if abilities.sampling else ''}"
    is_told = _maker(thread.model) == "anthropic"
    kept = () if is_told else cache_not_sent(parameters.cache, f"{thread.model!r} keeps what its vendor wants")
    return ServerOptions(
        fields=fields,
        headers=headers,
        omitted=(*([not_sent(unsampled, why)] if unsampled else []), *reasoning.omitted, *kept),
        sampling=takes_sampling,
        marker=_marker(thread.model, parameters.cache),
    )


def _marker(model: str, policy: CachePolicy) -> JsonObject | None:
    """Return the marker of cache breakpoints, None for vendors that cache automatically."""
    if policy == "off":
        return None
    if _maker(model) == "anthropic":
        return {"type": "ephemeral", "ttl": "1h"} if policy == "long" else {"type": "ephemeral"}
    return {"type": "ephemeral"} if _maker(model) == "google" else None


def _maker(model: str) -> str:
    """Return the vendor of a model; `~` begins the name of an alias for the latest of a family."""
    return model.removeprefix("~").partition("/")[0]
