"""Render a thread as a request of llama.cpp's Chat Completions. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Parameters, Thread
from jp.provider.base import Model, WireRequest
from jp.provider.chat.messages import Quirks, Server
from jp.provider.chat.request import ChatAdapter, ServerOptions
from jp.provider.models import model_for
from jp.provider.parameters import cache_not_sent, effort_of, is_off, nearest_level

PROVIDER = "llamacpp"

ReasoningFormat = Literal["auto", "deepseek", "none"]

_WORDS = frozenset({"auto", "none", "required"})
"""The choices of tool that the server knows."""

_ASSUMED_OUTPUT = 16_384
"""Output limit that a number of tokens is a share of, if none is set."""


class LlamacppAdapter(ChatAdapter):
    """llama.cpp's Chat Completions. `reasoning_format` is how the server is to separate reasoning."""

    def __init__(self, *, provider: str = PROVIDER, reasoning_format: ReasoningFormat = "auto") -> None:
        self._told = Server(provider=provider, kind=PROVIDER, quirks=_quirks(tool_choice=True))
        self._asked = Server(provider=provider, kind=PROVIDER, quirks=_quirks(tool_choice=False))
        self._format: ReasoningFormat = reasoning_format
        super().__init__(self._told)

    def render(self, thread: Thread) -> WireRequest:
        """Return the request for `thread`.

        A required tool is named in words: the server reads an object as "auto", and offering only that tool would
        change the beginning of the prompt, which its cache has.
        """
        names_tool = bool(thread.tools) and thread.parameters.tool_choice not in _WORDS
        server = self._asked if names_tool else self._told
        return self.render_for(thread, server, asked(thread, self._format, names_tool=names_tool))


def _quirks(*, tool_choice: bool) -> Quirks:
    return Quirks(return_reasoning="reasoning_content", tool_choice=tool_choice, probes=True)


def asked(thread: Thread, reasoning_format: ReasoningFormat, *, names_tool: bool) -> ServerOptions:
    """Return the settings of reasoning and tool choice if they are set; else the server's own apply."""
    parameters, model = thread.parameters, model_for(PROVIDER, thread)
    fields: JsonObject = {} if reasoning_format == "auto" else {"reasoning_format": reasoning_format}
    if names_tool:
        fields["tool_choice"] = "required"
    if template := _template(parameters, model):
        fields["chat_template_kwargs"] = template
    kept = cache_not_sent(parameters.cache, "the server keeps what it wants")
    return ServerOptions(fields=fields, omitted=(*_unmet(parameters, template), *kept))


def _template(parameters: Parameters, model: Model) -> JsonObject:
    """Return the arguments of the model's template: whether to think, and how much if it supports that."""
    if parameters.reasoning is None:
        return {}
    if is_off(parameters):
        least = model.abilities.levels[:1]
        return {"enable_thinking": False, **({"reasoning_effort": least[0]} if least else {})}
    effort = effort_of(parameters, parameters.max_tokens or _ASSUMED_OUTPUT)
    level = None if effort is None else nearest_level(effort, model.abilities.levels)
    return {"enable_thinking": True} if level is None else {"enable_thinking": True, "reasoning_effort": level}


def _unmet(parameters: Parameters, template: JsonObject) -> Iterator[str]:
    """Sentences about reasoning that is not asked for as it was set."""
    wanted, level = parameters.reasoning, template.get("reasoning_effort")
    if wanted in {None, "auto", level}:
        return
    if is_off(parameters):
        if level is not None:
            yield f"reasoning {wanted!r} sent as {level!r}: the model knows no less"
    elif level is None:
        yield f"reasoning {wanted!r} sent as on: the model's template knows on and off only"
    else:
        yield f"reasoning {wanted!r} sent as {level!r}"
