"""Render a thread as a request of any server that speaks Chat Completions, as the configuration describes it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import assert_never

from jp.config.entries import ServerConfig
from jp.conversation.entries import JsonObject
from jp.conversation.thread import Parameters, Thread
from jp.provider.base import Level
from jp.provider.chat.messages import Quirks, Server
from jp.provider.chat.request import Asked, ChatAdapter
from jp.provider.parameters import cache_not_sent, effort_of, is_off, nearest_level

KIND = "openai-compatible"

_LEVELS: tuple[Level, ...] = ("low", "medium", "high")
"""Levels that servers commonly accept as `reasoning_effort`."""

_LONGEST_OUTPUT = 32_000
"""Output limit that a number of tokens is a share of, if none is set: that of an unknown model is unknown."""


def create(settings: ServerConfig, provider: str) -> ChatAdapter:
    """Return the adapter of the server with the name `provider`."""
    quirks = Quirks(
        max_tokens_name=settings.max_tokens_name,
        system_role=settings.system_role,
        return_reasoning=settings.return_reasoning,
        structured=settings.structured,
        tool_choice=settings.tool_choice,
        images=settings.images,
        stream_usage=settings.stream_usage,
        call_ids=settings.call_ids,
        user_after_tool=settings.user_after_tool,
        probes=True,
    )
    server = Server(provider=provider, kind=KIND, quirks=quirks)
    return ChatAdapter(server, partial(asked, settings=settings, provider=provider))


def asked(thread: Thread, *, settings: ServerConfig, provider: str) -> Asked:
    """Return the reasoning settings in the server's format, if any are set."""
    parameters = thread.parameters
    kept = cache_not_sent(parameters.cache, "the server keeps what it wants")
    if parameters.reasoning in {None, "auto"}:
        return Asked(left_out=kept)
    fields = _fields(parameters, settings)
    return Asked(fields=fields, left_out=(*_unmet(parameters, fields, settings, provider), *kept))


def _fields(parameters: Parameters, settings: ServerConfig) -> JsonObject:
    match settings.reasoning:
        case "none":
            return {}
        case "effort":
            return {"reasoning_effort": _level(parameters)}
        case "enable_thinking":
            return {"chat_template_kwargs": {"enable_thinking": not is_off(parameters)}}
        case _:
            assert_never(settings.reasoning)


def _level(parameters: Parameters) -> str:
    effort = None if is_off(parameters) else effort_of(parameters, parameters.max_tokens or _LONGEST_OUTPUT)
    return "none" if effort is None else nearest_level(effort, _LEVELS) or "none"


def _unmet(parameters: Parameters, fields: JsonObject, settings: ServerConfig, provider: str) -> Iterator[str]:
    """Sentences about reasoning that is not asked for as it was set."""
    wanted = parameters.reasoning
    if settings.reasoning == "none":
        yield f"reasoning {wanted!r} not sent: `providers.llm.{provider}.reasoning` says how the server is asked for it"
    elif settings.reasoning == "enable_thinking":
        if not is_off(parameters):
            yield f"reasoning {wanted!r} sent as on: the server knows on and off only"
    elif isinstance(wanted, int):
        yield f"reasoning {wanted} sent as {fields['reasoning_effort']!r}: the server takes no number of tokens"
    elif wanted in {"xhigh", "max"}:
        yield f"reasoning {wanted!r} sent as {fields['reasoning_effort']!r}, the most that servers commonly know"
