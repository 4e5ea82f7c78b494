"""Render a thread as a request of Cerebras' Chat Completions. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Parameters, Thread
from jp.provider.base import Model, WireRequest
from jp.provider.chat.messages import Quirks, Server
from jp.provider.chat.request import ChatAdapter, ServerOptions
from jp.provider.models import model_for
from jp.provider.parameters import cache_not_sent, effort_of, is_off, nearest_level, not_sent

PROVIDER = "cerebras"

_QUIRKS = Quirks(max_tokens_name="max_completion_tokens", return_reasoning="reasoning", stream_usage=False)
"""The count of tokens comes unasked."""

_ASSUMED_OUTPUT = 32_000
"""Output limit that a number of tokens is a share of, if neither the limit nor the model is known."""


class CerebrasAdapter(ChatAdapter):
    """Cerebras' Chat Completions."""

    def __init__(self) -> None:
        self._cerebras = Server(provider=PROVIDER, kind=PROVIDER, quirks=_QUIRKS)
        super().__init__(self._cerebras)

    def render(self, thread: Thread) -> WireRequest:
        """Return the request for `thread`."""
        model, parameters = model_for(PROVIDER, thread), thread.parameters
        wanted = asked(parameters, model)
        if parameters.top_k is not None:
            thread = replace(thread, parameters=replace(parameters, top_k=None))
        return self.render_for(thread, self._cerebras, wanted)


def asked(parameters: Parameters, model: Model) -> ServerOptions:
    """Return the reasoning settings, and notes about those that are not sent.

    The format is always sent: without it, some models write their reasoning into the text.
    """
    effort = _effort(parameters, model)
    fields: JsonObject = {} if model.abilities.thinking == "none" else {"reasoning_format": "parsed"}
    if effort is not None:
        fields["reasoning_effort"] = effort
    return ServerOptions(fields=fields, omitted=tuple(_omitted(parameters, model, effort)))


def _effort(parameters: Parameters, model: Model) -> str | None:
    """Return the effort on the wire, None if the model decides."""
    levels = model.abilities.levels
    if is_off(parameters):
        return next(iter(levels), None)
    longest = parameters.max_tokens or model.details.max_output or _ASSUMED_OUTPUT
    effort = effort_of(parameters, longest)
    return None if effort is None else nearest_level(effort, levels)


def _omitted(parameters: Parameters, model: Model, effort: str | None) -> Iterator[str]:
    name, wanted = model.details.id, parameters.reasoning
    if parameters.top_k is not None:
        yield not_sent(["top_k"], "the API knows none")
    yield from cache_not_sent(parameters.cache, "the API keeps what it wants")
    if model.abilities.thinking == "none":
        if wanted is not None and not is_off(parameters):
            yield f"reasoning {wanted!r} not sent: {name!r} does not reason"
    elif is_off(parameters):
        if effort != "none":
            yield f"{name!r} cannot be kept from reasoning: asked for {effort!r}, its least"
    elif wanted not in {None, "auto", effort}:
        yield f"reasoning {wanted!r} sent as {effort!r}"
